"""How well a surface is approximated from few samples: the paper's quadratic, and the surrogates of Étude.

Every seed is another system: the roughness of its cells and the errors of its measured peaks are drawn anew. All
parties measure the same systems, each the cells that its plan asks for.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from etude.surface.factors import Configuration, Floats, Space
from etude.surface.plans import d_optimal, next_sample
from etude.surface.samples import KnownResponses
from etude.surface.simulated import OWN, REFERENCE, SURFACES, SimulatedSurface
from etude.surface.surrogates import Fit, Surrogate
from etude.surface.surrogates.process import Gaussian
from etude.surface.surrogates.quadratic import Quadratic
from etude.surface.surrogates.selection import SelectedSurrogate
from etude.surface.surrogates.softmin import SoftMinimum
from rows import Row, in_processes, table

MEASURED_SD = 0.01
"""Of the log of a measured peak."""
COUNTS, OWN_COUNTS = (6, 8, 10), (12, 20, 30)
SEEDS = 20
OWN_SHARE = 0.25
"""Of the seeds, on the larger surfaces."""
LAWS = ("DB_TP", "Web", "Mail", "SPECsfs97", "DB_TP-thrash", "cached", "batches")
MONOTONE = ("DB_TP", "Web", "Mail", "SPECsfs97")
PAPER = {"DB_TP": (14.0, 14.0, 15.0), "Web": (9.0, 9.0, 9.0), "Mail": (3.3, 2.8, 2.7)}
"""Mean absolute percentage error by 6, 8 and 10 samples: "Cutting Corners", table 4."""
LONGEST_S = 2.0
"""For the next sample of 10 000 candidates, refit and choice included."""


@dataclass(frozen=True)
class Party:
    """A surrogate, and the plan that feeds it."""

    name: str
    surrogate: Surrogate
    adaptive: bool
    raw_factors: bool = False
    """Levels coded as they are, not by their logs."""


RAW = Party("quadratic, D-optimal, raw factors", Quadratic(), False, raw_factors=True)
OURS = Party("ours: chosen by leave-one-out, adaptive", SelectedSurrogate(), True)
PARTIES = (
    RAW,
    Party("quadratic, D-optimal", Quadratic(), False),
    Party("log quadratic, D-optimal", Quadratic(logs=True), False),
    Party("Gaussian process, adaptive", Gaussian(), True),
    Party("soft minimum, adaptive", SoftMinimum(), True),
    OURS,
)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What one party made of one system from some samples."""

    mape: float
    """Over all cells, %."""
    covered: float
    """Of the cells not measured, those within 1.96 standard deviations; NaN where none are given."""
    sd: float
    """Its median, there."""
    chosen: str


Found = Mapping[tuple[str, str], Sequence[Mapping[int, Fitted]]]
"""By party and law: of each seed, by the number of samples."""


def counts_of(law: str) -> tuple[int, ...]:
    return COUNTS if law in REFERENCE else OWN_COUNTS


def approximated(party: Party, law: str, seed: int) -> dict[int, Fitted]:
    surface = SimulatedSurface(SURFACES[law], seed)
    cells = list(surface.space)
    truth = np.log(np.array([surface.peak(cell) for cell in cells]))
    errors = np.random.default_rng([seed, zlib.crc32(law.encode())]).standard_normal(len(cells))
    measured = dict(zip(cells, truth + MEASURED_SD * errors, strict=True))
    space = _raw(surface.space) if party.raw_factors else surface.space
    found = {}
    for count, known, fit in _sampled(party, space, counts_of(law), measured, seed):
        if fit is not None:
            found[count] = _judged(fit, cells, truth, known)
    return found


def _sampled(
    party: Party, space: Space, counts: Sequence[int], measured: Mapping[Configuration, float], seed: int
) -> list[tuple[int, KnownResponses, Fit | None]]:
    if not party.adaptive:
        designs = [_known(d_optimal(space, count, (), seed), measured) for count in counts]
        return [(len(known.cells), known, party.surrogate.fit(space, known)) for known in designs]
    known, fit, found = _known((), measured), None, []
    while len(known.cells) < counts[-1]:
        known = _known((*known.cells, next_sample(space, fit, known)), measured)
        fit = party.surrogate.fit(space, known)
        if len(known.cells) in counts:
            found.append((len(known.cells), known, fit))
    return found


def _known(cells: Sequence[Configuration], measured: Mapping[Configuration, float]) -> KnownResponses:
    values = np.array([measured[cell] for cell in cells], dtype=float)
    return KnownResponses(tuple(cells), values, np.full(len(cells), MEASURED_SD**2))


def _raw(space: Space) -> Space:
    plain = [replace(each, scale="linear") if each.scale == "log" else each for each in space.factors]
    return Space(tuple(plain), space.without)


def _judged(fit: Fit, cells: Sequence[Configuration], truth: Floats, known: KnownResponses) -> Fitted:
    predicted = fit.predict(cells)
    off = predicted.log - truth
    fresh = np.array([cell not in set(known.cells) for cell in cells])
    sd = predicted.sd[fresh]
    covered = float(np.mean(np.abs(off[fresh]) < 1.96 * sd)) if np.all(np.isfinite(sd)) else math.nan
    return Fitted(100 * float(np.mean(np.abs(np.expm1(off)))), covered, float(np.median(sd)), fit.name)


def all_approximated(laws: Sequence[str], seeds: Sequence[int], processes: int = 1) -> Found:
    jobs = [
        (party, law, seed)
        for law in laws
        for party in PARTIES
        for seed in (seeds if law in REFERENCE else seeds[: max(round(OWN_SHARE * len(seeds)), 1)])
    ]
    found: dict[tuple[str, str], list[Mapping[int, Fitted]]] = {}
    for party, law, each in in_processes(_job, jobs, processes, "surfaces"):
        found.setdefault((party, law), []).append(each)
    return found


def _job(job: tuple[Party, str, int]) -> tuple[str, str, dict[int, Fitted]]:
    return job[0].name, job[1], approximated(*job)


def mape(found: Found, party: str, law: str, count: int) -> float:
    """Mean over seeds, %; NaN where the party had nothing to say."""
    values = [each[count].mape for each in found.get((party, law), []) if count in each]
    return float(np.mean(values)) if values else math.nan


def coverage(found: Found, party: str, law: str) -> tuple[float, float]:
    """% of cells within 1.96 standard deviations, and the median of these, %; over seeds and numbers of samples."""
    every = [each for of in found.get((party, law), []) for each in of.values()]
    told = [each for each in every if math.isfinite(each.covered)]
    if not told:
        return math.nan, math.nan
    covered = 100 * float(np.mean([each.covered for each in told]))
    return covered, 100 * float(np.median([each.sd for each in told]))


def tables(found: Found, laws: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for title, some in (
        ("6 / 8 / 10 of 32 configurations", [law for law in laws if law in REFERENCE]),
        ("12 / 20 / 30 configurations of surfaces of our own", [law for law in laws if law in OWN]),
    ):
        if some:
            lines += _table(f"Mean absolute percentage error from {title}", found, some, _errors)
            lines += _table(f"Cells within 1.96 sd, % (median sd, %): {title}", found, some, _covered)
    return lines


def _table(
    title: str, found: Found, laws: Sequence[str], cell: Callable[[Found, str, str], str]
) -> list[str]:
    rows = [[party.name, *(cell(found, party.name, law) for law in laws)] for party in PARTIES]
    if cell is _errors and set(PAPER) & set(laws):
        theirs = [" / ".join(f"{x:g}" for x in PAPER[law]) if law in PAPER else "–" for law in laws]
        rows.insert(0, ["the paper's table 4", *theirs])
    return [f"## {title}", "", *table(["surrogate", *laws], rows)]


def _errors(found: Found, party: str, law: str) -> str:
    values = [mape(found, party, law, count) for count in counts_of(law)]
    return " / ".join("–" if math.isnan(x) else f"{x:.1f}" for x in values)


def _covered(found: Found, party: str, law: str) -> str:
    covered, sd = coverage(found, party, law)
    return "–" if math.isnan(covered) else f"{covered:.1f} ({sd:.1f})"


def reached(found: Found) -> list[Row]:
    rows = []
    for law in [law for law in REFERENCE if (OURS.name, law) in found]:
        count, limit = (6, 5.0) if law in MONOTONE else (10, 6.0)
        value, theirs = mape(found, OURS.name, law, count), mape(found, RAW.name, law, count)
        rivals = f"quadratic: {theirs:.1f} %"
        if law in PAPER:
            rivals += f"; the paper: {PAPER[law][COUNTS.index(count)]:g} %"
        said = f"{value:.1f} %"
        rows.append(
            Row(f"{law}: error from {count} configurations", rivals, said, f"≤ {limit:g} %", value <= limit)
        )
    for _, law in [key for key in found if key[0] == OURS.name]:
        covered, sd = coverage(found, OURS.name, law)
        said = f"{covered:.1f} % (median sd {sd:.1f} %)"
        rows.append(
            Row(f"{law}: unmeasured configurations within 1.96 sd", "–", said, "≥ 95 %", covered >= 95)
        )
    return rows


def next_sample_row(count: int = 60, seed: int = 1) -> Row:
    """How long the next of 10 000 cells takes, with `count` samples: refit, choice and plan."""
    surface = SimulatedSurface(SURFACES["wide"], seed)
    cells = list(surface.space)
    order = np.random.default_rng(seed).permutation(len(cells))[:count]
    measured = {cells[at]: math.log(surface.peak(cells[at])) for at in order}
    known = _known(list(measured), measured)
    begin = time.perf_counter()
    next_sample(surface.space, SelectedSurrogate().fit(surface.space, known), known)
    took_s = time.perf_counter() - begin
    said = f"{took_s:.2f} s ({count} samples)"
    return Row(
        "next of 10 000 configurations: refit, choice, plan",
        "–",
        said,
        f"≤ {LONGEST_S:g} s",
        took_s <= LONGEST_S,
    )
