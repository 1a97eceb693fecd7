"""What the TLBs reach, by a pointer chase, beside what CPUID tells: the landmarks of the I/O lab's figures.

    python bench/tlb_reach.py [--repeats N]

One line a page, less as many lines side by side, is what address translation costs. It rises beyond each reach.
"""

from __future__ import annotations

from contextlib import closing

import numpy as np

from etude.engine import Engine
from etude.iolab.landmarks import Landmark, landmarks, size_text
from rows import options, peer, printed, table

PAGE_BYTES = 4096
COUNTS = [round(2 ** (k / 2)) for k in range(10, 35)]
"""Pages: 32 to 92682, two sizes a power of two."""
RISES_NS = 0.5
"""A load that takes so much longer than at half the reach is one that misses."""


def main() -> None:
    """Print what a load costs at each number of pages, and beside each reach whether it rises there."""
    parser = options(__doc__)
    parser.add_argument("--repeats", type=int, default=9, help="the least of so many counts [default: 9]")
    given = parser.parse_args()
    costs = {count: cost_ns(count, given.repeats) for count in COUNTS}
    rows = [[str(count), size_text(count * PAGE_BYTES), f"{cost:.2f}"] for count, cost in costs.items()]
    print("\n".join(table(["pages", "reach", "ns a load by translation"], rows)))
    for mark in reaches():
        pages = mark.bytes // PAGE_BYTES
        half, double = cost_at(costs, pages / 2), cost_at(costs, 2 * pages)
        word = "rises" if double - half >= RISES_NS else "does not rise"
        print(f"{mark}: {half:.2f} ns at half of it, {double:.2f} ns at twice: {word}")


def cost_ns(count: int, repeats: int) -> float:
    """The least time of a load over pages, less the least of one over as many lines."""
    lines = printed(peer("chase"), str(count), str(repeats)).splitlines()
    times = np.array([line.split() for line in lines], dtype=float)
    return float(times[:, 0].min() - times[:, 1].min())


def cost_at(costs: dict[int, float], pages: float) -> float:
    """Interpolated between the counts that were measured, on a logarithmic scale."""
    return float(np.interp(np.log(pages), np.log(list(costs)), list(costs.values())))


def reaches() -> list[Landmark]:
    with closing(Engine()) as engine:
        told = {"machine": {"tlb": engine.hello.get("tlb", ())}}
    return [mark for mark in landmarks(told) if "TLB" in mark.name]


if __name__ == "__main__":
    main()
