"""A claims file: statements, what must hold for each, and the experiments that decide them.

docs/reference/claims.md has the grammar.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NoReturn, TypeVar

from etude.claims.bound import Bound, BoundError, contradiction, parse_bound
from etude.errors import InputError, MachineRefuses, UsageError
from etude.experiment.output_metric import check_place
from etude.experiment.test import MetricPattern, Test, make_test
from etude.patterns import compile_pattern
from etude.program import engine_path
from etude.results.model import METRICS
from etude.results.trial_join import JOINS, stored_unit
from etude.toml_config import Section, document, line_of, parsed
from etude.units.parsing import QuantityError, size

T = TypeVar("T")

Kind = Literal["commands", "script", "peak", "surface", "replay"]
KINDS: tuple[Kind, ...] = ("commands", "script", "peak", "surface", "replay")
FULL = "full"
"""Scale of an experiment as its own table has it."""
CONFIDENCE = 0.95
LEAST_CONFIDENCE = 0.5
MARGIN = 0.01
FEW = 10
"""Smallest number of trials that decides."""
MOST_TRIALS = 60
BUDGET_S = 1800.0
_EXPECTED = {
    "commands": 'a table of NAME = "command line"',
    "replay": 'the name of a file, or a table of NAME = "file"',
}
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
_NAME = re.compile(r"[^\W\d]\w*")
_RESERVED = frozenset(("claims.json", "report.html", "work"))
"""Files and directories beside those of the experiments."""
_OF_FILE = frozenset({"title", "confidence", "margin", "experiment", "claim"})
_OF_CLAIM = frozenset({"text", "experiment", "hold", "figure"})
_RUNS = frozenset({"trials", "budget", "variables", "inputs", "needs", "simulate", *KINDS})
_OF_COMMANDS = frozenset(
    {"shell", "setup", "prepare", "conclude", "cleanup", "cool", "data", "metrics", "primary", "output"}
)
_OF_NEEDS = frozenset({"root", "disk", "memory", "programs", "kernel"})
_HOLDS_ON: Mapping[str, tuple[Kind, ...]] = {"peak": ("peak",), "best": ("surface",), "expect": ("script",)}


@dataclass(frozen=True)
class Needs:
    """Requirements of an experiment on its machine."""

    root: bool = False
    disk: int = 0
    """Free space of the working directory, bytes."""
    memory: int = 0
    """Memory of the machine, bytes."""
    programs: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()
    """File systems of /proc/filesystems, or modules."""


@dataclass(frozen=True)
class Experiment:
    """An experiment in one scale: what is run, and how long at most."""

    name: str
    kind: Kind
    commands: Mapping[str, str]
    """Command line of each test, the baseline first."""
    file: Path | None
    """Script, harness or specification; of `replay` the capture."""
    variables: Mapping[str, str]
    simulate: str | None
    """Simulated server of a peak search, instead of a harness."""
    trials: int
    """Most trials of each test."""
    budget_s: float
    shell: str | None
    hooks: Mapping[str, str]
    """setup, prepare, conclude and cleanup of each test."""
    cool: str
    data: tuple[str, ...]
    metrics: tuple[MetricPattern, ...]
    primary: str
    compares_output: bool
    """True if a test that prints something else than the baseline refutes a claim that compares them."""
    inputs: tuple[Path, ...]
    """Files whose digests are recorded."""
    needs: Needs
    scale: str
    place: Path
    """Directory of the claims file, in which commands run."""

    def tests(self) -> list[Test]:
        """The tests of its commands. Raises UsageError for one that cannot be run as it is."""
        return [
            make_test(
                line,
                name=name,
                shell=self.shell,
                directory=str(self.place),
                metrics=self.metrics,
                cool=self.cool,
                data=self.data,
                environment=dict(self.variables),
                timeout_s=self.budget_s,
                **self.hooks,
            )
            for name, line in self.commands.items()
        ]

    @property
    def units(self) -> dict[str, str]:
        """The unit of each metric of its commands."""
        own = {each.name: stored_unit(each.unit).base for each in self.metrics}
        return {name: kind.unit for name, kind in METRICS.items()} | own

    @property
    def guards_output(self) -> bool:
        """True if tests that print something else than the ones they are compared with refute a claim."""
        return self.kind == "commands" and self.compares_output and not self.metrics

    @property
    def makes_programs(self) -> bool:
        """True if a shell line that runs before the trials may build what they run."""
        return bool({"setup", "prepare"} & self.hooks.keys())

    @property
    def extends(self) -> bool:
        """True if trials can be added after a look at the results."""
        return self.kind in ("commands", "replay")


@dataclass(frozen=True)
class Claim:
    """A statement, and what must hold for it."""

    id: str
    text: str
    experiment: str
    hold: tuple[Bound, ...]
    figure: str
    """Figure or table of the paper that it belongs to; empty: none."""
    line: int
    """Line of its table in the file."""


@dataclass(frozen=True)
class ClaimsFile:
    """A claims file, in one scale."""

    path: Path
    text: str
    title: str
    confidence: float
    """Probability that no claim of the file is decided wrongly."""
    margin: float
    """Share of a bound within which a value is on neither side of it."""
    scale: str
    experiments: Mapping[str, Experiment]
    claims: tuple[Claim, ...]

    def chosen(self, ids: tuple[str, ...]) -> tuple[Claim, ...]:
        """The claims of these ids; all without any. Raises UsageError for an id that there is not."""
        known = {claim.id: claim for claim in self.claims}
        for name in ids:
            if name not in known:
                raise UsageError(f"{self.path}: no claim {name!r}: expected {', '.join(known)}")
        return tuple(claim for claim in self.claims if not ids or claim.id in ids)

    def of_experiment(self, name: str) -> tuple[Claim, ...]:
        """The claims that an experiment decides."""
        return tuple(claim for claim in self.claims if claim.experiment == name)


def read_claims(path: Path, scale: str = FULL, text: str | None = None) -> ClaimsFile:
    """A claims file in a scale; `text`: its content, if it is stored elsewhere.

    Raises:
        InputError: it is invalid, with file and line; UsageError: no experiment has the scale.
    """
    whole = document(path) if text is None else parsed(path, text)
    whole.only(_OF_FILE)
    tables = {name: whole.section("experiment").section(name) for name in whole.section("experiment").values}
    scales = {FULL, *(key for table in tables.values() for key in table.values if _is_scale(table, key))}
    if scale not in scales:
        raise UsageError(f"{path}: no scale {scale!r}: expected {', '.join(sorted(scales))}")
    experiments = {name: _experiment(table, name, scale) for name, table in tables.items()}
    claims = tuple(_claim(whole, name, experiments) for name in whole.section("claim").values)
    if not claims:
        raise InputError(f"{path}:1: has no [claim.ID]: expected one or more")
    confidence = whole.share("confidence", CONFIDENCE) or CONFIDENCE
    if confidence < LEAST_CONFIDENCE:
        whole.fail("confidence", f"confidence is {confidence:g}: expected {LEAST_CONFIDENCE:g} or more")
    return ClaimsFile(
        path,
        whole.text,
        whole.text_at("title") or path.stem,
        confidence,
        _margin(whole),
        scale,
        experiments,
        claims,
    )


def _margin(whole: Section) -> float:
    told = whole.values.get("margin")
    if told in (0, "0", "0 %", "0%") and not isinstance(told, bool):
        return 0.0
    return whole.share("margin", MARGIN, most=0.2) or MARGIN


def _is_scale(table: Section, key: str) -> bool:
    return isinstance(table.values[key], dict) and key not in _RUNS | _OF_COMMANDS


def _claim(whole: Section, name: str, experiments: Mapping[str, Experiment]) -> Claim:
    table = whole.section("claim").section(name)
    table.only(_OF_CLAIM)
    if not _ID.fullmatch(name):
        table.fail(None, f"claim {name!r}: expected an id of letters, digits, - . and _")
    told = table.values.get("experiment", next(iter(experiments)) if len(experiments) == 1 else None)
    if not isinstance(told, str) or told not in experiments:
        known = ", ".join(experiments) or "a table [experiment.NAME]"
        table.fail(
            "experiment" if "experiment" in table.values else None,
            f"claim {name}: expected experiment = one of {known}",
        )
    experiment = experiments[told]
    bounds = _bounds(table, name)
    for bound in bounds:
        _check_fits(table, bound, experiment)
    named = [replace(each, metric=each.metric or experiment.primary) for each in bounds]
    if apart := contradiction(named):
        table.fail("hold", f"claim {name}: {apart[0].text} and {apart[1].text} cannot both hold")
    text = table.text_at("text")
    if not text:
        table.fail(None, f"claim {name}: has no text: expected the statement in words")
    line = line_of(table.text, table.name, None)
    return Claim(name, text, told, tuple(bounds), table.text_at("figure"), line)


def _bounds(table: Section, name: str) -> list[Bound]:
    told = table.values.get("hold")
    texts = [told] if isinstance(told, str) else told
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        table.fail(
            "hold" if told is not None else None,
            f"claim {name}: expected hold = a bound, or a list of bounds",
        )
    try:
        return [parse_bound(each) for each in texts]
    except BoundError as error:
        table.fail("hold", f"claim {name}: {error}")


def _check_fits(table: Section, bound: Bound, experiment: Experiment) -> None:
    """A bound on what its experiment measures."""
    kinds = _HOLDS_ON.get(bound.of, ("commands", "script", "replay"))
    if experiment.kind not in kinds:
        table.fail(
            "hold",
            f"{bound.text!r}: experiment {experiment.name} is of kind {experiment.kind}, which has no {bound.of}",
        )
    if bound.of == "peak" and bound.unit not in (None, "1/s"):
        table.fail("hold", f"{bound.text!r}: a peak is a rate: expected a number, or one in 1/s")
    if not experiment.extends:
        return
    for test in bound.tests:
        if test not in experiment.commands:
            table.fail("hold", f"{bound.text!r}: no test {test!r}: expected {', '.join(experiment.commands)}")
    units = experiment.units
    metric = bound.metric or experiment.primary
    if metric not in units:
        table.fail(
            "hold", f"{bound.text!r}: no metric {metric!r} is measured: expected {', '.join(sorted(units))}"
        )
    if bound.of == "mean" and (bound.unit or "1") != units[metric]:
        table.fail(
            "hold", f"{bound.text!r}: {metric} is measured in {units[metric]}: expected a quantity in it"
        )


def _experiment(table: Section, name: str, scale: str) -> Experiment:
    known = _RUNS | _OF_COMMANDS
    scales = {key for key in table.values if _is_scale(table, key)}
    table.only(scales | known)
    for key in scales:
        table.section(key).only(known)
    if not _ID.fullmatch(name) or name in _RESERVED:
        table.fail(
            None,
            f"experiment {name!r}: expected a name of letters, digits, - . and _, but none of Étude's files",
        )
    if scale in scales:
        table = _merged(table, table.section(scale))
    kinds = [kind for kind in KINDS if kind in table.values] or (
        ["peak"] if "simulate" in table.values else []
    )
    if len(kinds) != 1:
        table.fail(
            None, f"experiment {name}: expected one of {', '.join(KINDS)}, found {', '.join(kinds) or 'none'}"
        )
    kind: Kind = kinds[0]
    if kind != "commands":
        for key in sorted(_OF_COMMANDS & table.values.keys()):
            table.fail(key, f"{table.named(key)} is for commands, not for an experiment of kind {kind}")
    inputs = [table.path.parent / each for each in _list(table, "inputs")]
    commands, file = {}, ""
    if kind == "commands" or isinstance(table.values.get(kind), dict):
        commands = _texts(table, kind)
        if not commands or kind not in ("commands", "replay"):
            table.fail(kind, f"{table.named(kind)}: expected {_EXPECTED.get(kind, 'the name of a file')}")
    elif kind in table.values:
        file = table.text_at(kind)
        if not file:
            table.fail(kind, f"{table.named(kind)}: expected the name of a file")
    if kind == "replay":
        plays = {
            name: (table.path.parent / each).absolute() for name, each in (commands or {kind: file}).items()
        }
        inputs, file = [*inputs, *plays.values()], ""
        commands = {name: shlex.join([_engine(), "replay", "-q", str(each)]) for name, each in plays.items()}
    experiment = Experiment(
        name,
        kind,
        commands,
        table.path.parent / file if file else None,
        _texts(table, "variables"),
        table.text_at("simulate") or None,
        table.whole("trials", MOST_TRIALS, least=FEW, most=100_000) or MOST_TRIALS,
        table.seconds("budget", BUDGET_S, zero=False) or BUDGET_S,
        table.text_at("shell") or None,
        {
            key: table.text_at(key)
            for key in ("setup", "prepare", "conclude", "cleanup")
            if key in table.values
        },
        table.text_at("cool", "none"),
        _list(table, "data"),
        _metrics(table),
        table.text_at("primary", "elapsed"),
        table.one_of("output", ("same", "any"), "same") == "same",
        tuple(inputs),
        _needs(table),
        scale,
        table.path.absolute().parent,
    )
    try:
        experiment.tests()
    except UsageError as error:
        table.fail(kind, f"experiment {name}: {error}")
    if experiment.primary not in experiment.units:
        table.fail("primary", f"{table.named('primary')}: no metric {experiment.primary!r} is measured")
    return experiment


def _engine() -> str:
    """The engine's program; its name where it is not installed, since a claims file can be read without it."""
    try:
        return engine_path()
    except MachineRefuses:
        return "etude-engine"


@dataclass(frozen=True, slots=True)
class _Scaled(Section):
    """A table with the keys of a scale in place of its own; errors have the line of the key that is in force."""

    scale: Section

    def fail(self, key: str | None, what: str) -> NoReturn:
        where = self.scale if key in self.scale.values else Section(self.path, self.text, self.name, {})
        where.fail(key, what)

    def section(self, key: str) -> Section:
        return _merged(Section.section(self, key), self.scale.section(key))


def _merged(table: Section, scale: Section) -> Section:
    """The table with the keys of a scale in place of its own."""
    values = dict(table.values)
    for key, value in scale.values.items():
        mine = values.get(key)
        values[key] = {**mine, **value} if isinstance(mine, dict) and isinstance(value, dict) else value
    return _Scaled(table.path, table.text, table.name, values, scale)


def _texts(table: Section, key: str) -> dict[str, str]:
    inner = table.section(key)
    return {name: inner.text_at(name) for name in inner.values}


def _list(table: Section, key: str) -> tuple[str, ...]:
    value = table.values.get(key, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(each, str) and each for each in texts):
        table.fail(key, f"{table.named(key)}: expected a list of texts")
    if any("\0" in each for each in texts):
        table.fail(key, f"{table.named(key)}: expected texts without \\u0000")
    return tuple(texts)


def _metrics(table: Section) -> tuple[MetricPattern, ...]:
    """`NAME = "REGEX"`, or `NAME = { regex = "…", unit = "ms" }`."""
    inner = table.section("metrics")
    found = []
    for name, value in inner.values.items():
        if isinstance(value, str):
            found.append(MetricPattern(name, value))
            continue
        each = inner.section(name)
        each.only({"regex", "unit", "join"})
        texts = each.text_at("regex"), each.text_at("unit", "1"), each.text_at("join")
        found.append(MetricPattern(name, *texts))
    for pattern in found:
        try:
            check_place(pattern.regex)
            compile_pattern(pattern.regex)
        except ValueError as error:
            inner.fail(pattern.name, f"{inner.named(pattern.name)} {pattern.regex!r}: {error}")
        if not _NAME.fullmatch(pattern.name) or pattern.join not in ("", *JOINS) or not pattern.regex:
            joins = ", ".join(JOINS)
            inner.fail(
                pattern.name, f"{inner.named(pattern.name)}: expected a word, a regex, join = one of {joins}"
            )
    return tuple(found)


def _needs(table: Section) -> Needs:
    inner = table.section("needs")
    inner.only(_OF_NEEDS)
    return Needs(
        inner.flag("root"),
        _size(inner, "disk"),
        _size(inner, "memory"),
        _list(inner, "programs"),
        _list(inner, "kernel"),
    )


def _size(table: Section, key: str) -> int:
    text = table.text_at(key)
    return _read(table, key, lambda: size(text)) if text else 0


def _read(table: Section, key: str, function: Callable[[], T]) -> T:
    try:
        return function()
    except QuantityError as error:
        table.fail(key, f"{table.named(key)}: {error}")
