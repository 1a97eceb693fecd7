"""Simulated systems with a known peak rate at every configuration.

Six are the reference surfaces: disks × nfsds by exact mean-value analysis, modelled on the workloads of "Cutting
Corners". The others belong to no family that a surrogate fits: a cache cliff, a product with an interaction, and one
with 10 000 configurations. The roughness of a configuration, which no surrogate can know, depends only on the seed and
the configuration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from etude.peak.harnesses.curves import CURVES, Curve
from etude.surface.factors import Configuration, Factor, Space

Levels = Mapping[str, float | str]
"""Levels by factor name."""

OF_CAPACITY = 0.9
"""Peak rate as a share of the maximum throughput."""


@dataclass(frozen=True, slots=True)
class Law:
    """A kind of system: its configurations, its smooth peak rate, and its response against load."""

    name: str
    space: Space
    smooth: Callable[[Levels], float]
    """Smooth peak rate at a configuration's levels, requests/s."""
    rough: float
    """Standard deviation of the log of the peak rate around it."""
    curve: Curve
    monotone: bool = True


@dataclass(frozen=True, slots=True)
class SimulatedSurface:
    """A law and a seed: one system."""

    law: Law
    seed: int

    @property
    def space(self) -> Space:
        """Space of its configurations."""
        return self.law.space

    @property
    def curve(self) -> Curve:
        """Curve of every configuration."""
        return self.law.curve

    def peak(self, configuration: Configuration) -> float:
        """λ*, requests/s."""
        factors = self.space.factors
        levels = {
            factor.name: factor.levels[level] for factor, level in zip(factors, configuration, strict=True)
        }
        own = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=configuration))
        return self.law.smooth(levels) * math.exp(self.law.rough * float(own.standard_normal()))


def throughput(demands_ms: Sequence[float], think_ms: float, population: int) -> float:
    """Throughput of a closed network, requests/s: exact mean-value analysis (Reiser & Lavenberg 1980)."""
    queues = [0.0] * len(demands_ms)
    rate = 0.0
    for customers in range(1, population + 1):
        times = [demand * (1 + queue) for demand, queue in zip(demands_ms, queues, strict=True)]
        rate = customers / (think_ms + sum(times))
        queues = [rate * time for time in times]
    return 1e3 * rate


@dataclass(frozen=True, slots=True)
class FileServer:
    """File server: nfsds that share disks, a processor and optionally a lock. Times in ms."""

    disk: float
    cpu: float
    serial: float
    think: float
    thrash: float
    thrash_from: int

    def __call__(self, levels: Levels) -> float:
        disks, nfsds = int(levels["disks"]), int(levels["nfsds"])
        demands = [self.disk / disks] * disks + [self.cpu] + ([self.serial] if self.serial else [])
        doublings = max(0.0, math.log2(nfsds / self.thrash_from))
        return float(OF_CAPACITY * throughput(demands, self.think, nfsds) * (1 - self.thrash) ** doublings)


def cached_service(levels: Levels) -> float:
    """Workers with a cache whose misses go to one disk, under a CPU quota, over one of several networks."""
    workers, cache_mb = int(levels["workers"]), float(levels["cache"])
    wire_ms, latency_ms = {"loopback": (0.02, 0.1), "wired": (0.45, 0.8), "wireless": (1.6, 6.0)}[
        str(levels["network"])
    ]
    # The working set is 300 MB: a loop over it almost always misses until it fits.
    missed = 0.04 + 0.66 / (1 + (cache_mb / 300) ** 6)
    demands = [1.2 / float(levels["quota"]), 6.0 * missed, wire_ms]
    return OF_CAPACITY * throughput(demands, latency_ms, workers)


def compressed_batches(levels: Levels) -> float:
    """Product of powers; batching has less effect with many threads."""
    threads, batch = math.log2(float(levels["threads"])), math.log2(float(levels["batch"]))
    codec = {"none": 1.0, "fast": 0.8, "strong": 0.34}[str(levels["codec"])]
    level = {"low": 1.0, "middle": 0.93, "high": 0.71}[str(levels["checks"])]
    steeper = 0.10 if levels["codec"] == "strong" else 0.0
    power = (0.45 + steeper) * threads + 0.35 * batch - 0.045 * threads * batch - 0.012 * batch**2
    return 120.0 * codec * level * math.pow(2.0, power)


def wide_service(levels: Levels) -> float:
    """Workers, connections, memory and block size, on two kinds of disk: limits, a product and a hump."""
    workers, connections = float(levels["workers"]), float(levels["connections"])
    memory, block = float(levels["memory"]), float(levels["block"])
    disk = {"ssd": 5000.0, "hdd": 900.0}[str(levels["disk"])] * (1 + memory / 40)
    compute = 260.0 * workers / (1 + 0.01 * workers**1.3)
    clients = 45.0 * connections / (1 + connections / 900)
    together = math.pow(disk**-3 + compute**-3 + clients**-3, -1 / 3)
    return together * math.exp(-0.08 * math.log2(block / 16) ** 2)


DISKS = Factor("disks", "linear", (1, 2, 3, 4))
NFSDS = Factor("nfsds", "log", (1, 2, 4, 8, 16, 32, 64, 100))
FILE_SERVER = Space((DISKS, NFSDS))

_CACHED = Space(
    (
        Factor("workers", "log", (1, 2, 4, 8, 16)),
        Factor("cache", "log", (64, 128, 256, 512, 1024), "MB"),
        Factor("quota", "log", (0.25, 0.5, 1, 2), "CPUs"),
        Factor("network", "categorical", ("loopback", "wired", "wireless")),
    )
)
_BATCHES = Space(
    (
        Factor("threads", "log", (1, 2, 4, 8, 16)),
        Factor("batch", "log", (1, 4, 16, 64)),
        Factor("codec", "categorical", ("none", "fast", "strong")),
        Factor("checks", "ordered", ("low", "middle", "high")),
    )
)
_WIDE = Space(
    (
        Factor("workers", "log", (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)),
        Factor("connections", "log", (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)),
        Factor("memory", "linear", (4, 8, 12, 16, 20, 24, 28, 32, 36, 40), "GB"),
        Factor("block", "log", (4, 8, 16, 32, 64), "KB"),
        Factor("disk", "categorical", ("hdd", "ssd")),
    )
)


def _named(*laws: Law) -> Mapping[str, Law]:
    return MappingProxyType({law.name: law for law in laws})


_DB_TP = FileServer(7.5, 0.35, 0.0, 1.0, 0.03, 32)

REFERENCE = _named(
    Law("DB_TP", FILE_SERVER, _DB_TP, 0.03, CURVES["mm1"]),
    Law("Web", FILE_SERVER, FileServer(2.2, 0.55, 0.0, 1.0, 0.02, 32), 0.02, CURVES["mmc"]),
    Law("Mail", FILE_SERVER, FileServer(2.0, 0.50, 4.2, 0.3, 0.01, 32), 0.012, CURVES["ramp"]),
    Law("SPECsfs97", FILE_SERVER, FileServer(3.6, 0.80, 0.6, 1.0, 0.03, 32), 0.025, CURVES["knee"]),
    Law("DB_TP-tail", FILE_SERVER, _DB_TP, 0.03, CURVES["tail"]),
    Law("DB_TP-thrash", FILE_SERVER, FileServer(7.5, 0.35, 0.0, 1.0, 0.12, 8), 0.04, CURVES["mm1"], False),
)
"""The paper's workloads and two more. All thrash a little beyond 32 nfsds."""

OWN = _named(
    Law("cached", _CACHED, cached_service, 0.02, CURVES["mm1"]),
    Law("batches", _BATCHES, compressed_batches, 0.02, CURVES["knee"]),
    Law("wide", _WIDE, wide_service, 0.03, CURVES["mmc"], False),
)
"""Surfaces with 300, 180 and 10 000 configurations."""

SURFACES = MappingProxyType({**REFERENCE, **OWN})
