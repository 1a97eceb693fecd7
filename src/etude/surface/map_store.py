"""A map on disk: a results directory with a test per configuration (docs/reference/formats.md, "A surface").

A configuration's measurement is one line, with the member `surface`; its search or experiment is a results directory
inside the configuration's. Nothing is therefore measured twice after a crash.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson

from etude.cluster.pool.job import RETRYABLE
from etude.codec import decoded, plain
from etude.errors import EDITED, InputError
from etude.experiment.session import new_document, replace_plan
from etude.peak.record import (
    FILE,
    RESUME_HINT,
    Record,
    append,
    check_numbers,
    cut_torn_line,
    digest,
    instant,
    open_record,
    whole_lines,
)
from etude.results.model import Measurement, check_measurement, to_line
from etude.results.reader import read_trusted_experiment
from etude.results.trial_join import kind_of
from etude.results.writer import write_experiment
from etude.surface.factors import Configuration, Factor, Space
from etude.surface.next_configuration import Rules, Visit, fit_surrogate, predict_configurations
from etude.surface.response import Response
from etude.surface.samples import Sample
from etude.surface.spec import PRECISION
from etude.surface.surface_result import Cost, SurfaceResult
from etude.surface.surrogates import Predicted
from etude.toml_config import parsed
from etude.units.formatting import percent

INTERRUPTED = "interrupted"
"""The attempt was ended from here; another machine does not resume it."""
LOST = frozenset((*RETRYABLE, INTERRUPTED))
"""Ends without information on the configuration."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a configuration on a node."""

    host: str
    """The node; of several, the one that offers the load. Empty if the job never started."""
    boot_id: str = ""
    """Boot id of the node; empty if unknown."""
    start: str | None = None
    """UTC, RFC 3339."""
    start_ns: int | None = None
    """Node's monotonic clock, ns."""
    machine: Mapping[str, Any] | None = None
    """Machine snapshot of the node; None if unknown."""
    lost: str = ""
    """One of LOST: its results do not count and the configuration is measured again. Empty: not lost."""
    system: str = ""
    """Node of the system, if it has its own."""


KIND, VERB = "surface", "surface"


@dataclass(frozen=True)
class MapDefinition:
    """Definition of the map in a directory."""

    name: str
    space: Space
    rules: Rules
    response: str
    """Name of the response."""
    unit: str
    better: Literal["higher", "lower"]
    text: str
    """All that the response depends on."""
    spec: str = ""
    """Text of SPEC.toml; empty for a simulation."""

    @property
    def metric(self) -> str:
        """The response's name as that of a metric."""
        return self.response.replace(" ", "_")

    @property
    def simulated(self) -> bool:
        """True if no real system was measured."""
        return not self.spec

    def plan(self) -> dict[str, Any]:
        """Plan for experiment.json."""
        return {
            "kind": KIND,
            "primary": self.metric,
            "name": self.name,
            "response": {"name": self.response, "unit": self.unit, "better": self.better},
            "factors": [asdict(factor) for factor in self.space.factors],
            "without": sorted(map(list, self.space.without)),
            "rules": plain(self.rules),
            "text": self.text,
            "spec": self.spec,
        }


def define_map(name: str, space: Space, rules: Rules, response: Response, spec: str) -> MapDefinition:
    """Definition of the map of a response."""
    return MapDefinition(
        name, space, rules, response.name, response.unit, response.better, response.text, spec
    )


@dataclass(frozen=True, slots=True)
class Line:
    """One attempt at a configuration on disk."""

    order: int
    sample: Sample
    host: str
    """Host of the attempt."""
    lost: str = ""
    """Kind of the loss of its node; the attempt does not count then. Else empty."""
    system: str = ""
    """Host of its system, if on its own node."""


class MapStore(Record):
    """Attempts at configurations, in order."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Read the directory. Raises InputError if it holds no map, or an unreadable one."""
        super().__init__(Path(directory))
        self.definition = _charted(self.document, self.directory)
        self._read = self._load()
        self._forgotten: set[int] = set()
        self._since = instant()

    def samples(self) -> list[Sample]:
        """Samples that count, in order; without configurations that are excluded now."""
        without = self.definition.space.without
        return [
            line.sample
            for line in self._read
            if not line.lost and line.order not in self._forgotten and line.sample.cell not in without
        ]

    def attempts(self) -> list[Line]:
        """All attempts, in order, including those with a lost node."""
        return list(self._read)

    def losses(self, configuration: Configuration) -> list[Line]:
        """Attempts at a configuration with a lost node, since its last completed one."""
        found: list[Line] = []
        for line in self._read:
            if line.sample.cell == configuration:
                found = [*found, line] if line.lost else []
        return found

    def configuration_place(self, configuration: Configuration) -> Path:
        """Directory of a configuration."""
        space = self.definition.space
        return self.place(space.name(configuration), space.settings(configuration))

    def attempt_place(self, configuration: Configuration, *, last: bool = False) -> Path:
        """Directory of the next attempt at a configuration, or of the last one."""
        number = self._attempts(configuration) + (not last)
        place = self.configuration_place(configuration)
        return place / f"attempt-{number}" if number > 1 else place

    def keep(self, visit: Visit, sample: Sample, attempt: Attempt | None = None) -> None:
        """Write a sample to disk; `attempt`: for another machine. Raises MachineRefuses."""
        order = 1 + max((line.order for line in self._read), default=0)
        line = to_line(self._of_sample(sample, order, attempt))
        member = asdict(sample) | {"order": order, "visit": visit.why}
        lost, system = ("", "") if attempt is None else (attempt.lost, attempt.system)
        more = {"lost": lost, "system": system}
        line["surface"] = plain(member | {name: text for name, text in more.items() if text})
        append(self.configuration_place(sample.cell) / "results.jsonl", line)
        self._read.append(Line(order, sample, line["host"], lost, system))
        self._since = instant()

    def forget_failed(self) -> None:
        """Measure failed configurations once more: their lines stay but do not count in this session."""
        self._forgotten = {line.order for line in self._read if line.sample.state == "failed"}

    def ended(self, why: str, surrogate: str, findings: Sequence[str]) -> None:
        """Record the end of the map."""
        self.document["surface"] = {"why": why, "surrogate": surrogate, "findings": list(findings)}
        self.end("complete", [why])

    def _of_sample(self, sample: Sample, order: int, attempt: Attempt | None) -> Measurement:
        start: tuple[str | None, int | None]
        if attempt is None:
            start, sitting = self._since, self.document["sittings"][-1]
        else:
            start = attempt.start, attempt.start_ns
            sitting = self.session_on(attempt.host, attempt.boot_id, attempt.machine)
        value: list[Any] = [sample.value, self.definition.unit]
        if sample.value is None:
            value = [None, self.definition.unit, sample.why or sample.state]
        failed = sample.state != "measured"
        name = self.definition.space.name(sample.cell)
        return self._measurement(
            name,
            1 + self._attempts(sample.cell),
            order,
            sitting,
            start,
            command=[self.definition.name, *name.split()],
            failed=failed,
            why="failed" if failed else None,
            metrics={self.definition.metric: value, "bench_time": [sample.cost_s, "s"]},
            note=sample.why,
        )

    def _attempts(self, configuration: Configuration) -> int:
        return sum(line.sample.cell == configuration for line in self._read)

    def _load(self) -> list[Line]:
        files = [self.directory / entry["directory"] / FILE for entry in self.document["tests"]]
        read = [(path, line) for path in files for line in _read_samples(path, self.definition.space)]
        check_numbers([(path, line.order) for path, line in read], "order")
        found = [line for _, line in read]
        self._find_gaps([line.order for line in found])
        return sorted(found, key=lambda line: line.order)


def open_map(
    directory: str | os.PathLike[str],
    what: MapDefinition,
    command_line: Sequence[str] = (),
    *,
    elsewhere: bool = False,
) -> AbstractContextManager[MapStore]:
    """Open a directory for a map (`open_record`): a new one, or one with the same map, which is resumed.

    elsewhere: True if configurations are measured on other machines. Raises InputError: it holds another map, or
    something else; MachineRefuses: it cannot be written to.
    """
    begin = MapStore.begin_session_elsewhere if elsewhere else MapStore.begin_session
    return open_record(directory, lambda path: _opened(path, what, command_line), begin)


def _opened(path: Path, what: MapDefinition, command_line: Sequence[str]) -> MapStore:
    if not (path / "experiment.json").exists():
        plan = what.plan()
        document = new_document(what.name, VERB, command_line, plan, digest(plan), (), _metrics(what))
        write_experiment(path, document, RESUME_HINT)
        return MapStore(path)
    _charted(read_trusted_experiment(path), path)
    cut_torn_line(path)
    kept = MapStore(path)
    if kept.document["tests"] and (how := _differs(kept.definition, what)) is not None:
        raise InputError(f"{path}: holds another map ({how}); name another directory with -o")
    kept.definition = what
    plan = what.plan()
    replace_plan(kept.document, plan, digest(plan), what.name)
    kept.document["metrics"] |= _metrics(what)
    return kept


def _metrics(what: MapDefinition) -> dict[str, Any]:
    kind = kind_of(what.unit) if what.unit else ("rate" if what.better == "higher" else "cost")
    return {
        what.metric: {"unit": what.unit, "kind": kind},
        "bench_time": {"unit": "s", "kind": "cost"},
    }


def _differs(then: MapDefinition, now: MapDefinition) -> str | None:
    """First difference between two maps other than their rules, as text; None if there is none."""
    for factor, other in zip(then.space.factors, now.space.factors, strict=False):
        if factor != other:
            return f"factor {factor.name} had {_shown(factor)}, now {other.name} has {_shown(other)}"
    for what, a, b in (
        ("number of factors", len(then.space.factors), len(now.space.factors)),
        ("response", f"{then.response} in {then.unit or '1'}", f"{now.response} in {now.unit or '1'}"),
        *_resources_then_and_now(then, now),
    ):
        if a != b:
            return f"{what} was {a}, now {b}"
    was, new = precision_of(then.spec), precision_of(now.spec)
    if then.text == now.text and new < was:  # samples that meet a higher precision also meet a lower one
        return (
            f"precision was {percent(was)}, now {percent(new)}, which its configurations were not measured to"
        )
    return (
        None if then.text == now.text else "what it measures was another: the harness or the command changed"
    )


def _resources_then_and_now(then: MapDefinition, now: MapDefinition) -> list[tuple[str, str, str]]:
    was, new = resources_of(then.spec), resources_of(now.spec)
    if was.keys() != new.keys():
        return [("factors that are resources", ", ".join(was) or "none", ", ".join(new) or "none")]
    return [(f"resource of factor {name}", json.dumps(was[name]), json.dumps(new[name])) for name in was]


def resources_of(spec: str) -> dict[str, dict[str, Any]]:
    """Tables of resource factors in a SPEC.toml, without levels; empty if the text cannot be parsed."""
    try:
        tables: Any = tomllib.loads(spec).get("factor", {})
        return {
            name: {key: str(value) for key, value in table.items() if key not in ("levels", "scale", "unit")}
            for name, table in sorted(tables.items())
            if "resource" in table
        }
    except EDITED:
        return {}


def precision_of(spec: str) -> float:
    """Precision that the text of a SPEC.toml sets, a share; the default if it cannot be parsed."""
    with suppress(InputError):
        return parsed(Path(), spec).section("response").share("precision") or PRECISION
    return PRECISION


def _shown(factor: Factor) -> str:
    return f"{factor.scale} levels {', '.join(factor.text(n) for n in range(len(factor.levels)))}"


def _charted(document: Mapping[str, Any], path: Path) -> MapDefinition:
    plan = document["plan"]
    if plan.get("kind") != KIND:
        raise InputError(f"{path}: holds results of etude {document.get('verb', '…')}, and no surface")
    where = f"{path}/experiment.json"
    texts = decoded(
        dict[str, str], {name: plan.get(name) for name in ("name", "text", "spec")}, where, "plan"
    )
    response = decoded(_Response, plan.get("response"), where, "plan.response")
    rules = decoded(Rules, plan.get("rules"), where, "plan.rules", only=True)
    space = decoded(Space, plan, where, "plan")
    for number, factor in enumerate(space.factors):
        if (wrong := factor.wrong_levels) is not None:
            raise InputError(f"{where}: plan.factors[{number}].levels: {wrong}; was it edited?")
    return MapDefinition(
        texts["name"],
        space,
        rules,
        response.name,
        response.unit,
        response.better,
        texts["text"],
        texts["spec"],
    )


@dataclass(frozen=True)
class _Response:
    name: str
    unit: str
    better: Literal["higher", "lower"]


@dataclass(frozen=True)
class _Tried:
    """Members of a line in addition to its sample."""

    order: int
    lost: str = ""
    system: str = ""


def _read_samples(path: Path, space: Space) -> list[Line]:
    configurations = set(Space(space.factors))
    found = []
    for number, text in whole_lines(path):
        try:
            line = orjson.loads(text)
            check_measurement(line)
            where, member = f"{path}:{number}", line["surface"]
            tried = decoded(_Tried, member, where, "surface")
            if tried.lost and tried.lost not in LOST:
                raise ValueError(f"lost {tried.lost!r}")
            sample = sample_of_member(member, configurations, where, "surface")
            found.append(Line(tried.order, sample, line["host"], tried.lost, tried.system))
        except EDITED as error:
            raise InputError(
                f"{path}:{number}: no configuration of a surface: {error}; was it edited?"
            ) from None
    return found


def sample_of_member(
    member: Any, configurations: Collection[Configuration], where: str, at: str = ""
) -> Sample:
    """A sample from plain data. Raises InputError if it is invalid or not of these configurations."""
    sample = decoded(Sample, member, where, at)
    if sample.cell not in configurations or sample.state == "predicted":
        raise InputError(
            f"{where}: no configuration of a surface: {sample.state} {list(sample.cell)}; was it edited?"
        )
    return sample


def surface_result_of(kept: MapStore) -> SurfaceResult:
    """The map, with predictions of unmeasured configurations by the currently best surrogate."""
    what, samples = kept.definition, tuple(kept.samples())
    fit = fit_surrogate(what.space, samples)
    base = SurfaceResult(
        what.space, what.response, what.unit, what.better, samples, Predicted(np.zeros(0), np.zeros(0)), ""
    )
    left = base.unmeasured
    unknown = Predicted(np.zeros(len(left)), np.full(len(left), np.inf))
    told = predict_configurations(what.space, samples, left) or unknown
    costs = tuple(
        Cost(each.cell, each.cost_s, each.trials, each.state)
        for each in (line.sample for line in kept.attempts())
        if each.cell not in what.space.without
    )
    end = kept.document.get("surface") or {}
    return replace(
        base,
        predicted=told,
        surrogate=fit.name if fit is not None else "",
        loo=() if fit is None else tuple(np.expm1(fit.left_out.log - fit.known.log).tolist()),
        costs=costs,
        findings=tuple(end.get("findings", ())),
    )
