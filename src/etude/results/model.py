"""Measurements and their metrics: the rows of all results (docs/reference/formats.md)."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from etude.codec import short
from etude.limits import limit_reached
from etude.results.shell_words import join_words
from etude.results.trial_join import NONE, OF_PROBES, join, join_in_row, joins_of, kind_of

MetricValue = Sequence[Any]
"""`[value, unit]`, or `[None, unit, reason]`; then the join, if its METRIC specifies one."""


LATEST_NS, MAX_DURATION_S = 2**62, 1e9
"""Upper bounds of clocks and durations: larger numbers are of another kind, and are not taken for times."""

CACHE_WAYS = ("none", "warm", "chill", "drop", "remount", "remount+chill", "reboot", "reboot+chill")
"""Cache states before a trial, the values of a measurement's `cache`."""


@dataclass(frozen=True, slots=True)
class MetricKind:
    """Unit and kind of a metric, and the join of its workers and their commands (`results.trial_join`)."""

    unit: str
    kind: str  # cost, rate, ratio, count or binary
    join: str = "sum"
    commands: str = "sum"


def _peak(join: str = "max") -> MetricKind:
    return MetricKind("B", "cost", join, "max")


def _count(join: str = "sum") -> MetricKind:
    return MetricKind("1", "count", join)


METRICS: Mapping[str, MetricKind] = {
    "elapsed": MetricKind("s", "cost", "max"),
    "user": MetricKind("s", "cost"),
    "system": MetricKind("s", "cost"),
    "peak_memory": _peak(),
    "peak_memory_floor": _peak(),
    "minor_faults": _count(),
    "major_faults": _count(),
    "voluntary_switches": _count(),
    "involuntary_switches": _count(),
    "blocks_in": _count(),
    "blocks_out": _count(),
    "orphans": _count("first"),
    "orphans_user": MetricKind("s", "cost", "first"),
    "orphans_system": MetricKind("s", "cost", "first"),
    "storage_read": MetricKind("B", "cost", "first"),
    "storage_written": MetricKind("B", "cost", "first"),
    "tree_cpu": MetricKind("s", "cost", "first"),
    "tree_peak_memory": _peak("first"),
    "tree_read": MetricKind("B", "cost", "first"),
    "tree_written": MetricKind("B", "cost", "first"),
    "start_spread": MetricKind("s", "cost", "first", "max"),
    "cycles": _count("first"),
    "instructions": _count("first"),
    "cache_misses": _count("first"),
    "branch_misses": _count("first"),
    "task_clock": MetricKind("s", "cost", "first"),
    "page_faults": _count("first"),
    "context_switches": _count("first"),
    "cpu_migrations": _count("first"),
}


FIRST_RUN = "first run"
"""The `why` of the excluded first run of each test: planned, so it needs no message."""
CALIBRATION = "calibration"
"""The `why` of the calibration run of `--inner auto`: planned, too."""


def is_printed(name: str) -> bool:
    """True if the program itself reports it (by METRIC, say): neither the engine nor a probe measures it."""
    return name not in METRICS and not name.startswith(OF_PROBES)


def metric_kind(name: str, unit: str, asked: str | None = None) -> MetricKind:
    """The kind of a metric: ours by name; others by unit and name. `asked`: the join specified by its METRIC."""
    return METRICS.get(name) or MetricKind(unit, kind_of(unit), *joins_of(name, unit, asked))


class Measurement(NamedTuple):
    """One measured command in one worker of one trial. Members as in docs/reference/formats.md, "A measurement".

    A tuple, because thousands are read while a user waits for the verdict.
    """

    test: str
    trial: int
    block: int
    order: int
    worker: int
    host: str
    sitting: int
    boot_id: str
    command: Sequence[str]
    start: str | None
    start_ns: int | None
    inner: int
    exit_status: int | None
    signal: int | None
    timed_out: bool
    cancelled: bool
    error: str | None
    kept: bool
    why: str | None
    metrics: Mapping[str, MetricValue]
    cache: Mapping[str, Any] | None = None
    stdout: Mapping[str, Any] | None = None
    stderr: Mapping[str, Any] | None = None
    windows: Sequence[Mapping[str, Any]] | None = None
    notes: Sequence[str] | None = None
    rows: int | None = None
    kernel: Sequence[Mapping[str, Any]] | None = None
    throttled: int | None = None
    offset_ns: int | None = None
    offset_error_ns: int | None = None
    command_text: str | None = None
    accepted: int | None = None

    @property
    def command_line(self) -> str:
        """The command on one line: as in a `.res` or $APLOG, else in shell quoting."""
        return self.command_text or join_words(self.command)

    @property
    def failed(self) -> bool:
        """True if not started, ended by us or by a signal, or with an exit status other than 0."""
        return self.unfinished or self.signal is not None or self.exit_status != 0

    @property
    def unfinished(self) -> bool:
        """True if not started, or ended by us: the run is incomplete, whatever the policy."""
        return self.error is not None or self.timed_out or self.cancelled

    @property
    def cancelled_only(self) -> bool:
        """True if it was ended together with the experiment, and for no other reason."""
        return self.cancelled and self.error is None and not self.timed_out

    def value(self, metric: str) -> float | None:
        """The metric's value, or None if it could not be measured."""
        found = self.metrics.get(metric)
        return found[0] if found else None

    def ending(self) -> str:
        """Description of the command's end."""
        return ending_of(
            error=self.error,
            timed_out=self.timed_out,
            cancelled=self.cancelled,
            signal=self.signal,
            accepted=self.accepted,
            exit_status=self.exit_status,
        )

    def ending_here(self) -> str:
        """The same for a command on this machine, with the limit that prevented its start, if any."""
        limit = limit_reached(self.error)
        return self.ending() + (f"; {limit}" if limit else "")


def ending_of(
    *,
    error: str | None,
    timed_out: bool,
    cancelled: bool,
    signal: int | None,
    accepted: int | None,
    exit_status: int | None,
) -> str:
    """Description of a command's end."""
    if error is not None:
        return f"not started: {error}"
    if timed_out:
        return "ended after its timeout"
    if cancelled:
        return "ended with the experiment"
    if signal is not None:
        return f"killed by signal {signal} ({signal_name(signal)})"
    if accepted is not None:
        return f"exit status {accepted}, which ACCEPT names"
    return f"exit status {exit_status}"


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; the number for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


_OPTIONAL = Measurement._field_defaults.keys() - {"cache"}


def to_line(measurement: Measurement) -> dict[str, Any]:
    """The JSON object of a measurement; absent members are left out."""
    line = measurement._asdict()
    line["metrics"] = {
        name: value if value[0] is None or join_in_row(value) else value[:2]
        for name, value in measurement.metrics.items()
    }
    for name in _OPTIONAL:
        if line[name] is None:
            del line[name]
    return line


def from_line(line: Mapping[str, Any]) -> Measurement:
    """A measurement from its JSON object; untrusted objects must have passed `check_measurement`."""
    return Measurement._make(map(line.get, Measurement._fields))


class Joined(NamedTuple):
    """A trial's value of a metric, with its join."""

    value: float | None
    workers: int = 1
    """Number of workers with a value."""
    how: str = ""
    """Join of the workers; empty if there was only one value."""


def join_trial(measurements: Iterable[Measurement], metric: str) -> Joined:
    """One value of a trial from those of its workers: the longest elapsed, the summed CPU time, and so on.

    Several lines of one worker are commands that it ran one after the other. They are joined first: the longest worker
    is the one whose commands took longest together. None if no line has a value, or if values are not to be
    joined (Auto-pilot paper, section 3.3: elapsed is the longest thread's, CPU is summed).
    """
    first, by_worker = None, dict[int, list[float]]()
    for m in measurements:
        found = m.metrics.get(metric)
        if found is not None and found[0] is not None:
            first = first or found
            by_worker.setdefault(m.worker, []).append(float(found[0]))
    if first is None:
        return Joined(None)
    kind = metric_kind(metric, first[1], join_in_row(first))
    several = any(len(values) > 1 for values in by_worker.values())
    how = kind.join if len(by_worker) > 1 else kind.commands if several else ""
    joined = [join(values, kind.commands) for _, values in sorted(by_worker.items())]
    if any(value is None for value in joined):
        return Joined(None, len(by_worker), NONE)
    return Joined(join([v for v in joined if v is not None], kind.join), len(by_worker), how)


_COUNT, _TEXT, _FLAG, _NONE = int, str, bool, type(None)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "test": (_TEXT,),
    "trial": (_COUNT,),
    "block": (_COUNT,),
    "order": (_COUNT,),
    "worker": (_COUNT,),
    "host": (_TEXT,),
    "sitting": (_COUNT,),
    "boot_id": (_TEXT,),
    "command": (list,),
    "start": (_TEXT, _NONE),
    "start_ns": (_COUNT, _NONE),
    "inner": (_COUNT,),
    "exit_status": (_COUNT, _NONE),
    "signal": (_COUNT, _NONE),
    "timed_out": (_FLAG,),
    "cancelled": (_FLAG,),
    "error": (_TEXT, _NONE),
    "kept": (_FLAG,),
    "why": (_TEXT, _NONE),
    "metrics": (dict,),
}
_MAY_BE_THERE: Mapping[str, tuple[type, ...]] = {
    "cache": (dict, _NONE),
    "stdout": (dict, _NONE),
    "stderr": (dict, _NONE),
    "windows": (list, _NONE),
    "notes": (list,),
    "rows": (_COUNT,),
    "kernel": (list, _NONE),
    "throttled": (_COUNT, _NONE),
    "offset_ns": (_COUNT,),
    "offset_error_ns": (_COUNT,),
    "command_text": (_TEXT, _NONE),
    "accepted": (_COUNT, _NONE),
}
MOST = 2**63 - 1
"""The largest whole number that a measurement may hold."""
_BOUNDS = {"throttled": MOST, "accepted": 255}
_NUMBERS = (float, int)
_STREAM = [int, str, str]


def check_measurement(line: Mapping[str, Any]) -> None:
    """Raise for a JSON object that is no measurement. Its numbers are finite: the parser accepts no others.

    Raises:
        KeyError: a member is missing; ValueError, TypeError: a member is invalid.
    """
    for name, allowed in _TYPES.items():
        kind = type(line[name])
        if kind not in allowed or (kind is int and not 0 <= line[name] <= MOST):
            raise ValueError(f"{name} cannot be {short(line[name])}")
    for name, allowed in _MAY_BE_THERE.items():
        value = line.get(name)
        if name in line and (
            type(value) not in allowed or (name in _BOUNDS and not 0 <= (value or 0) <= _BOUNDS[name])
        ):
            raise ValueError(f"{name} cannot be {short(line[name])}")
    if line["inner"] < 1 or not all(type(word) is str for word in line["command"]):
        raise ValueError("inner must be at least 1, and command a list of strings")
    if "\n" in (line.get("command_text") or ""):
        raise ValueError(f"command_text cannot be {short(line['command_text'])}: it has two lines")
    if line.get("rows", 1) < 1:
        raise ValueError(f"rows cannot be {short(line['rows'])}")
    if line.get("kernel") is not None:
        _check_kernel(line["kernel"])
    if line.get("cache") is not None:
        _check_cache(line["cache"])
    for name, value in line["metrics"].items():
        # Nearly all metrics have this form, and thousands of lines are read while a benchmark waits.
        plain = type(value) is list and len(value) == 2 and type(value[0]) in _NUMBERS
        if not plain or type(value[1]) is not str:
            _check_metric(name, value)
        ours = METRICS.get(name)
        if ours is not None and (value[1] != ours.unit or (value[0] is not None and value[0] < 0)):
            raise ValueError(
                f"metric {name} must be a number of 0 or more in {ours.unit}, not {short(value)}"
            )
    for name in ("stdout", "stderr"):
        stream = line.get(name)
        if stream is not None and [type(stream.get(m)) for m in ("bytes", "sha256", "tail")] != _STREAM:
            raise ValueError(f"{name} must hold bytes, sha256 and tail")


def _check_cache(cache: Mapping[str, Any]) -> None:
    declared, performed = cache.get("declared"), cache.get("performed")
    if declared not in CACHE_WAYS or (performed is not None and performed not in CACHE_WAYS):
        raise ValueError(f"cache must hold declared and performed, of {', '.join(CACHE_WAYS)}")


def _check_kernel(messages: list[Any]) -> None:
    kinds = (int, int, str)
    for message in messages:
        if type(message) is not dict or tuple(type(message.get(m)) for m in ("ns", "level", "text")) != kinds:
            raise ValueError(f"kernel must hold objects with ns, level and text, not {short(message)}")


def _check_metric(name: str, value: Any) -> None:
    whole = type(value) is list and len(value) >= 2 and type(value[1]) is str
    if not whole or not (
        type(value[0]) in _NUMBERS or (value[0] is None and len(value) > 2 and type(value[2]) is str)
    ):
        expected = "[number, unit] or [null, unit, reason]"
        raise ValueError(f"metric {name} must be {expected}, not {short(value)}")
