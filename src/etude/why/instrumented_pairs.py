"""Further pairs of trials of two stored tests, plain and under instruments, in the same random blocks."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from etude.analysis.load_subject import read_ours
from etude.codec import decoded
from etude.errors import InputError, UsageError
from etude.experiment import run as experiments
from etude.experiment.plan import BLOCKS, Plan, RuleSpec, plan_to_resume
from etude.experiment.test import Test
from etude.osutil.files import replace_file
from etude.results.reader import read_experiment
from etude.results.results import machine_member
from etude.why.causes import Cause
from etude.why.contributions import FEW
from etude.why.instruments import (
    INSTRUMENTS,
    CallCount,
    Calls,
    Instrument,
    Run,
    missing,
    read_calls,
    read_first_thread,
    read_timeline,
    under,
)
from etude.why.stacks import FILE, Sides, read_stacks, write_stacks

STATE = "why.json"
VERSION = 1
RAW = "raw"
"""Directory of the files of the instruments; removed when they are read."""
BUDGET_S = 60.0
MOST_PAIRS = 30


@dataclass(frozen=True)
class Instrumented:
    """Measurements of both tests, plain and under instruments."""

    a: str
    b: str
    plain_s: tuple[tuple[float, ...], tuple[float, ...]]
    """Elapsed times of plain trials of both, s; the n-th of each are one pair."""
    runs: tuple[tuple[Run, ...], tuple[Run, ...]]
    """Causes by the timeline; without one those of the first threads alone, by their recorded calls."""
    calls: tuple[tuple[Calls, ...], tuple[Calls, ...]]
    lacking: tuple[str, ...]
    """Reasons why an instrument was not used."""


def instrument_pairs(
    directory: Path,
    names: tuple[str, str] | None,
    place: Path,
    *,
    pairs: int | None = None,
    budget_s: float = BUDGET_S,
    observe: experiments.Observer = experiments.ignore_events,
) -> Instrumented:
    """Measure further pairs of two tests of an experiment into `place`; finished ones there are read.

    names: the tests (default: the first two). pairs: number of pairs (default: as many as the budget allows, at least
    FEW).

    Raises:
        InputError: the experiment cannot be run again; UsageError: no such test; CommandFailed: a command failed.
    """
    if (place / STATE).exists():
        return read_instrumented(place)
    if (place / "experiment.json").exists():
        raise InputError(
            f"{place}: holds pairs that were not finished; remove it, or name another directory with -o"
        )
    source = directory / "experiment.json"
    document = read_experiment(directory)
    stored = plan_to_resume(document, str(source))
    a, b = _tests(stored, names, directory)
    lacking = {each: why for each in INSTRUMENTS if (why := missing(each))}
    used = [each for each in INSTRUMENTS if each not in lacking]
    plan = _plan(
        stored, (a, b), used, place, pairs or _pairs(document, directory, (a, b), len(used), budget_s)
    )
    where = machine_member(document, "directory", "path")
    plan = replace(plan, tests=tuple(replace(t, directory=t.directory or where) for t in plan.tests))
    for test in plan.tests[2:]:
        Path(test.command[4]).mkdir(parents=True, exist_ok=True)
    experiments.run(plan, place, observe=observe, verb="why")
    found = _read(place, plan, (a.name, b.name), used, tuple(lacking.values()))
    a_stacks, b_stacks = (tuple(run.stacks for run in side) for side in found.runs)
    write_stacks(place, (a_stacks, b_stacks))
    replace_file(place / STATE, json.dumps(_document(found), ensure_ascii=False, indent=1).encode())
    shutil.rmtree(place / RAW, ignore_errors=True)
    return found


def _tests(plan: Plan, names: tuple[str, str] | None, directory: Path) -> tuple[Test, Test]:
    known = {test.name: test for test in plan.tests}
    if names is None:
        if len(known) < 2:
            raise UsageError(f"{directory}: has one test: expected two, whose difference is explained")
        names = (plan.tests[0].name, plan.tests[1].name)
    for name in names:
        if name not in known:
            raise UsageError(f"{directory}: no test {name!r}: expected {', '.join(known)}")
    if names[0] == names[1]:
        raise UsageError(f"{names[0]!r} twice: expected two tests")
    found = known[names[0]], known[names[1]]
    for test in found:
        if test.workers > 1:
            raise UsageError(f"{test.name}: has {test.workers} workers: expected one")
    return replace(found[0], inner=1), replace(found[1], inner=1)


def _pairs(
    document: Mapping[str, Any], directory: Path, tests: Sequence[Test], used: int, budget_s: float
) -> int:
    """Number of pairs that the budget allows."""
    found = read_ours(directory).tests
    times = {s.test: float(s.sample("elapsed").mean()) for s in found if s.sample("elapsed").size}
    pair_s = (1 + used) * sum(times.get(test.name, math.inf) for test in tests)
    return max(FEW, min(MOST_PAIRS, int(budget_s / pair_s))) if pair_s > 0 else MOST_PAIRS


def _plan(stored: Plan, tests: Sequence[Test], used: Sequence[Instrument], place: Path, pairs: int) -> Plan:
    made = list(tests)
    for number, instrument in enumerate(used):
        for side, test in enumerate(tests):
            made.append(under(instrument, test, place / RAW / f"{side}{number}"))
    return replace(
        stored,
        name="why",
        tests=tuple(made),
        rule=RuleSpec("fixed-count", {"count": pairs}),
        schedule=BLOCKS,
        again_every=0,
        shell=None,
        primary="elapsed",
        warmup=1,
    )


def _read(
    place: Path, plan: Plan, names: tuple[str, str], used: Sequence[Instrument], lacking: tuple[str, ...]
) -> Instrumented:
    series = {s.test: s for s in read_ours(place).tests}
    a, b = (tuple(series[name].sample("elapsed").tolist()) for name in names)
    found: dict[str, list[tuple[Any, ...]]] = {"timeline": [(), ()], "calls": [(), ()]}
    for number, instrument in enumerate(used):
        reader = read_timeline if instrument == "timeline" else read_calls
        for side in range(2):
            files = sorted((place / RAW / f"{side}{number}").iterdir(), key=lambda f: f.stat().st_mtime_ns)
            kept = files[plan.warmup :]
            if len(kept) != len((a, b)[side]):
                raise InputError(
                    f"{place}: {len(kept)} of {len((a, b)[side])} runs of {names[side]} left a {instrument}; "
                    "measure again into another directory with -o"
                )
            found[instrument][side] = tuple(map(reader, kept))
            if "timeline" not in used:
                found["timeline"][side] = tuple(map(read_first_thread, kept))
    return Instrumented(*names, (a, b), tuple(found["timeline"]), tuple(found["calls"]), lacking)  # type: ignore[arg-type]


def _document(found: Instrumented) -> dict[str, Any]:
    return {
        "format": "etude-why",
        "version": VERSION,
        "tests": [found.a, found.b],
        "plain_s": [list(each) for each in found.plain_s],
        "runs": [
            [
                {
                    "lost": run.lost,
                    "causes": [
                        [c.process, c.kind, c.name, c.caller, s] for c, s in sorted(run.causes.items())
                    ],
                }
                for run in side
            ]
            for side in found.runs
        ],
        "calls": [
            [
                [[*key, each.count, each.bytes, each.seconds] for key, each in sorted(run.items())]
                for run in side
            ]
            for side in found.calls
        ],
        "lacking": list(found.lacking),
    }


_StoredCall = tuple[str, str, int, int, float]


@dataclass(frozen=True)
class _StoredRun:
    lost: int
    causes: list[tuple[str, str, str, str, float]]


@dataclass(frozen=True)
class _Stored:
    format: str
    version: int
    tests: tuple[str, str]
    plain_s: tuple[list[float], list[float]]
    runs: tuple[list[_StoredRun], list[_StoredRun]]
    calls: tuple[list[list[_StoredCall]], list[list[_StoredCall]]]
    lacking: list[str]


def read_instrumented(place: Path) -> Instrumented:
    """The measurements in a directory. Raises InputError: there are none, or they are invalid."""
    path = place / STATE
    try:
        told = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; expected results of etude why") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: is no JSON; was it edited?") from None
    stored = decoded(_Stored, told, str(path))
    if stored.version != VERSION:
        raise InputError(f"{path}: is of version {stored.version}; expected {VERSION}: use a newer Étude")
    runs = tuple(
        tuple(Run({Cause(p, k, n, c): s for p, k, n, c, s in run.causes}, run.lost) for run in side)  # type: ignore[arg-type]
        for side in stored.runs
    )
    calls = tuple(
        tuple({(call, file): CallCount(n, size, s) for call, file, n, size, s in run} for run in side)
        for side in stored.calls
    )
    plain = (tuple(stored.plain_s[0]), tuple(stored.plain_s[1]))
    found = Instrumented(*stored.tests, plain, runs, calls, tuple(stored.lacking))  # type: ignore[arg-type]
    kept = read_stacks(place)
    return found if kept is None else _with_stacks(found, kept, place)


def _with_stacks(found: Instrumented, kept: Sides, place: Path) -> Instrumented:
    if list(map(len, found.runs)) != list(map(len, kept)):
        raise InputError(f"{place}: {FILE} is of other runs than {STATE}; remove {FILE}: the causes stay")
    a, b = (
        tuple(replace(run, stacks=stacks) for run, stacks in zip(*sides, strict=True))
        for sides in zip(found.runs, kept, strict=True)
    )
    return replace(found, runs=(a, b))
