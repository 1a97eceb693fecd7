"""Processes that used more during one trial than during the others, by the monitor's top lists."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from etude.analysis.interference import Interference
from etude.results.monitor import Floats, Monitor, Process, Whole

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
