"""A calibration of trials as blocks, as a document and as figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from etude.figures.data import Figure
from etude.figures.peak import Varying, readings_over_load, readings_over_runlength, trials_needed
from etude.peak.task import Task
from etude.present.section import Block, Column, Sentence, Table
from etude.present.sentences.peak import goal_text
from etude.units.formatting import duration, percent

if TYPE_CHECKING:
    from etude.peak.calibrate import Calibration, LoadCalibration

SHOWN_FACTORS = (0.3, 0.9)
"""Load factors whose trials Figure 5 of "Cutting Corners" shows."""


def calibration_blocks(task: Task, found: Calibration) -> Iterator[Block]:
    """The variation at each load, and the run length and trials that are suggested."""
    yield Table(
        (
            Column("load factor", [f"{at.factor:.2f}" for at in found.loads]),
            Column("load", [task.load_text(at.load) for at in found.loads], 1),
            Column("variation", [percent(at.spreads[-1].cv) for at in found.loads], 0),
            Column("95 %", [_between(at) for at in found.loads], 3),
            Column("run length", [duration(at.cheapest.runlength_s) for at in found.loads], 0),
            Column("trials", [_trials(at.cheapest.trials) for at in found.loads], 0),
            Column("benchmarking time", [_bench(at) for at in found.loads], 2),
        )
    )
    yield Sentence(
        f"Variation: standard deviation over mean of trials of {duration(found.loads[0].spreads[-1].runlength_s)}."
    )
    if found.warm_up_s:
        yield Sentence(
            f"Responses are slower in the first {duration(found.warm_up_s)} of a trial than later: declare a warm-up, "
            "or one that is longer by as much."
        )
    best = found.suggested
    if best.trials is None:
        yield Sentence(
            f"No tested run length reaches {percent(found.accuracy)} accuracy: make longer trials."
        )
        return
    yield Sentence(
        f"Suggested near the peak: run length {duration(best.runlength_s)}, {best.trials} trials: an accuracy of "
        f"{percent(found.accuracy)} at {percent(found.confidence)} confidence for {duration(best.bench_s)} of "
        f"benchmarking time ({goal_text(task)})."
    )
    low, high = _trials(best.trials_low), _trials(best.trials_high)
    yield Sentence(
        f"{low} to {high} trials may be needed as well: so few estimate a variance only this well."
    )


def _between(at: LoadCalibration) -> str:
    last = at.spreads[-1]
    return f"{percent(last.cv_low)} … {percent(last.cv_high)}"


def _trials(count: int | None) -> str:
    return "too many" if count is None else str(count)


def _bench(at: LoadCalibration) -> str:
    return "–" if at.cheapest.trials is None else duration(at.cheapest.bench_s)


def calibration_figures(task: Task, found: Calibration) -> dict[str, Figure]:
    """Figures 4, 5 and 6 of the paper."""
    factor, y, limit = _unit(task)
    whole = [(at, at.spreads[-1].values) for at in found.loads]
    over_load = Varying(
        "trials",
        tuple(at.load for at, values in whole for _ in values),
        tuple(factor * value for _, values in whole for value in values),
    )
    chosen = _nearest(found.loads)
    by_length = [
        Varying(
            f"load factor {at.factor:.1f}",
            tuple(spread.runlength_s for spread in at.spreads for _ in spread.values),
            tuple(factor * value for spread in at.spreads for value in spread.values),
        )
        for at in chosen
    ]
    needed = {
        f"load factor {at.factor:.1f}": [
            (need.runlength_s, float(need.trials)) for need in at.needs if need.trials
        ]
        for at in chosen
    }
    sweet = found.suggested.runlength_s if found.suggested.trials else None
    return {
        "readings-over-load": readings_over_load(
            over_load, y, limit, x="clients" if task.closed else "load (requests/s)"
        ),
        "readings-over-runlength": readings_over_runlength(by_length, y),
        "trials-needed": trials_needed(needed, sweet_s=sweet),
    }


def _nearest(loads: Sequence[LoadCalibration]) -> list[LoadCalibration]:
    found = [min(loads, key=lambda at: abs(at.factor - want)) for want in SHOWN_FACTORS]
    return list(dict.fromkeys(found))


def _unit(task: Task) -> tuple[float, str, float]:
    (first, *others) = task.goal.criteria
    if others or first.of == "errors":
        return 1.0, "response / limit", 1.0
    what = "mean response" if first.percent is None else f"p{first.percent:g} of responses"
    return 1e3 * first.limit, f"{what} (ms)", 1e3 * first.limit


def calibration_document(found: Calibration) -> dict[str, Any]:
    """A calibration as JSON-able data (docs/reference/formats.md)."""

    return {
        "peak": found.peak,
        "fixed_cost_s": found.fixed_cost_s,
        "accuracy": found.accuracy,
        "confidence": found.confidence,
        "warm_up_s": found.warm_up_s,
        "suggested": {
            "runlength_s": found.suggested.runlength_s,
            "trials": found.suggested.trials,
            "trials_between": [found.suggested.trials_low, found.suggested.trials_high],
        },
        "loads": [
            {
                "load": at.load,
                "factor": at.factor,
                "cv": [
                    [spread.runlength_s, spread.cv, spread.cv_low, spread.cv_high] for spread in at.spreads
                ],
                "needs": [[need.runlength_s, need.trials, need.bench_s] for need in at.needs],
            }
            for at in found.loads
        ],
    }
