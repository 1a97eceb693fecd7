"""Further pairs of trials of two stored tests, plain and under instruments, in the same random blocks."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from etude.analysis.load_subject import read_ours
from etude.codec import decoded
from etude.errors import CommandFailed, InputError, MachineRefuses, UsageError
from etude.experiment import run as experiments
from etude.experiment.plan import BLOCKS, Plan, RuleSpec
from etude.experiment.progress import Trial, trials_of
from etude.experiment.test import Test
from etude.osutil.files import replace_file
from etude.results.model import Measurement
from etude.results.reader import load_results, read_experiment
from etude.why.causes import Cause
from etude.why.contributions import FEW
from etude.why.explainable import explainable
from etude.why.explained import note_explained
from etude.why.instrumented_run import (
    RAW,
    alone_in,
    check_same_tests,
    claimed,
    command_line,
    kept_trials,
    paired,
    raw_place,
    run_instrumented,
    unfinished_plan,
)
from etude.why.instruments import (
    INSTEAD,
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
    with_common_names,
)
from etude.why.stacks import FILE, Sides, read_stacks, write_stacks
from etude.why.stored_plan import stored_plan

NAME = "why"
STATE = "why.json"
VERSION = 1
BUDGET_S = 60.0
LARGEST = 1e18
"""Larger numbers in a file are mistakes."""
MOST_PAIRS = 30
READERS: Mapping[Instrument, Callable[[Path], Any]] = {"timeline": read_timeline, "calls": read_calls}


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
    stored_s: tuple[float, float] | None = None
    """Mean times of both in the results that are explained, s."""


def instrument_pairs(
    directory: Path,
    names: tuple[str, str] | None,
    place: Path,
    *,
    pairs: int | None = None,
    budget_s: float = BUDGET_S,
    observe: experiments.Observer = experiments.ignore_events,
) -> Instrumented:
    """Measure further pairs of two tests of an experiment into `place`; unfinished ones there are continued, finished
    ones read.

    names: the tests (default: the first two). pairs: number of pairs (default: as many as the budget allows, at least
    FEW).

    Raises:
        InputError: the experiment cannot be run again; UsageError: no such test; CommandFailed: a command failed.
    """
    if (place / STATE).exists():
        return _finished(directory, names, place, pairs)
    begun = (place / "experiment.json").exists()
    plan = (
        unfinished_plan(place, NAME) if begun else _new_plan(directory, names or (), place, pairs, budget_s)
    )
    a, b = (test.name for test in plan.tests[:2])
    if begun:
        check_same_tests(place, names or _first_two(directory), (a, b))
    with alone_in(place):
        if (place / STATE).exists():
            return _finished(directory, names, place, pairs)
        return _measured(directory, place, plan, observe)


def _finished(directory: Path, names: Sequence[str] | None, place: Path, pairs: int | None) -> Instrumented:
    found = read_instrumented(place)
    check_same_tests(place, names or _first_two(directory), (found.a, found.b))
    if pairs not in (None, len(found.plain_s[0])):
        raise UsageError(
            f"pairs {pairs}: {place} has {len(found.plain_s[0])}, and is finished; name another directory with -o"
        )
    return found


def _first_two(directory: Path) -> list[str]:
    """Their names; none if the results are gone."""
    gone = not (directory / "experiment.json").exists()
    return [] if gone else [series.test for series in read_ours(directory).tests][:2]


def _measured(directory: Path, place: Path, plan: Plan, observe: experiments.Observer) -> Instrumented:
    a, b = (test.name for test in plan.tests[:2])
    sides = {
        f"{name}: {instrument}": raw_place(place, side, number)
        for number, instrument in enumerate(INSTRUMENTS)
        for side, name in enumerate((a, b))
    }
    note_explained(directory, place)
    while True:
        try:
            run_instrumented(plan, place, sides, command_line(directory, place, (a, b)), observe)
            break
        except CommandFailed:
            if (failed := _failed(place, sides)) is None:
                raise
            experiments.drop_tests(place, [f"{name}: {failed}" for name in (a, b)])
    begun = [test["name"] for test in read_experiment(place)["tests"]]
    used = [each for each in INSTRUMENTS if f"{a}: {each}" in begun]
    lacking = [
        missing(each, plan.tests[:2]) or f"{each}: was not used when these pairs were begun"
        for each in INSTRUMENTS
        if each not in used
    ]
    times = _stored_s(directory)
    found = replace(
        _read(place, (a, b), used, sides, lacking),
        stored_s=(times[a], times[b]) if {a, b} <= times.keys() else None,
    )
    a_stacks, b_stacks = (tuple(run.stacks for run in side) for side in found.runs)
    write_stacks(place, (a_stacks, b_stacks))
    replace_file(place / STATE, json.dumps(_document(found), ensure_ascii=False, indent=1).encode())
    shutil.rmtree(place / RAW, ignore_errors=True)
    return found


def _failed(place: Path, sides: Iterable[str]) -> str | None:
    """The instrument under which a test has just failed; None if none has."""
    planned = {test["name"] for test in read_experiment(place)["plan"]["tests"]}
    rows = load_results(place).measurements
    failed = (name for name in sides if name in planned and _last_failed(rows.get(name, ())))
    return next((name.rpartition(": ")[2] for name in failed), None)


def _last_failed(rows: Iterable[Measurement]) -> Trial | None:
    last = trials_of(rows)[-1:]
    return last[0] if last and last[0].first.why == "failed" else None


def _new_plan(directory: Path, names: Sequence[str], place: Path, pairs: int | None, budget_s: float) -> Plan:
    stored = stored_plan(directory, names, 2)
    tests = explainable(stored, names, str(directory))
    used = [each for each in INSTRUMENTS if not missing(each, tests)]
    return _plan(stored, tests, used, place, pairs or _pairs(directory, tests, len(used), budget_s))


def _pairs(directory: Path, tests: Sequence[Test], used: int, budget_s: float) -> int:
    """Number of pairs that the budget allows."""
    times = _stored_s(directory)
    pair_s = (1 + used) * sum(times.get(test.name, math.inf) for test in tests)
    return max(FEW, min(MOST_PAIRS, int(budget_s / pair_s))) if pair_s > 0 else MOST_PAIRS


def _stored_s(directory: Path) -> dict[str, float]:
    """Mean time of each test in the results, s."""
    found = read_ours(directory).tests
    return {s.test: float(s.sample("elapsed").mean()) for s in found if s.sample("elapsed").size}


def _plan(stored: Plan, tests: Sequence[Test], used: Sequence[Instrument], place: Path, pairs: int) -> Plan:
    made = list(tests)
    for instrument in used:
        for side, test in enumerate(tests):
            made.append(under(instrument, test, raw_place(place, side, INSTRUMENTS.index(instrument))))
    return replace(
        stored,
        name=NAME,
        tests=tuple(made),
        rule=RuleSpec("fixed-count", {"count": pairs}),
        schedule=BLOCKS,
        again_every=0,
        shell=None,
        primary="elapsed",
        warmup=1,
    )


def _read(
    place: Path,
    names: tuple[str, str],
    used: Sequence[Instrument],
    sides: Mapping[str, Path],
    lacking: list[str],
) -> Instrumented:
    rows = load_results(place).measurements
    trials = {name: kept_trials(each) for name, each in rows.items()}
    plain = paired([trials[name] for name in names])
    found: dict[str, tuple[tuple[Any, ...], ...]] = {"timeline": ((), ()), "calls": ((), ())}
    for instrument in used:
        tests = [f"{name}: {instrument}" for name in names]
        files = [claimed(trials[test], sides[test]) for test in tests]
        found[instrument], wrong = _readings(READERS[instrument], files)
        for test in tests:
            if last := _last_failed(rows[test]):
                wrong = f"was dropped, as {test} failed: {last.first.ending_here()}"
        pairs, enough = len(found[instrument][0]), len(found["timeline"][0]) >= FEW
        if gone := len(plain[0]) - pairs:
            told = f"{instrument}: {gone} of {len(plain[0])} pairs left out: {wrong or 'they left no file'}"
            lacking.append(told if enough or instrument == "calls" else f"{told}; {INSTEAD}")
        if instrument == "calls" and not enough:
            found["timeline"], _ = _readings(read_first_thread, files)
    found["timeline"] = with_common_names((found["timeline"][0], found["timeline"][1]))
    a, b = (tuple(float(trial.value("elapsed") or 0.0) for trial in side) for side in plain)
    return Instrumented(*names, (a, b), found["timeline"], found["calls"], tuple(lacking))  # type: ignore[arg-type]


def _readings(
    reader: Callable[[Path], Any], files: Sequence[Mapping[int, Path]]
) -> tuple[tuple[tuple[Any, ...], ...], str]:
    """Contents of the files of both tests, of the blocks of which both can be read; and why one of them cannot be."""
    wrong = ""
    found: list[dict[int, Any]] = [{}, {}]
    for side, each in zip(found, files, strict=True):
        for block, file in each.items():
            try:
                side[block] = reader(file)
            except (InputError, MachineRefuses) as error:
                wrong = str(error)
    return tuple(map(tuple, paired(found))), wrong


def _document(found: Instrumented) -> dict[str, Any]:
    return {
        "format": "etude-why",
        "version": VERSION,
        "tests": [found.a, found.b],
        "plain_s": [list(each) for each in found.plain_s],
        "stored_s": found.stored_s,
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
    stored_s: tuple[float, float] | None = None


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
    if stored.format != "etude-why" or stored.version != VERSION:
        raise InputError(f"{path}: expected etude-why, version {VERSION}: use a newer Étude")
    _check(stored, path)
    runs = tuple(
        tuple(Run({Cause(p, k, n, c): s for p, k, n, c, s in run.causes}, run.lost) for run in side)  # type: ignore[arg-type]
        for side in stored.runs
    )
    calls = tuple(
        tuple({(call, file): CallCount(n, size, s) for call, file, n, size, s in run} for run in side)
        for side in stored.calls
    )
    plain = (tuple(stored.plain_s[0]), tuple(stored.plain_s[1]))
    found = Instrumented(*stored.tests, plain, runs, calls, tuple(stored.lacking), stored.stored_s)  # type: ignore[arg-type]
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


def _check(stored: _Stored, path: Path) -> None:
    for name in ("plain_s", "runs", "calls"):
        a, b = map(len, getattr(stored, name))
        if a != b:
            raise InputError(f"{path}: {name}: {a} and {b}: expected pairs; was it edited?")
    numbers = [s for side in stored.plain_s for s in side] + list(stored.stored_s or ())
    numbers += [s for side in stored.runs for run in side for *_, s in run.causes]
    numbers += [n for side in stored.calls for run in side for _, _, *counts in run for n in counts]
    numbers += [run.lost for side in stored.runs for run in side]
    if wrong := next((n for n in numbers if not 0 <= n < LARGEST), None):
        raise InputError(f"{path}: has {wrong}: expected numbers from 0 to {LARGEST:.0e}; was it edited?")
