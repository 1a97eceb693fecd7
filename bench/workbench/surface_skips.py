"""What --skip saves, and whether cells are as often right with it, on surfaces that nothing was made for.

python bench/workbench/surface_skips.py [--maps N] [--seed N] [--processes N] [--surfaces NAME,…]

A row a surface and mapper: benchmarking hours of a map, cells that were measured and predicted, and the share of all
cells within 10 % of the true peak rate; last the ratio of the hours of all surfaces together.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

from held_out_surfaces import HELD_OUT
from surface_searches import OURS, SKIP, Found, jobs, mapped
from surface_tables import FOUR, THRASH, right

HEADING = ("surface", "mapper", "hours", "measured", "predicted", "within 10 %", "of predicted")


def row(surface: str, mapper: str, found: list[Found]) -> str:
    """Means over maps."""
    told = [abs(error) <= 0.1 for each in found for error, _ in each.predicted]
    cells = [
        surface,
        mapper,
        f"{np.mean([each.hours for each in found]):.2f}",
        f"{np.mean([len(each.errors) for each in found]):.1f}",
        f"{np.mean([len(each.predicted) for each in found]):.1f}",
        f"{right(found):.1f} %",
        f"{100 * np.mean(told):.1f} % of {len(told)}" if told else "–",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--maps", type=int, default=4, help="of each surface (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="(default: one a CPU)")
    every = (*HELD_OUT, *FOUR, THRASH)
    parser.add_argument("--surfaces", default=",".join(every), help="by commas (default: ten)")
    options = parser.parse_args()
    surfaces = options.surfaces.split(",")
    found = mapped(jobs((OURS, SKIP), surfaces, options.seed, options.maps), options.processes)
    print("| " + " | ".join(HEADING) + " |\n" + "| --- " * len(HEADING) + "|")
    for surface in surfaces:
        for mapper in (OURS, SKIP):
            print(row(surface, mapper, found[mapper, surface]))
    hours = {m: sum(np.mean([each.hours for each in found[m, s]]) for s in surfaces) for m in (OURS, SKIP)}
    print(f"\n{SKIP}: {hours[SKIP] / hours[OURS]:.3f} of the hours of {OURS}, all surfaces together")


if __name__ == "__main__":
    main()
