"""Runs probes around a launch: started in order, ended in reverse; a failing probe never loses a trial.

Probes have names: entry points of the group `etude.probes`, of Étude and other installed packages.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

from etude.errors import UsageError
from etude.probes.probe import Context, Probe, ProbeBlock, ProbeFailed, Reading, missing, value
from etude.results.model import METRICS, MetricValue

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


GIVE_UP_AFTER = 3
"""Consecutive failures after which a probe is disabled."""

_RAISED = (Exception, SystemExit)  # exceptions of probes; an interrupt is for us
_NAME = re.compile(r"[A-Za-z_][\w.:+/-]*")
_T = TypeVar("_T")


class RunProbes:
    """The probes of one or more tests. `start` is called before a launch, `end` after it.

    Since they end in reverse order, the interval of each encloses those of all that follow it.
    """

    def __init__(self, probes: Sequence[Probe], *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._watched = [_Watched(probe, clock) for probe in probes]
        self._told: set[str] = set()

    def start(self, context: Context | None = None) -> None:
        """Start each probe; `context` is that of `end`, without `elapsed_s`."""
        context = context or Context()
        for watched in self._watched:
            watched.start(context)

    def end(self, context: Context) -> tuple[dict[str, MetricValue], list[ProbeBlock], list[str]]:
        """Metrics, blocks and notes of all probes, in their order. For duplicate names, the first
        probe's metric counts."""
        readings = [watched.end(context) for watched in reversed(self._watched)][::-1]
        metrics: dict[str, MetricValue] = {}
        notes: list[str] = []
        for watched in self._watched:
            metrics.setdefault(watched.cost_name, watched.cost())
        for watched, reading in zip(self._watched, readings, strict=True):
            for name, metric in reading.metrics.items():
                if (taken := self._taken(name, metrics)) is None:
                    metrics[name] = metric
                else:
                    notes += self._once(f"probe {watched.name}: its metric {name} is left out: {taken}")
            notes += [f"probe {watched.name}: {note}" for note in reading.notes]
        return metrics, [block for reading in readings for block in reading.blocks], notes

    def _taken(self, name: str, metrics: Mapping[str, MetricValue]) -> str | None:
        if name in METRICS:
            return "Étude measures one of that name itself"
        return "another probe has one of that name" if name in metrics else None

    def _once(self, note: str) -> list[str]:
        if note in self._told:
            return []
        self._told.add(note)
        return [note]


class _Watched:
    def __init__(self, probe: Probe, clock: Callable[[], float]) -> None:
        self.name = _plain(getattr(probe, "name", type(probe).__name__))
        self.cost_name = f"probe_{re.sub(r'[^A-Za-z0-9_]', '_', self.name)}_cost"
        self._probe = probe
        self._clock = clock
        self._gives = _declared(probe)
        self._state: Any = None
        self._failed: str | None = None
        self._failures = 0
        self._cost_s = 0.0
        self._useless = self._why_unavailable()
        self._say = self._useless

    def _why_unavailable(self) -> str | None:
        try:
            reason = self._probe.unavailable()
        except _RAISED as error:
            return _one_line(error)
        return None if reason is None else _plain(reason)

    def cost(self) -> MetricValue:
        """Seconds that its start and end took."""
        return missing("s", self._useless) if self._useless else value(self._cost_s, "s")

    def start(self, context: Context) -> None:
        self._failed, self._cost_s = None, 0.0
        if self._useless is None:
            self._state = self._timed(lambda: self._probe.start(context))

    def end(self, context: Context) -> Reading:
        if self._useless is not None:
            said, self._say = self._say, None
            return self._nothing(self._useless, f"cannot be used: {said}" if said else None)
        state, self._state = self._state, None
        reading = None if self._failed else self._timed(lambda: _checked(self._probe.end(state, context)))
        if reading is None:
            return self._failure(self._failed or "gave nothing")
        self._failures = 0
        self._gives |= {name: metric[1] for name, metric in reading.metrics.items()}
        return reading

    def _failure(self, reason: str) -> Reading:
        self._failures += 1
        told = f"failed: {reason}"
        if self._failures >= GIVE_UP_AFTER:
            self._useless = f"not run again after {self._failures} failures in a row; the last: {reason}"
            told += f"; not run again after {self._failures} failures in a row"
        return self._nothing(reason, told)

    def _nothing(self, reason: str, note: str | None) -> Reading:
        metrics = {name: missing(unit, reason) for name, unit in self._gives.items()}
        return Reading(metrics, (), (note,) if note else ())

    def _timed(self, step: Callable[[], _T]) -> _T | None:
        begin = self._clock()
        try:
            return step()
        except _RAISED as error:
            self._failed = _one_line(error)
            return None
        finally:
            self._cost_s += self._clock() - begin


def _declared(probe: Probe) -> dict[str, str]:
    """Names and units of the metrics that a probe declares; empty if the declaration is missing or invalid."""
    gives = getattr(probe, "gives", None)
    if not isinstance(gives, Mapping):
        return {}
    return {name: _plain(unit) for name, unit in gives.items() if _is_name(name)}


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _checked(reading: Any) -> Reading:
    """The probe's reading, checked and normalised for storage. Raises TypeError, ValueError: it is invalid."""
    if not isinstance(reading, Reading):
        raise TypeError(f"gave no Reading but {type(reading).__name__}")
    metrics = {name: _metric(name, metric) for name, metric in reading.metrics.items()}
    blocks = tuple(_block(block) for block in reading.blocks)
    return Reading(metrics, blocks, tuple(map(_plain, reading.notes)))


def _metric(name: Any, metric: MetricValue) -> MetricValue:
    if not _is_name(name):
        raise ValueError(f"{name!r} is no name of a metric")
    number, unit, *reason = metric
    if not isinstance(unit, str) or len(reason) != (number is None):
        raise ValueError(f"metric {name}: expected [value, unit] or [None, unit, reason]")
    if number is None:
        return missing(_plain(unit), _plain(reason[0]))
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"metric {name}: {number!r} is no number")
    if isinstance(number, Integral) and abs(int(number)) < 2**63:
        return value(int(number), _plain(unit))
    if not math.isfinite(float(number)):
        return missing(_plain(unit), f"the probe gave {float(number)}")
    return value(float(number), _plain(unit))


def _block(block: ProbeBlock) -> ProbeBlock:
    if block.name == "measurement":
        raise ValueError("a block of a probe cannot be named measurement: each of those is a row")
    return ProbeBlock(_plain(block.name), tuple(map(_plain, block.lines)))


def _one_line(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:
        text = ""
    if not text:
        return kind
    return _plain(text if isinstance(error, ProbeFailed) else f"{kind}: {text}")


def _plain(text: Any) -> str:
    """The text as one line of valid UTF-8."""
    return " ".join(str(text).encode("utf-8", "replace").decode().splitlines())


GROUP = "etude.probes"


def find_probe(names: Sequence[str]) -> list[Probe]:
    """A new probe for each name, in this order; repeated names count once. Raises UsageError: there is no such probe,
    two packages have one of that name, or it cannot be loaded."""
    known = _known()
    for name in names:
        if name not in known:
            raise UsageError(f"no probe {name!r}; there are: {', '.join(sorted(known)) or 'none'}")
    return [_load(name, known[name]) for name in dict.fromkeys(names)]


def known_probes() -> list[str]:
    """The names of all installed probes, sorted."""
    return sorted(_known())


def _known() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import (
        entry_points,
    )  # reads every package's metadata: only if a probe is requested

    known: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        known.setdefault(point.name, []).append(point)
    return known


def _load(name: str, points: Sequence[EntryPoint]) -> Probe:
    if len({point.value for point in points}) > 1:
        given = " and ".join(sorted(point.value for point in points))
        raise UsageError(f"probe {name!r} is given twice, by {given}; uninstall one of them")
    try:
        probe: Probe = points[0].load()()
    except Exception as error:  # a plug-in may be broken in any way
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UsageError(f"probe {name!r} ({points[0].value}) cannot be loaded: {reason}") from error
    return probe
