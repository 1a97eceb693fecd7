"""Five surfaces that no surrogate and no rule was made for: none is a minimum of limits but one, and that has steps."""

from __future__ import annotations

import math

from etude.peak.harnesses.curves import MM1, Curve, Knee, MMc, Ramp
from etude.surface.factors import Factor, Space
from etude.surface.simulated import Law, Levels


def parallel(levels: Levels) -> float:
    """Cores with a serial part, and memory that soon is enough."""
    cores, memory = float(levels["cores"]), float(levels["memory"])
    return 90 * cores / (1 + 0.08 * (cores - 1)) * (1 - 0.7 * math.exp(-memory / 6))


def additive(levels: Levels) -> float:
    """Threads and disks that add to each other, on three file systems."""
    of_disks = {"ext4": 1.0, "xfs": 1.25, "btrfs": 0.7}[str(levels["fs"])]
    return 150 + 80 * math.log2(float(levels["threads"])) + 25 * float(levels["disks"]) * of_disks


def locked(levels: Levels) -> float:
    """Threads that wait for the locks of shards: too many are slower."""
    threads, shards = float(levels["threads"]), float(levels["shards"])
    return 1400 * threads / (8 + threads + 0.06 * threads**2 / shards)


def buffered(levels: Levels) -> float:
    """A buffer and a queue, each of which saturates, with encryption or without."""
    buffer, queue = float(levels["buffer"]), float(levels["queue"])
    of_mode = {"tls": 0.6, "plain": 1.0}[str(levels["mode"])]
    return 900 * buffer**0.3 / (buffer**0.3 + 3) * (1 - math.exp(-queue / 5)) * of_mode


def stepped(levels: Levels) -> float:
    """Nodes and clients with sharp limits, and a loss beyond four nodes."""
    nodes, clients = float(levels["nodes"]), float(levels["clients"])
    return min(130 * nodes, 60 * clients, 700) * (0.9 if nodes > 4 else 1.0)


def _doubled(name: str, first: int, count: int) -> Factor:
    return Factor(name, "log", tuple(float(first * 2**at) for at in range(count)))


def _law(name: str, factors: tuple[Factor, ...], rough: float, curve: Curve, monotone: bool = True) -> Law:
    smooth = {
        "parallel": parallel,
        "additive": additive,
        "locked": locked,
        "buffered": buffered,
        "stepped": stepped,
    }
    return Law(name, Space(factors), smooth[name], rough, curve, monotone)


_DISKS = Factor("disks", "linear", (1.0, 2.0, 3.0, 4.0))
_FS = Factor("fs", "categorical", ("ext4", "xfs", "btrfs"))
_BUFFER = Factor("buffer", "log", (4.0, 16.0, 64.0, 256.0, 1024.0))
_MODE = Factor("mode", "categorical", ("tls", "plain"))
_NODES = Factor("nodes", "linear", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))

HELD_OUT = {
    law.name: law
    for law in (
        _law("parallel", (_doubled("cores", 1, 6), _doubled("memory", 1, 6)), 0.02, MM1()),
        _law("additive", (_doubled("threads", 1, 5), _DISKS, _FS), 0.025, MMc()),
        _law("locked", (_doubled("threads", 1, 7), _doubled("shards", 1, 5)), 0.03, Knee(), monotone=False),
        _law("buffered", (_BUFFER, _doubled("queue", 1, 5), _MODE), 0.03, MM1()),
        _law("stepped", (_NODES, _doubled("clients", 1, 6)), 0.02, Ramp(), monotone=False),
    )
}
