"""Trials of one test under cheap instruments: the recorder, the kernel's run delay, and the monitor at 100 ms."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from etude.analysis.interference import interference_of, load_monitors, noisy_processes
from etude.analysis.load_subject import read_ours
from etude.codec import decoded
from etude.errors import InputError
from etude.experiment import run as experiments
from etude.experiment.monitoring import Monitoring
from etude.experiment.plan import Plan, RuleSpec
from etude.iotrace.reader import read_trace
from etude.osutil.files import replace_file
from etude.results.reader import load_results
from etude.results.series import Series, Whole
from etude.why.explainable import explainable
from etude.why.explained import note_explained
from etude.why.instrumented_run import (
    RAW,
    alone_in,
    check_same_tests,
    claimed,
    command_line,
    kept_trials,
    raw_place,
    run_instrumented,
    unfinished_plan,
)
from etude.why.instruments import call_sums, under
from etude.why.outliers import FEW_SLOW, Floats, Observed, Outliers, Source, outliers, slow_trials
from etude.why.stored_plan import stored_plan

NAME, OPTION = "why-outliers", "--outliers"
STATE, FORMAT, VERSION = "why-outliers.json", "etude-why-outliers", 1
_KIND = {"format": FORMAT, "version": VERSION}
LEAST, MOST = 40, 400
"""Numbers of trials, unless one is given."""
EVERY_S = 0.1
_METRICS = (
    *("user", "system", "peak_memory", "minor_faults", "major_faults", "voluntary_switches"),
    *("involuntary_switches", "storage_read", "storage_written", "instructions", "cycles", "cache_misses"),
    *("branch_misses", "cpu_migrations"),
)
_CHILDREN = ("wait4", "waitid")
"""Calls whose time is that of a child, whose own calls are known."""
_NAMED = 3


@dataclass(frozen=True)
class OutlierTrials:
    """Measurements of each trial of one test, as they are stored."""

    test: str
    trials: list[int]
    """Their numbers in the results."""
    elapsed_s: list[float]
    observed: list[tuple[Source, str, str, str, list[float | None]]]
    """Members of Observed with a value for each trial, of all that varies; None without a reading."""
    plain_s: float | None
    """Median time of the stored trials without instruments, s; None if there are none."""
    processes: list[str]
    """Other processes that used more than usual during the slow trials, the most frequent first."""
    coarse: bool
    """True if trials are shorter than the interval of the monitor."""

    def outliers(self) -> Outliers:
        """The slow trials against the others."""
        observed = {Observed(*each[:4]): np.array(each[4], float) for each in self.observed}
        return outliers(np.array(self.elapsed_s), observed)


def outlier_trials(
    directory: Path,
    test: str | None,
    place: Path,
    *,
    trials: int | None = None,
    budget_s: float,
    observe: experiments.Observer = experiments.ignore_events,
) -> OutlierTrials:
    """Measure further trials of one test of an experiment into `place`; unfinished ones there are continued, finished
    ones read.

    test: its name (default: the only one). trials: their number (default: as many as the budget allows, LEAST to MOST).

    Raises:
        InputError: the experiment cannot be run again; UsageError: no such test; CommandFailed: a command failed.
    """
    names = () if test is None else (test,)
    if (place / STATE).exists():
        found = read_outlier_trials(place)
        check_same_tests(place, names, (found.test,))
        return found
    if (place / "experiment.json").exists():
        plan, command = unfinished_plan(place, NAME), list[str]()
        check_same_tests(place, names, (plan.tests[0].name,))
    else:
        plan = _new_plan(directory, names, place, trials, budget_s)
        command = command_line(directory, place, [plan.tests[0].name], OPTION)
    name, raw = plan.tests[0].name, raw_place(place, 0, 0)
    with alone_in(place):
        if (place / STATE).exists():
            return read_outlier_trials(place)
        note_explained(directory, place)
        run_instrumented(plan, place, {name: raw}, command, observe, Monitoring(every_s=EVERY_S))
        found = _read(directory, place, name, raw)
        replace_file(place / STATE, json.dumps({**_KIND, **asdict(found)}, ensure_ascii=False).encode())
        shutil.rmtree(place / RAW, ignore_errors=True)
    return found


def _new_plan(
    directory: Path, names: Sequence[str], place: Path, trials: int | None, budget_s: float
) -> Plan:
    stored = stored_plan(directory, names, 1)
    (test,) = explainable(stored, names, str(directory), count=1)
    recorded = under("calls", test, raw_place(place, 0, 0))
    # With a hook, trials are made one by one, and each file is known to be that of its trial.
    recorded = replace(
        recorded, name=test.name, setup=test.setup, cleanup=test.cleanup, prepare=test.prepare or ":"
    )
    plain_s = _median_s(directory, test.name)
    count = trials or max(LEAST, min(MOST, int(budget_s / plain_s) if plain_s > 0.0 else MOST))
    rule = RuleSpec("fixed-count", {"count": count})
    return replace(
        stored, name=NAME, tests=(recorded,), rule=rule, shell=None, primary="elapsed", schedule="blocks"
    )


def _median_s(directory: Path, test: str) -> float:
    sample = next((s.sample("elapsed") for s in read_ours(directory).tests if s.test == test), np.empty(0))
    return float(np.median(sample)) if sample.size else math.nan


def _read(directory: Path, place: Path, name: str, raw: Path) -> OutlierTrials:
    trials = kept_trials(load_results(place).measurements[name])
    files = claimed(trials, raw)
    numbers = [trials[block].first.trial for block in sorted(files)]
    if not numbers:
        raise InputError(f"{place}: no trial left a trace; measure again into another directory with -o")
    subject = read_ours(place)
    series = subject.test(name)
    rows = np.flatnonzero(np.isin(series.trials, numbers))
    elapsed = series.columns["elapsed"].values[rows]
    observed = _of_traces([files[block] for block in sorted(files)])
    observed |= _of_metrics(series, rows)
    known = interference_of(series, subject.tests, load_monitors(place, subject.experiment))
    observed |= {Observed("monitor", q.name, "", q.unit): v[rows] for q, v in known.values.items()}
    slow = slow_trials(elapsed)[1]
    named: Counter[str] = Counter()
    for row in rows[slow].tolist() if known.monitors else ():
        named.update({each.name for each in noisy_processes(known, row, rows[~slow])})
    varying = [
        (*key, [value if math.isfinite(value) else None for value in values.tolist()])
        for key, values in observed.items()
        if len(set(values.tolist())) > 1
    ]
    coarse = any(map(known.is_coarse, rows.tolist()))
    most = [process for process, _ in named.most_common(_NAMED)]
    plain_s = _median_s(directory, name)
    stored_s = plain_s if math.isfinite(plain_s) else None
    return OutlierTrials(name, numbers, elapsed.tolist(), varying, stored_s, most, coarse)


def _of_metrics(series: Series, rows: Whole) -> dict[Observed, Floats]:
    columns = ((name, series.column(name)) for name in _METRICS)
    return {
        Observed("metric", name, "", column.unit): column.values[rows]
        for name, column in columns
        if column is not None and np.isfinite(column.values[rows]).any()
    }


def _of_traces(paths: Sequence[Path]) -> dict[Observed, Floats]:
    """Run delay, and time, number and bytes of the calls by file; files of fewer than FEW_SLOW trials are one."""
    found: defaultdict[Observed, Floats] = defaultdict(lambda: np.zeros(len(paths)))
    sums = []
    for number, path in enumerate(paths):
        trace = read_trace(path)
        last = {m["thread"]: m["run_delay_ns"] for m in trace.meta if m["what"] == "run_delay"}
        found[Observed("scheduler", "run delay", "", "s")][number] = sum(last.values()) / 1e9
        sums.append(call_sums(trace))
    seen = Counter(file for each in sums for file in {file for _, file in each})
    for number, each in enumerate(sums):
        for (call, file), one in each.items():
            if call not in _CHILDREN:
                named = file if seen[file] >= FEW_SLOW else "[other files]"
                found[Observed("call", call, named, "s")][number] += one.seconds
                found[Observed("call", call, named, "1")][number] += one.count
                found[Observed("call", call, named, "B")][number] += one.bytes
    return dict(found)


def read_outlier_trials(place: Path) -> OutlierTrials:
    """The measurements in a directory. Raises InputError: they are invalid."""
    path = place / STATE
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}; was it edited?") from None
    if isinstance(told, dict) and told.get("version") != VERSION:
        raise InputError(
            f"{path}: is of version {told.get('version')}; expected {VERSION}: use a newer Étude"
        )
    found = decoded(OutlierTrials, told, str(path))
    if told["format"] != FORMAT or not all(math.isfinite(s) and s >= 0 for s in found.elapsed_s):
        raise InputError(f"{path}: expected {FORMAT} with times from 0; was it edited?")
    if any(len(each[4]) != len(found.elapsed_s) for each in found.observed) or not found.elapsed_s:
        raise InputError(f"{path}: numbers of values differ from those of trials; was it edited?")
    return found
