"""Subject of a verdict: the tests of one experiment or file, as series, and what is known about them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from etude.analysis.getstats.options import parse_getstats
from etude.errors import InputError, UsageError
from etude.experiment.plan import DUET, from_document
from etude.results.columns import SIGNALLED, Columns, Whole
from etude.results.model import is_printed
from etude.results.reader import repeated_note
from etude.results.results import Results, machine_member, names_of, session_groups
from etude.results.series import Column, Series, no_trials, series_of_table
from etude.results.trials import Trials, series_of_columns, trials_of_results
from etude.stats.factors import MEAN_FACTORS, RATIO_FACTORS, Factors, factor_for

if TYPE_CHECKING:
    from etude.results.table import Table


@dataclass(frozen=True)
class StopRuleInfo:
    """Stop rule and groups of an experiment. `factors`: widening of intervals by the stop rule, by test; `precision`:
    requested relative margin of error; `groups`: compared tests in common blocks, the baseline first."""

    primary: str
    duet: bool
    factors: Mapping[str, float]
    ratio_factors: Mapping[str, float]
    precision: float | None
    groups: tuple[tuple[str, ...], ...]
    judged: tuple[str, ...] = ()
    """All metrics that stop rules of a script name, `primary` the first; empty where none names one."""

    @property
    def compares(self) -> bool:
        """True if the experiment compares its tests by ratios."""
        return bool(self.groups)


def asked_of(experiment: Mapping[str, Any], directory: Path) -> StopRuleInfo:
    """The request of an experiment, from its experiment.json.

    Raises:
        InputError: its plan cannot be read.
    """
    plan, names = experiment["plan"], names_of(experiment)
    kind = plan.get("kind")
    if kind is None:
        return _of_commands(plan, names, directory / "experiment.json")
    if kind not in ("script", "res", "peak", "surface", "bisect"):
        raise InputError(f"{directory}: a plan of kind {kind!r}; use a newer Étude")
    tests = [test for test in experiment["tests"] if test["name"] in names]
    primary, judged = _judged(str(plan.get("primary", "elapsed")), tests)
    return StopRuleInfo(
        primary,
        False,
        {test["name"]: mean_factor(test.get("stop_program"), test.get("minimum")) for test in tests},
        {
            test["name"]: mean_factor(test.get("stop_program"), test.get("minimum"), RATIO_FACTORS)
            for test in tests
        },
        None,
        _groups(tests),
        judged,
    )


def _of_commands(document: Mapping[str, Any], names: Sequence[str], file: Path) -> StopRuleInfo:
    plan = from_document(document, str(file))
    factors = dict.fromkeys(names, plan.rule.make().factor)
    return StopRuleInfo(
        plan.primary,
        plan.schedule == DUET,
        factors,
        factors,
        plan.rule.parameters.get("precision"),
        (tuple(names),) if plan.compares and names else (),
    )


def _judged(primary: str, tests: Sequence[Mapping[str, Any]]) -> tuple[str, tuple[str, ...]]:
    """The metric that all stop rules name, and all metrics that any of them names; `primary` if none does."""
    rules = [
        names for test in tests if (names := judged_columns(shlex.split(test.get("stop_program") or "")))
    ]
    named = dict.fromkeys(name for names in rules for name in names)
    common = [name for name in named if all(name in names for names in rules)]
    first = primary if primary != "elapsed" or not named else (common or [primary])[0]
    return first, tuple(dict.fromkeys((first, *named))) if named else ()


def judged_columns(program: Sequence[str]) -> tuple[str, ...]:
    """The columns that a stop program judges: those that a predicate of getstats names, else the elapsed time; none
    where it is another program, or there is none."""
    if not program or PurePath(program[0]).name != "getstats":
        return ()
    try:
        options = parse_getstats(program[1:])
    except UsageError:
        return ()
    return () if options.predicate is None else options.columns or ("elapsed",)


def mean_factor(program: object, minimum: object, factors: Factors = MEAN_FACTORS) -> float:
    """Widening factor for a script's test with a stop program; 1 for a fixed number of trials."""
    return factor_for(max(2, minimum), factors) if program and isinstance(minimum, int) else 1.0


def _groups(tests: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], ...]:
    groups: dict[int, list[str]] = {}
    for test in tests:
        if test.get("group") is not None:
            groups.setdefault(test["group"], []).append(test["name"])
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)


@dataclass(frozen=True)
class ResultNote:
    """Note on something left out on reading, or on an event while measuring."""

    kind: Literal[
        "recorded", "left out", "cut short", "cut before session", "restarted", "sessions", "transformed"
    ]
    where: str = ""
    """The file."""
    text: str = ""
    """A recorded sentence, or the recorded reason."""
    number: int = 0
    """Number of a line or a session, or a count."""
    pool: bool = False
    """True if several sessions are those of a pool."""


@dataclass(frozen=True, eq=False)
class Subject:
    """One experiment of Étude, or the results of another program."""

    label: str
    """Its path."""
    asked: StopRuleInfo
    tests: tuple[Series, ...]
    twins: tuple[Series, ...] = ()
    """Twins of the baseline: further runs of it for A/A pairs."""
    shell: Series | None = None
    """The empty shell's own starts."""
    experiment: Mapping[str, Any] | None = None
    """Content of experiment.json; None for another program's results."""
    work: tuple[WorkDifference, ...] = ()
    """Signs that the tests did not do the same work."""
    notes: tuple[ResultNote, ...] = ()
    directory: Path | None = None
    """Directory of the results and the monitor's files; None for another program's results."""
    file: str = ""
    """The bundle that holds it, as it was named; empty if there is none."""

    def test(self, name: str) -> Series:
        """The test of that name. Raises UsageError where there is none."""
        for series in self.tests:
            if series.test == name:
                return series
        known = ", ".join(series.test for series in self.tests[:10])
        raise UsageError(f"{self.label}: has no test {name!r}; it has {known}")

    @property
    def memory_bytes(self) -> int | None:
        """Memory of the machine (bytes); None if unknown."""
        total = machine_member(self.experiment, "memory", "total_bytes")
        return total if isinstance(total, int) else None


def subject_of(results: Results, metrics: Sequence[str] | None = None) -> Subject:
    """An experiment in memory as a subject, with these of its metrics; None: all.

    Raises:
        InputError: its plan cannot be read.
    """
    return subject_of_trials(trials_of_results(results, metrics))


def subject_of_trials(trials: Trials) -> Subject:
    """The trials of an experiment as a subject.

    Raises:
        InputError: its plan cannot be read.
    """
    experiment = trials.experiment
    made = {series.test: series for series in series_of_columns(trials.columns)}
    parts = session_groups(experiment["sittings"])

    def of_role(role: str) -> tuple[Series, ...]:
        return tuple(
            made.get(name) or no_trials(name, _entry(experiment, name)["parameters"])
            for name in names_of(experiment, role)
        )

    shells = [replace(each, columns=_known_of_shell(each)) for each in of_role("shell")]
    tests = tuple(in_stretches(series, parts) for series in of_role("test"))
    return Subject(
        label=str(trials.directory),
        asked=asked_of(experiment, trials.directory),
        tests=tests,
        twins=of_role("again"),
        shell=shells[0] if shells else None,
        experiment=experiment,
        work=() if experiment["plan"].get("kind") else tuple(work_differences(trials)),
        notes=tuple(session_notes(trials, tests)),
        directory=trials.directory,
    )


def _known_of_shell(series: Series) -> dict[str, Column]:
    """The columns that are subtracted, and those that the shell itself printed."""
    return {name: column for name, column in series.columns.items() if name == "elapsed" or is_printed(name)}


def in_stretches(series: Series, parts: Mapping[int, int]) -> Series:
    """The series with its session groups: sessions joined across restarts."""
    if series.sittings is None or all(first == sitting for sitting, first in parts.items()):
        return series
    numbers = np.array([parts.get(int(each), int(each)) for each in series.sittings], dtype=np.int64)
    return replace(series, stretches=numbers)


def subject_of_table(table: Table) -> Subject:
    """Results of another program as a subject. Its primary metric is elapsed, else that of most tests."""
    tests = series_of_table(table)
    names = [series.test for series in tests]
    plain = dict.fromkeys(names, 1.0)
    asked = StopRuleInfo(_primary(table.metrics, tests), False, plain, plain, None, ())
    return Subject(
        table.label, asked, tests, notes=tuple(ResultNote("recorded", text=text) for text in table.warnings)
    )


def watched_in(experiment: Mapping[str, Any], test: str | None = None) -> tuple[str, ...]:
    """The metrics that WATCH names for a test; without one, for any."""
    entries = (entry for entry in experiment.get("tests") or () if test in (None, entry["name"]))
    return tuple(dict.fromkeys(name for entry in entries for name in entry.get("watch") or ()))


def ended_in(experiment: Mapping[str, Any]) -> dict[str, str]:
    """Reason why each ended test of a script ended, by name."""
    tests = experiment.get("tests") or ()
    return {str(test["name"]): str(test["ended"]) for test in tests if test.get("ended")}


def failure_in(experiment: Mapping[str, Any], test: str) -> Mapping[str, Any] | None:
    """The directive at which the last trial of a script's test failed, why, and its log; None where it did not."""
    return _entry(experiment, test).get("failure") or None


def several_matches_in(experiment: Mapping[str, Any], test: str) -> Mapping[str, str]:
    """METRICs of a test that found several values in one output, each with a sentence on them."""
    return _entry(experiment, test).get("several_matches") or {}


def _entry(experiment: Mapping[str, Any], test: str) -> Mapping[str, Any]:
    return next((entry for entry in experiment.get("tests") or () if entry["name"] == test), {})


def limited_in(experiment: Mapping[str, Any]) -> dict[str, str]:
    """Reasons, by name, of a script's tests that a limit ended before the target of their stop rule."""
    limited = {test["name"] for test in experiment.get("tests") or () if test.get("limited")}
    return {name: why for name, why in ended_in(experiment).items() if name in limited}


SIMULATED = "simulated"
"""Word for it in a status, in the tags of a store and of exported runs."""


def was_simulated(experiment: Mapping[str, Any]) -> bool:
    """True if experiment.json is of a search of a simulated server, or of a map of several."""
    plan = experiment.get("plan")
    plan = plan if isinstance(plan, Mapping) else {}
    if plan.get("kind") == "peak":
        return str(plan.get("harness")).split()[:1] == ["simulate"]
    return plan.get("kind") == "surface" and plan.get("spec") == ""


def was_resumed(experiment: Mapping[str, Any]) -> bool:
    """True if experiment.json has several sessions. Sessions between which it restarted the machine count as one; the
    nodes of a pool run their sessions at the same time, which does not count."""
    return (
        not experiment.get("pool") and len(set(session_groups(experiment.get("sittings") or ()).values())) > 1
    )


def column_of(series: Series, metric: str) -> Column:
    """The metric's column. Raises UsageError where the test has none of that name."""
    column = series.column(metric)
    if column is None:
        known = ", ".join(sorted(series.columns)) or "none"
        raise UsageError(f"metric {metric!r}: test {series.test!r} has none of that name; it has {known}")
    return column


def check_metric(tests: Sequence[Series], metric: str) -> None:
    """Raises UsageError where none of the tests that have trials has a metric of that name."""
    made = [series for series in tests if series.trials.size]
    if len(made) == 1:
        column_of(made[0], metric)
    elif made and not any(metric in series.columns for series in made):
        known = ", ".join(sorted({name for series in made for name in series.columns})) or "none"
        raise UsageError(f"metric {metric!r}: no test has one of that name; there are {known}")


_TIMES = frozenset(("time", "real", "wall", "duration", "latency", "runtime", "seconds"))


def _primary(metrics: Sequence[str], tests: Sequence[Series]) -> str:
    """Primary metric: elapsed, else the one with values in most tests; names and units of times come first."""

    def rank(metric: str) -> tuple[bool, int, bool, bool]:
        column = next((s.columns[metric] for s in tests if metric in s.columns), None)
        having = sum(metric in s.columns and s.sample(metric).size > 0 for s in tests)
        return metric == "elapsed", having, metric in _TIMES, column is not None and column.unit != "1"

    return max(metrics, key=rank, default="elapsed")


def _parts(series: Series) -> set[int]:
    numbers = series.sittings if series.stretches is None else series.stretches
    return set() if numbers is None else set(np.unique(numbers[series.kept]).tolist())


def session_notes(trials: Trials, tests: Sequence[Series]) -> list[ResultNote]:
    """Notes on data left out or cut short, and on included trials of several sessions."""
    left_out = trials.experiment.get("left_out") or []
    found = [
        ResultNote("left out", str(trials.directory), str(entry["reason"]), int(entry["line"]))
        for entry in left_out
    ]
    if not left_out:
        found = [ResultNote("cut short", str(path)) for path in trials.torn]
    found += [
        ResultNote("recorded", text=repeated_note(path, count)) for path, count in trials.repeated.items()
    ]
    sittings: list[Any] = trials.experiment["sittings"]
    found += [
        ResultNote("cut before session", str(name), number=int(sitting["sitting"]))
        for sitting in sittings
        for name in sitting.get("torn") or ()
    ]
    parts = len(set(session_groups(sittings).values()))
    if len(sittings) > parts:
        found.append(ResultNote("restarted", number=len(sittings) - parts))
    measured = len({part for series in tests for part in _parts(series)})
    if measured > 1:
        found.append(ResultNote("sessions", number=measured, pool=bool(trials.experiment.get("pool"))))
    return found


@dataclass(frozen=True)
class WorkDifference:
    """A sign that the tests did not do the same work."""

    what: Literal["ending", "output"]
    test: str
    base: str = ""
    """The test that it is compared with; empty where the test's own trials differ."""
    endings: tuple[str, ...] = ()
    """Endings of the test and the base, or all endings of a test's own trials."""
    printed_bytes: tuple[int, ...] = ()
    """Output sizes of the test and the base."""

    @property
    def between(self) -> bool:
        """True if two tests differ, which may be intended."""
        return bool(self.base)


def work_differences(trials: Trials) -> list[WorkDifference]:
    """Differences that speak against the same work, most important first: endings, then the output of first runs.

    The output of a program that prints a metric is a measurement, never the same, and is not compared.
    """
    columns, plan = trials.columns, trials.experiment["plan"]
    codes = {name: code for code, name in enumerate(columns.test.texts)}
    rows = {
        name: np.flatnonzero(columns.test.codes == codes[name])
        for name in names_of(trials.experiment)
        if name in codes
    }
    each = plan["check_output"] == "each"
    found = [difference for name in rows for difference in _within(name, columns, rows[name], each)]
    measuring = {test["name"] for test in plan["tests"] if test.get("metrics")}
    firsts = {
        name: first
        for name in rows
        if name not in measuring and (first := _first_output(columns, rows[name])) is not None
    }
    reference = next(iter(firsts), None)
    for name in list(firsts)[1:]:
        assert reference is not None
        found += _between(columns, reference, firsts[reference], name, firsts[name])
    return found


def printed_by(trials: Trials) -> dict[str, frozenset[str]]:
    """Digests of what each test printed on standard output, in all runs whose output was captured."""
    columns = trials.columns
    found: dict[str, set[str]] = {name: set() for name in names_of(trials.experiment)}
    for row, members in (columns.rare or {}).items():
        name = columns.test.texts[columns.test.codes[row]]
        if name in found and "stdout" in members:
            found[name].add(members["stdout"]["sha256"])
    return {name: frozenset(digests) for name, digests in found.items()}


def _first_output(columns: Columns, rows: Whole) -> int | None:
    _, first = np.unique(columns.trial[rows], return_index=True)
    firsts = np.sort(rows[first]).tolist() if columns.rare else ()
    return next((row for row in firsts if "stdout" in columns.rare.get(row, {})), None)


def _between(columns: Columns, base: str, a: int, other: str, b: int) -> list[WorkDifference]:
    found = []
    endings = columns.ending(b), columns.ending(a)
    if endings[0] != endings[1]:
        found.append(WorkDifference("ending", other, base, endings))
    one, two = columns.rare[a]["stdout"], columns.rare[b]["stdout"]
    if one["sha256"] != two["sha256"]:
        found.append(WorkDifference("output", other, base, printed_bytes=(two["bytes"], one["bytes"])))
    return found


def _within(name: str, columns: Columns, rows: Whole, each: bool) -> list[WorkDifference]:
    """Differences among a test's own trials; their output is compared only if `each`."""
    finished = rows[~columns.unfinished[rows]]
    signalled = columns.flags[finished] & SIGNALLED
    _, first = np.unique(columns.status[finished] * 256 + signalled, return_index=True)
    rare = (
        [(row, columns.rare[row]) for row in finished.tolist() if row in columns.rare] if columns.rare else []
    )
    accepted = {members["accepted"]: row for row, members in rare if "accepted" in members}
    found = []
    endings = {columns.ending(row) for row in (*finished[first].tolist(), *accepted.values())}
    if len(endings) > 1:
        found.append(WorkDifference("ending", name, endings=tuple(sorted(endings))))
    if each and len({members["stdout"]["sha256"] for _, members in rare if "stdout" in members}) > 1:
        found.append(WorkDifference("output", name))
    return found
