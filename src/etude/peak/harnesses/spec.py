"""A harness in a TOML file: the goal, the commands that make a trial, and the reader of their output.

docs/reference/harness.md describes the file. Each error is one line: FILE:LINE: the problem, and what was expected.
"""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from etude.cluster.pool.allocation import other_node
from etude.errors import UsageError
from etude.experiment.remote_engine import require_local_engine
from etude.machine.remote.hosts import Entry, read_hosts
from etude.patterns import PatternError, compile_pattern
from etude.peak import LONGEST_BUDGET_S, LONGEST_S, MOST_CORES, MOST_LOAD, MOST_OUTSTANDING, MOST_PIECES
from etude.peak.bottleneck import Generator
from etude.peak.harnesses.command import BRACES, CommandBench, Commands, has_run_length
from etude.peak.harnesses.load_hosts import LoadHosts
from etude.peak.harnesses.load_report import ReaderOf, Windows
from etude.peak.harnesses.readers import (
    FIGURES,
    PRINTED,
    TOOLS,
    Figures,
    Place,
    Tool,
    ToolReader,
    by_expression,
    by_path,
)
from etude.peak.search import Bench
from etude.peak.task import Criterion, Goal, Task
from etude.toml_config import Section, document, finite, parsed
from etude.units.parsing import ONE, PER_SECOND, TIME, Unit

SECTIONS = ("name", "goal", "load", "promise", "commands", "reader", "generator", "factors")
PLACEHOLDERS = ("load", "runlength", "seed", "requests", "place", "here", "server", "log", "checkpoints")
"""Names allowed in braces in commands, besides the factors; `LOAD_PLACEHOLDERS` only in `load`."""
LOAD_PLACEHOLDERS = ("load", "runlength", "seed", "requests", "log", "checkpoints")
SET_UP_S = 1.0
"""Minimum fixed cost of a trial, s, to start a command and to wait after it; twice as much if the warm-up is a separate
run."""
WORDS = ("start", "ready", "load", "drain", "stop")
COUNTS = {"1/s": PER_SECOND, "requests/s": PER_SECOND, "": ONE, "1": ONE}
"""Units of counts."""
PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9")
"""Common percentiles, for messages: any may be limited."""


@dataclass(frozen=True)
class Harness:
    """A harness that was read."""

    path: Path
    name: str
    task: Task
    text: str
    unit: str
    """Unit of its load: requests/s or clients."""
    commands: Commands
    reader: ReaderOf
    generator: Generator
    factors: Mapping[str, str]
    """Factors with their defaults."""
    window_s: float = 1.0
    """Window length of readers that make the windows themselves."""
    hosts: tuple[Entry, ...] = ()
    """Hosts on which the load command runs; empty: this machine."""
    summary: bool = False
    """True if the load command reports nothing before its end."""

    @property
    def fixed_cost_s(self) -> float:
        """Fixed cost of a trial besides its run, as far as the file defines it, s."""
        warmup_s = self.commands.warmup_s
        return (math.ceil(warmup_s) + SET_UP_S if self.commands.warms_up_apart else warmup_s) + SET_UP_S

    @property
    def report_interval_s(self) -> float:
        """Run length between two reports, s."""
        if self.commands.pieces > 1:
            return self.task.runlength_s / self.commands.pieces
        return self.task.runlength_s if self.summary else min(self.window_s, self.task.runlength_s)

    @property
    def nodes(self) -> int:
        """Nodes of a pool that it needs: a second one if the system has its own."""
        return 2 if self.commands.apart else 1

    @contextmanager
    def bench(
        self,
        factors: Mapping[str, str],
        place: Path,
        within: Sequence[str] = (),
        groups: Sequence[str] = (),
    ) -> Iterator[Bench]:
        """A bench for one configuration in a scratch directory; everything it started is ended at exit. `within`:
        command prefix that confines the system; `groups`: the cgroups of the system under it. In an allocation of two
        nodes, an `apart` system is on the second.

        Raises UsageError for an unknown factor, and if a system on another node is to be confined.
        """
        for name in factors:
            if name not in self.factors:
                alike = difflib.get_close_matches(name, self.factors, 1)
                hint = f": {alike[0]}?" if alike else ": its [factors] name all that there are"
                raise UsageError(f"{self.path}: has no factor {name!r}{hint}")
        require_local_engine(f"{self.path}: a harness")
        node = other_node() if self.commands.apart else None
        if node is not None and within:
            raise UsageError(
                f"{self.path}: the system has a node of its own ([commands] apart): resources of this machine cannot "
                "confine it; leave out apart, or the resources"
            )
        place.mkdir(parents=True, exist_ok=True)
        values = {
            **self.factors,
            **factors,
            "place": str(place.resolve()),
            "here": str(self.path.resolve().parent),
            "server": node.address if node is not None else "127.0.0.1",
        }
        quoted = {name: shlex.quote(value) for name, value in values.items()}
        bench = CommandBench(
            self.path, self.commands, quoted, self.reader, self.generator, self.task, place.resolve(),
            closed=self.unit == "clients", window_s=self.window_s, within=within, groups=groups,
            node=node, hosts=LoadHosts(self.hosts) if self.hosts else None,
        )  # fmt: skip
        with bench:
            yield bench


def read_harness(path: Path, text: str | None = None) -> Harness:
    """Read the file, or a text in its place: then the path is for messages, and its directory is `{here}`. Raises
    InputError: one line with position and problem."""
    whole = document(path) if text is None else parsed(path, text)
    whole.only(SECTIONS)
    if not (name := whole.text_at("name", whole.path.stem)).strip():
        whole.fail("name", "name is empty: expected what the system is called, or no name")
    factors = {name: _factor(whole.section("factors"), name) for name in whole.section("factors").values}
    commands = _commands(whole.section("commands"), factors)
    task = _task(whole, whole.section("load"))
    reader = _reader(whole.section("reader"), whole.section("commands"), commands, task.goal)
    kind = whole.section("reader").text_at("kind")
    tool = TOOLS.get(kind) or Tool(Windows, "", summary=kind in ("json", "regex"))
    load = whole.section("load")
    _judged(whole, commands)
    generator = _generator(whole.section("generator"), tool.spins)
    own = generator.serves or tool.first_window_uncertain
    if own and "warmup_load" not in whole.section("commands").values:
        commands = replace(commands, warmup_load=1.0)
    return Harness(
        whole.path,
        name,
        task,
        whole.text,
        load.one_of("unit", ("requests/s", "clients"), "requests/s"),
        commands,
        reader,
        generator,
        factors,
        _positive(whole.section("reader"), "window", 1.0),
        _hosts(whole.section("generator"), whole.section("commands"), commands),
        tool.summary,
    )


def _factor(section: Section, name: str) -> str:
    value = section.values[name]
    if name in PLACEHOLDERS or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
        section.fail(
            name,
            f"a factor cannot be called {name!r}: expected letters, and none of {', '.join(PLACEHOLDERS)}",
        )
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        section.fail(
            name, f"{section.named(name)} is {value!r}: expected its usual value, a text or a number"
        )
    if isinstance(value, float) and not finite(value):
        section.fail(name, f"{section.named(name)} is {value!r}: expected a finite number, or a text")
    return section.text_at(name) if isinstance(value, str) else str(value)


def _task(whole: Section, load: Section) -> Task:
    load.only(("lowest", "highest", "unit", "whole", "runlength", "step", "begin", "seed"))
    promise = whole.section("promise")
    promise.only(("within", "confidence", "kind", "budget", "width", "accuracy"))
    lowest, highest = load.number("lowest", most=MOST_LOAD), load.number("highest", most=MOST_LOAD)
    if lowest is None or highest is None:
        load.fail(None, f"[load] {'lowest' if lowest is None else 'highest'} is missing: expected a load")
    if highest <= lowest:
        load.fail("highest", f"[load] highest is {highest:g}: expected more than lowest, {lowest:g}")
    begin = load.number("begin")
    if begin is not None and not lowest <= begin <= highest:
        load.fail("begin", f"[load] begin is {begin:g}: expected a load from {lowest:g} to {highest:g}")
    seed = load.whole("seed", 0, least=0)
    numbered = load.flag("whole") or load.values.get("unit") == "clients"
    if numbered:
        for key in ("lowest", "highest", "begin", "step"):
            load.whole(key, least=1)
    return Task(
        _goal(whole.section("goal")),
        lowest,
        highest,
        begin,
        promise="region" if promise.one_of("kind", ("rate", "region"), "rate") == "region" else "rate",
        within=promise.share("within", 0.10) or 0.10,
        confidence=promise.share("confidence", 0.95) or 0.95,
        width=promise.share("width", 0.10) or 0.10,
        accuracy=promise.share("accuracy", 0.90) or 0.90,
        runlength_s=_positive(load, "runlength", 180.0),
        step=load.number("step", most=MOST_LOAD),
        whole=numbered,
        closed=load.values.get("unit") == "clients",
        budget_s=promise.seconds("budget", most=LONGEST_BUDGET_S, zero=False),
        seed=seed or 0,
    )


def _positive(section: Section, key: str, default: float) -> float:
    return section.seconds(key, default, most=LONGEST_S, zero=False) or default


def _goal(goal: Section) -> Goal:
    criteria = []
    for key in goal.values:
        percentile = re.fullmatch(r"p([0-9]{1,2}(?:\.[0-9]+)?)", key)
        if key == "mean":
            criteria.append(Criterion("mean", _positive(goal, key, 0.0)))
        elif percentile and 0 < float(percentile[1]) < 100:
            criteria.append(Criterion("percentile", _positive(goal, key, 0.0), float(percentile[1])))
        elif key == "errors":
            criteria.append(Criterion("errors", goal.share(key) or 0.0))
        else:
            goal.only(("mean", *PERCENTILES, "errors"))
    if not criteria:
        goal.fail(
            None, '[goal] is missing: expected at least one of mean = "40 ms", p95 = "100 ms", errors = "1 %"'
        )
    return Goal(tuple(criteria))


def _commands(section: Section, factors: Collection[str]) -> Commands:
    times = ("ready_timeout", "load_timeout", "drain_timeout", "stop_timeout", "grace", "warmup")
    section.only((*WORDS, *times, "warmup_load", "fresh", "apart", "pieces"))
    if not section.text_at("load"):
        section.fail(
            None, "[commands] load is missing: expected the command that offers {load} for {runlength} s"
        )
    for word in WORDS:
        known = [
            *factors,
            *(name for name in PLACEHOLDERS if word == "load" or name not in LOAD_PLACEHOLDERS),
        ]
        for name in BRACES.findall(section.text_at(word)):
            if name not in known:
                alike = difflib.get_close_matches(name, known, 1)
                hint = f"{{{alike[0]}}}?" if alike else f"known are {', '.join(sorted(known))}"
                section.fail(word, f"[commands] {word} has {{{name}}}, which is not known: {hint}")
    if "{load}" not in section.text_at("load") and "{requests}" not in section.text_at("load"):
        section.fail("load", "[commands] load has no {load}: it would offer the same each time")
    if section.flag("apart") and "{server}" not in section.text_at("load"):
        section.fail(
            "apart", "[commands] load has no {server}: with apart = true the system is on another machine"
        )
    spans = {f"{name}_s": section.seconds(name, most=LONGEST_S) for name in times}
    given: dict[str, Any] = {name: seconds for name, seconds in spans.items() if seconds is not None}
    start, ready, load, drain, stop = (section.text_at(word) for word in WORDS)
    fresh, apart = section.flag("fresh"), section.flag("apart")
    pieces = section.number("pieces", 1.0, most=MOST_PIECES) or 1.0
    if pieces != round(pieces):
        section.fail("pieces", f"[commands] pieces is {pieces:g}: expected a whole number, such as 6")
    given |= _warmup_load(section)
    read = Commands(
        start, ready, load, drain, stop, fresh=fresh, apart=apart, text=section.text, pieces=round(pieces)
    )
    return replace(read, **given)


def _warmup_load(section: Section) -> dict[str, float]:
    key = "warmup_load"
    if key not in section.values:
        return {}
    if not section.seconds("warmup"):
        section.fail(key, '[commands] warmup_load is of a warm-up: expected warmup = "10 s" beside it')
    if not has_run_length(section.text_at("load")):
        what = "load has no {runlength}, so its warm-up has the load of the trial"
        section.fail(key, f"[commands] {what}: expected {{runlength}} in load, or no warmup_load")
    return {key: section.share(key, most=1.0) or 1.0}


def _reader(section: Section, commands: Section, given: Commands, goal: Goal) -> ReaderOf:
    kinds = ("windows", "json", "regex", *TOOLS)
    kind = section.one_of("kind", kinds)
    if kind in TOOLS:
        section.only(("kind", "window"))
        tool = TOOLS[kind]
        if tool.needs not in given.load:
            commands.fail("load", f"[commands] load has no {tool.needs}: a reader of kind {kind!r} needs it")
        return partial(ToolReader, tool=kind)
    section.only(("kind",) if kind == "windows" else ("kind", "values"))
    if kind == "windows":
        of = {criterion.of for criterion in goal.criteria}
        needs = [need for need, what in (("mean", "mean"), ("latency", "percentile")) if what in of]
        return partial(Windows, needs=needs)
    places = _places(section.section("values"), "at" if kind == "json" else "find")
    return partial(Figures, places=places, find=by_path if kind == "json" else by_expression)


def _places(values: Section, word: str) -> dict[str, Place]:
    found = {}
    for name in values.values:
        percentile = re.fullmatch(r"p[0-9]{1,2}(?:\.[0-9]+)?", name)
        if name not in FIGURES and not percentile:
            values.only((*FIGURES, *PERCENTILES))
        place = values.section(name)
        place.only((word, "unit"))
        where, unit = place.text_at(word), place.text_at("unit")
        timed = name in ("duration", "mean", "max") or percentile is not None
        known: Mapping[str, Unit | None] = {**TIME, PRINTED: None} if timed else COUNTS
        if unit not in known:
            expected = f'"ns", "us", "ms", "s" or "{PRINTED}"' if timed else '"1/s", or none for a count'
            place.fail("unit", f"{place.named('unit')} is {unit!r}: expected {expected}")
        if word == "find" and (groups := _groups(where)) != 1:
            said = "is no regular expression" if groups is None else f"has {groups} groups"
            place.fail(word, f"{place.named(word)} {said}: expected one, with one group around the number")
        if not where or (word == "at" and not where.startswith("$")):
            place.fail(word, f"{place.named(word)} is {where!r}: expected a path, as $.jobs[0].read.iops")
        found[name] = Place(where, known[unit])
    return found


def _groups(expression: str) -> int | None:
    try:
        return compile_pattern(expression).groups
    except PatternError:
        return None


def _judged(whole: Section, given: Commands) -> None:
    """Refuse a goal that the reader cannot measure."""
    reader, goal = whole.section("reader"), whole.section("goal")
    kind, values = reader.values.get("kind"), reader.section("values").values
    if (
        kind in ("json", "regex")
        and "completed" not in values
        and whole.section("load").values.get("unit") == "clients"
    ):
        reader.fail(
            "values",
            "[reader.values] completed is missing: expected where the number of answers to clients stands",
        )
    for key in goal.values:
        if kind in ("json", "regex") and key != "errors" and key not in values:
            goal.fail(key, f"[goal] {key} cannot be judged: expected [reader.values] {key}, where it stands")
        if kind in ("json", "regex") and key == "errors" and "failed" not in values:
            goal.fail(key, "[goal] errors cannot be judged: expected [reader.values] failed, where it stands")
        option = TOOLS[kind].histogram if kind in TOOLS else ""
        if re.fullmatch(r"p[0-9.]+", key) and option not in given.load:
            goal.fail(key, f"[goal] {key} cannot be judged: expected {option} in the load command")


def _generator(section: Section, spins: bool) -> Generator:
    section.only(("cores", "outstanding", "spins", "serves", "hosts"))
    return Generator(
        section.number("cores", 1.0, most=MOST_CORES) or 1.0,
        section.whole("outstanding", least=1, most=MOST_OUTSTANDING),
        section.flag("spins", spins),
        section.flag("serves"),
    )


def _hosts(section: Section, commands: Section, given: Commands) -> tuple[Entry, ...]:
    """Hosts of a hosts file whose path is relative to the harness."""
    name = section.text_at("hosts")
    if not name:
        if "hosts" in section.values:
            section.fail(
                "hosts",
                "[generator] hosts is empty: expected the name of a hosts file (docs/howto/remote.md)",
            )
        return ()
    if "{log}" in given.load:
        commands.fail(
            "load",
            "[commands] load has {log}: files on other hosts are not read; leave out [generator] hosts, or take a load "
            "command that prints what it measures",
        )
    if section.flag("serves"):
        section.fail("hosts", "[generator] hosts: a generator that serves runs here; leave out one of them")
    return tuple(read_hosts(section.path.parent / Path(name).expanduser()).values())
