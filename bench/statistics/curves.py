"""Curves over a size: what intervals of crossings cover."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from two_samples import percent

from calibrate_tables import paragraph, share, table
from etude.stats.crossings import crossing


def level_crossings(rng: Generator, replications: int) -> list[str]:
    """Where a constant difference of two tests falls below 5 % and 1 % of a cost that grows with size."""
    few = max(2, replications // 8)
    sizes = 2.0 ** np.arange(10, 31)
    base = 4e-4 + sizes / 8e9
    ratios = 1.0 + 3e-4 / base
    rows = []
    for level in (1.05, 1.01):
        last = int(np.flatnonzero(ratios >= level)[-1])
        part = (ratios[last] - level) / (ratios[last] - ratios[last + 1])
        on_line = float(sizes[last] * 2.0**part)
        on_curve = (3e-4 / (level - 1.0) - 4e-4) * 8e9
        for trials in (10, 20):
            for spread in (0.003, 0.01, 0.03):
                held, open_end, wide = [], 0, []
                for _ in range(few):
                    samples = [
                        [y * np.exp(rng.normal(0.0, spread, trials)) for y in middle]
                        for middle in (base, base * ratios)
                    ]
                    found = crossing(sizes, *samples, level, seed=int(rng.integers(1 << 31)))
                    if found.interval is None:
                        open_end += 1
                        continue
                    low, high = found.interval.low, found.interval.high
                    held.append((low <= on_line <= high, low <= on_curve <= high))
                    wide.append(np.log2(high / low))
                means = np.mean(held, axis=0) if held else (np.nan, np.nan)
                covers = [share(float(m), len(held)) if held else "–" for m in means]
                width = f"{np.median(wide):.2f}" if wide else "–"
                shown = f"{100 * (level - 1):.0f} %, cv {100 * spread:g} %"
                rows.append([shown, str(trials), *covers, width, percent(open_end / few)])
    return [
        "## Where a ratio falls below a level",
        "",
        *paragraph(
            "Two tests that differ by 0.3 ms, over 1 KiB to 1 GiB at 8 GB/s. Of the interval of the size from which on",
            "they differ by less: coverage in % of the crossing of the line that is drawn between powers of two, and",
            "of that of the true curve between them; median width in powers of two; share without an interval, in %",
            f"({few} experiments each).",
        ),
        *table(["level and spread", "trials", "line covered", "curve covered", "width", "no interval"], rows),
    ]
