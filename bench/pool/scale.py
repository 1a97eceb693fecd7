"""What a controller costs that maps 10 000 cells over many simulated nodes, and how near it comes to the ideal.

python bench/pool/scale.py [--samples N] [--nodes N …]

A cell takes ten minutes or so of benchmarking time and gives its peak rate with 3 % of noise; the decisions are real.
What the controller takes for them passes in virtual time as well: a node waits for its next cell until that is chosen.
"""

from __future__ import annotations

import math
import os
import resource
import sys
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

import numpy as np

from etude.cluster.pool.job import Job
from etude.cluster.pool.simulated import SimulatedPool
from etude.surface.factors import Configuration
from etude.surface.next_configuration import Rules, Visit, decide
from etude.surface.samples import Sample
from etude.surface.simulated import SURFACES, SimulatedSurface
from rows import HEADING, Row, line, options, progress

NODES = (1, 8, 64, 512)
SAMPLES = 10_000
MEAN_S, VARIES = 600.0, 0.4
"""Of a cell's benchmarking time: the median, and the standard deviation of its log."""
NOISE = 0.03
REACH = 0.9
"""Of the ideal span, with as many nodes as there are a twentieth of the cells or fewer."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one map."""

    nodes: int
    samples: int
    span_s: float
    """Virtual."""
    work_s: float
    """Benchmarking time of all cells."""
    cpu_s: float
    """Of the controller, choosing."""
    slowest_s: float
    """Choice."""
    memory_bytes: int
    """Of the controller's process, at its peak."""

    @property
    def efficiency(self) -> float:
        """Of the nodes' time that cells took."""
        return self.work_s / self.nodes / self.span_s


def sample_of(system: SimulatedSurface, visit: Visit) -> Sample:
    """As a search would give it; the same whenever it is measured."""
    noise, long = np.random.default_rng([system.seed, *visit.cell]).standard_normal(2)
    value, half = system.peak(visit.cell) * math.exp(NOISE * noise), math.exp(1.96 * NOISE)
    bounds = (value, value / half, value * half, 0.95)
    took_s = MEAN_S * math.exp(VARIES * long)
    return Sample(visit.cell, "measured", *bounds, took_s, 3, expected=visit.expected, spread=visit.spread)


def mapped(nodes: int, count: int) -> Cost:
    system = SimulatedSurface(SURFACES["wide"], 14)
    rules = Rules("adaptive", count)
    lasts_s: dict[str, float] = {}
    pool = SimulatedPool(nodes, lambda job, node: lasts_s[job.name])
    under_way: dict[str, Sample] = {}
    samples: list[Sample] = []
    busy_until_s, cpu_s, slowest_s = 0.0, 0.0, 0.0
    while True:
        while len(under_way) < nodes:
            pending: list[Configuration] = [each.cell for each in under_way.values()]
            began_s = time.process_time()
            visit = decide(system.space, rules, samples, pending)
            took_s = time.process_time() - began_s
            cpu_s, slowest_s = cpu_s + took_s, max(slowest_s, took_s)
            if not isinstance(visit, Visit):
                break
            busy_until_s = max(busy_until_s, pool.clock_s()) + took_s
            sample, name = sample_of(system, visit), system.space.name(visit.cell)
            lasts_s[name] = busy_until_s - pool.clock_s() + sample.cost_s
            under_way[pool.submit(Job(name, (), Path(), Path()))] = sample
        if not under_way:
            break
        samples += [under_way.pop(ended.id) for ended in pool.ended()]
        progress(f"{nodes} nodes, {len(samples)} of {count}")
    progress("")
    memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work_s = sum(each.cost_s for each in samples)
    return Cost(nodes, len(samples), pool.clock_s(), work_s, cpu_s, slowest_s, memory)


def costs(count: int, nodes: tuple[int, ...] = NODES) -> list[Cost]:
    """Each in a process of its own, so that its memory is its own."""
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return pool.starmap(mapped, [(each, count) for each in nodes], chunksize=1)


def row(cost: Cost) -> Row:
    said = (
        f"{100 * cost.efficiency:.1f} % of the ideal span; {1e3 * cost.cpu_s / cost.samples:.0f} ms CPU a choice "
        f"(at most {cost.slowest_s:.1f} s), {cost.memory_bytes / 2**20:.0f} MiB"
    )
    judged = cost.samples >= 20 * cost.nodes
    reach = f"≥ {100 * REACH:.0f} %" if judged else "–"
    what = f"{cost.samples} configurations over {cost.nodes} node{'s' if cost.nodes > 1 else ''}"
    return Row(what, "work / nodes", said, reach, cost.efficiency >= REACH if judged else None)


def pool_scale(count: int) -> list[Row]:
    return [row(each) for each in costs(count)]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES, help="(default %(default)s)")
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES, help="(default: 1 8 64 512)")
    given = parser.parse_args()
    print(*HEADING, sep="\n")
    for each in costs(given.samples, tuple(given.nodes)):
        print(line(row(each)), flush=True)


if __name__ == "__main__":
    main()
