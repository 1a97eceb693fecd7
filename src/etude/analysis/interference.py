"""Conditions during each trial of a test, by the monitor: use by others, all that slows a program down, and noisy
processes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from etude.results.monitor import Floats, Monitor, Process, Whole, load
from etude.results.series import Flags, Series

BUSY = ("cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq")
OWN = ("user", "system", "orphans_user", "orphans_system")
"""Metrics of the CPU time that a trial itself used."""
WORST = 4
"""Kernel messages up to this level, a warning, are counted."""


@dataclass(frozen=True)
class Quantity:
    """One quantity that the monitor measures over time."""

    name: str
    """Its label, such as `CPU pressure`."""
    matters: float
    """Excess over the usual from which it is reported."""
    unit: str
    """`CPUs`, `share`, `1/s`, `B/s`, `Hz`, or `1` of a count."""
    falls: bool = False
    """True if a lower value slows a program down."""
    share: float = 0.0
    """Minimum excess as a share of the usual value."""
    loses_s: float | None = 1.0
    """Time that one unit of the excess can cost a program per second (s); None if nothing bounds it."""
    waited: tuple[str, ...] = ()
    """Pressures in which its whole cost must show, if the kernel reports them."""


OTHERS = Quantity("other processes used", 0.2, "CPUs", share=0.25, waited=("CPU pressure",))
MESSAGES = Quantity("kernel messages", 0.5, "1", loses_s=None)
CLOCK = Quantity("clock rate", 0.0, "Hz", falls=True, share=0.05, loses_s=None)
LONGEST_FAULT_S, LONGEST_INTERRUPT_S, LONGEST_SWITCH_S = 0.02, 2e-5, 1e-5
"""Longest time that a page from a slow disk, an interrupt, or a switch with its cache misses costs (s)."""
FAULTS_WAIT = ("memory pressure", "I/O pressure")
NO_PRESSURE = "no pressure"
"""Name of time in which a trial neither runs nor waits for a CPU, memory or a disk."""
_PLAIN: Mapping[str, Quantity] = {
    "cpu.steal": Quantity("steal time (hypervisor)", 0.05, "CPUs"),
    "cpu.iowait": Quantity("waiting for I/O", 0.2, "CPUs", waited=("I/O pressure",)),
    "pressure.cpu.some": Quantity("CPU pressure", 0.1, "share"),
    "pressure.memory.some": Quantity("memory pressure", 0.02, "share"),
    "pressure.io.some": Quantity("I/O pressure", 0.1, "share"),
    "paging.swapped_in": Quantity(
        "pages swapped in", 10.0, "1/s", loses_s=LONGEST_FAULT_S, waited=FAULTS_WAIT
    ),
    "paging.swapped_out": Quantity(
        "pages swapped out", 10.0, "1/s", loses_s=LONGEST_FAULT_S, waited=FAULTS_WAIT
    ),
    "paging.major_faults": Quantity(
        "major faults", 100.0, "1/s", loses_s=LONGEST_FAULT_S, waited=FAULTS_WAIT
    ),
    "interrupts": Quantity("interrupts", 2000.0, "1/s", loses_s=LONGEST_INTERRUPT_S),
    "switches": Quantity(
        "context switches", 5000.0, "1/s", loses_s=LONGEST_SWITCH_S, waited=("CPU pressure",)
    ),
    "tasks.runnable": Quantity("runnable tasks", 2.0, "1"),
    "throttle.count": Quantity("throttling", 0.1, "1/s", loses_s=None),
}
_OF_EACH: Mapping[tuple[str, str], tuple[str, float, str]] = {
    ("disk", ".busy"): ("busy", 0.2, "share"),
    ("disk", ".read"): ("read", 2.0**20, "B/s"),
    ("disk", ".written"): ("written", 2.0**20, "B/s"),
    ("net", ".received"): ("received", 2.0**20, "B/s"),
    ("net", ".sent"): ("sent", 2.0**20, "B/s"),
}


@dataclass(frozen=True, eq=False)
class Interference:
    """A test's trials and the readings during them. Arrays have shape (trials,); NaN without a reading."""

    series: Series
    monitors: Mapping[int, Monitor]
    """Monitors by session."""
    values: Mapping[Quantity, Floats]
    """Rates per second, or levels."""
    monitored: Flags
    """Shape (trials,): True if the trial's time is known and a monitor ran in its session."""
    unseen: Floats
    """CPUs used by processes that ended before they were seen; 0 without a reading."""

    def monitor(self, place: int) -> Monitor | None:
        """Monitor of the trial's session; None if there is none, or if it is of another boot."""
        sittings = self.series.sittings
        found = self.monitors.get(1 if sittings is None else int(sittings[place]))
        boots = self.series.labels.get("boot")
        return None if found is not None and boots and boots[place] != found.boot_id else found

    def span(self, place: int) -> tuple[int, int] | None:
        """Start and end of a trial (ns); None if unknown."""
        if self.series.spans is None or self.series.spans[place, 0] < 0:
            return None
        low, high = self.series.spans[place].tolist()
        return (low, high) if high > low else None

    def seconds(self, place: int) -> float:
        """Duration of a trial (s); 0 if unknown."""
        span = self.span(place)
        return 0.0 if span is None else (span[1] - span[0]) / 1e9

    def level(self, place: int, name: str) -> float | None:
        """Mean rate per second of a monitor's column during a trial; None if it was not read."""
        monitor, span = self.monitor(place), self.span(place)
        if monitor is None or span is None or name not in monitor.columns:
            return None
        found = float(monitor.mean(monitor.rate(name), np.array([span[0]]), np.array([span[1]]))[0])
        return found if np.isfinite(found) else None

    def is_full(self, place: int) -> bool:
        """True if no CPU was idle during a trial."""
        idle = self.level(place, "cpu.idle")
        return idle is not None and idle < 0.1

    def is_coarse(self, place: int) -> bool:
        """True if a trial is shorter than the interval between readings."""
        monitor, span = self.monitor(place), self.span(place)
        return monitor is not None and span is not None and span[1] - span[0] < 0.999e9 * monitor.every_s


def load_monitors(directory: Path | None, experiment: Mapping[str, Any] | None) -> dict[int, Monitor]:
    """Monitors that have readings, by session number.

    Raises:
        InputError: a file cannot be read.
    """
    if directory is None or experiment is None:
        return {}
    numbers = [int(sitting["sitting"]) for sitting in experiment.get("sittings") or ()]
    found = ((number, load(directory, number)) for number in numbers)
    return {number: monitor for number, monitor in found if monitor is not None and monitor.samples}


def interference_of(
    series: Series, everything: Sequence[Series], monitors: Mapping[int, Monitor]
) -> Interference:
    """Readings during the trials of one test; `everything`: all series of those sessions."""
    found: dict[Quantity, Floats] = {}
    count = series.trials.size
    monitored, unseen = np.zeros(count, dtype=np.bool_), np.zeros(count)
    for sitting, monitor in monitors.items():
        places = _of_session(series, sitting, monitor)
        if not places.size:
            continue
        assert series.spans is not None
        low, high = series.spans[places].T
        monitored[places] = True
        unseen[places] = np.nan_to_num(monitor.mean(monitor.unseen_s / monitor.lengths_s, low, high))
        for what, rate in _rates(monitor, others_rate(monitor, everything, sitting)):
            found.setdefault(what, np.full(count, np.nan))[places] = monitor.mean(rate, low, high)
        at = np.sort(np.array([m.ns for m in monitor.messages if m.level <= WORST], dtype=np.int64))
        counts = np.searchsorted(at, high, "right") - np.searchsorted(at, low, "left")
        found.setdefault(MESSAGES, np.full(count, np.nan))[places] = counts
    return Interference(series, monitors, found, monitored, unseen)


def others_rate(monitor: Monitor, everything: Iterable[Series], sitting: int) -> Floats:
    """CPUs that others used in each reading: the busy time less what the trials used, shape (samples,).

    A trial's own CPU time is taken to have been used evenly while it ran; what is left is never below 0.
    """
    busy = _sum(monitor, [name for name in BUSY if name in monitor.columns])
    own = np.zeros(monitor.samples)
    for series in everything:
        places = _of_session(series, sitting, monitor)
        if not places.size:
            continue
        assert series.spans is not None
        spans = series.spans[places]
        used = sum(
            (np.nan_to_num(c.values[places]) for name in OWN if (c := series.column(name)) is not None),
            start=np.zeros(places.size),
        )
        order = np.argsort(spans[:, 0], kind="stable")
        sums = np.cumsum(used[order] * series.inner)
        times = np.maximum.accumulate(spans[order].ravel())
        heights = np.column_stack((sums - used[order] * series.inner, sums)).ravel()
        start = monitor.edges_ns[0]
        own += np.diff(np.interp(monitor.edges_ns - start, times - start, heights, left=0.0))
    found: Floats = np.maximum(busy - own / monitor.lengths_s, 0.0)
    return found


def _of_session(series: Series, sitting: int, monitor: Monitor) -> Whole:
    if series.spans is None or not series.trials.size:
        return np.empty(0, dtype=np.int64)
    there = (series.spans[:, 0] >= 0) & (series.spans[:, 1] > series.spans[:, 0])
    if series.sittings is not None:
        there &= series.sittings == sitting
    if boots := series.labels.get("boot"):
        there &= np.array([boot == monitor.boot_id for boot in boots], dtype=np.bool_)
    found: Whole = np.flatnonzero(there)
    return found


def _rates(monitor: Monitor, others: Floats) -> Iterable[tuple[Quantity, Floats]]:
    """Quantities to check and their rates, the most telling first."""
    yield OTHERS, others
    for name, what in _PLAIN.items():
        if name in monitor.columns:
            yield what, monitor.rate(name)
    for (group, end), (word, matters, unit) in _OF_EACH.items():
        for name in monitor.names(group, end):
            device = name.removeprefix(f"{group}.").removesuffix(end)
            busy = 1.0 if end == ".busy" else None
            waited = "I/O pressure" if group == "disk" else NO_PRESSURE
            what = Quantity(f"{device} {word}", matters, unit, loses_s=busy, waited=(waited,))
            yield what, monitor.rate(name)
    clocks = [name for name in monitor.names("frequency") if name not in ("frequency.min", "frequency.max")]
    if clocks:
        yield CLOCK, _sum(monitor, clocks) / len(clocks)


def _sum(monitor: Monitor, names: Sequence[str]) -> Floats:
    if not names:
        return np.full(monitor.samples, np.nan)
    found: Floats = np.sum([monitor.rate(name) for name in names], axis=0)
    return found


OURS = ("etude", "etude-engine")
"""Names of Étude's own processes, which do not count; the engine's children are excluded by their cgroup."""
GROUP = "/etude-"
"""Beginning of the name of a trial's cgroup."""
COMPARED = 200
"""Number of other trials to compare: of more, about as many are taken at regular steps."""


@dataclass(frozen=True)
class NoisyProcess:
    """Processes of one name."""

    name: str
    cpus: float
    """CPU time per second."""
    bytes_per_s: float
    """Read from and written to devices."""
    pids: tuple[int, ...]
    """Process numbers, the largest user first."""


def noisy_processes(found: Interference, place: int, others: Whole) -> list[NoisyProcess]:
    """Processes that used more during the trial at `place` than during `others`, most CPU time first.

    A name that is as active during the other trials belongs to the trial itself, or is no cause.
    """
    here = _used(found, place)
    step = max(1, len(others) // COMPARED)
    usual = [_used(found, other) for other in others[::step].tolist()]
    told = []
    for name, each in here.items():
        culprit = _joined(name, each)
        before = [_joined(name, there.get(name, {})) for there in usual]
        if exceeds(culprit.cpus, [b.cpus for b in before], 0.1) or exceeds(
            culprit.bytes_per_s, [b.bytes_per_s for b in before], 2.0**20
        ):
            told.append(culprit)
    return sorted(told, key=lambda each: (-each.cpus, -each.bytes_per_s, each.name))


def exceeds(value: float, usual: Sequence[float] | Floats, matters: float, strict: float = 5.0) -> bool:
    """True if a value exceeds the usual median by at least `matters` and `strict` robust deviations.

    The deviation is 1.4826 times the median absolute deviation, as of normal values.
    """
    if not len(usual) or not np.isfinite(value):
        return False
    middle = float(np.median(usual))
    spread = 1.4826 * float(np.median(np.abs(np.array(usual) - middle)))
    return value - middle >= max(matters, strict * spread)


def _used(found: Interference, place: int) -> dict[str, dict[tuple[int, int], tuple[float, float]]]:
    """CPUs and bytes per second by name and process, during the trial at `place`."""
    monitor, span = found.monitor(place), found.span(place)
    if monitor is None or span is None:
        return {}
    sums: dict[str, dict[tuple[int, int], tuple[float, float]]] = defaultdict(dict)
    for process, share in _foreign(monitor, span):
        known = sums[process.name].get((process.pid, process.start), (0.0, 0.0))
        moved = (process.read_bytes or 0.0) + (process.written_bytes or 0.0)
        sums[process.name][process.pid, process.start] = (
            known[0] + share * process.cpu_s,
            known[1] + share * moved,
        )
    seconds = (span[1] - span[0]) / 1e9
    return {
        name: {key: (cpu / seconds, moved / seconds) for key, (cpu, moved) in each.items()}
        for name, each in sums.items()
    }


def _foreign(monitor: Monitor, span: tuple[int, int]) -> Iterable[tuple[Process, float]]:
    for process, share in monitor.processes(*span):
        if process.pid != monitor.pid and process.name not in OURS and GROUP not in process.cgroup:
            yield process, share


def _joined(name: str, each: dict[tuple[int, int], tuple[float, float]]) -> NoisyProcess:
    pids = [pid for (pid, _), _ in sorted(each.items(), key=lambda item: item[1], reverse=True)]
    return NoisyProcess(
        name, sum(cpu for cpu, _ in each.values()), sum(b for _, b in each.values()), tuple(pids)
    )
