"""How much sooner a surface is mapped on eight nodes than on one, in benchmarking time, and how good it then is.

python bench/pool/pool_surface.py [--maps N]

Each map chooses as many cells of a simulated system and searches the peak rate of each, as `etude surface` does; a
search is shorter where more is known when it begins, so eight that begin together pay for what they do not know of
each other. Efficiency is the span on one node over eight spans on eight: nodes without work at the end count. The
error is that of the whole surface, cells that were not measured by prediction.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

from pool_maps import Asked, Made, made

from rows import HEADING, Row, line, progress, spread

NODES = 8
REACH = {32: 0.65, 128: 0.8}
"""By cells, the efficiency."""
SURFACES = {32: ("wide", "cached", "batches", "DB_TP"), 128: ("wide", "cached", "batches")}
"""DB_TP has 32 cells, which are all measured; the others have thousands or hundreds, and the plan chooses."""
WORSE = 1.1
"""So much greater than on one node the error may be, on average over maps, where cells are chosen."""
MAPS = 3


def pool_surface(maps: int) -> list[Row]:
    """A row for each number of cells, and one for each surface."""
    parties = ((1, True), (NODES, True), (NODES, False))
    asked = [
        Asked(surface, number, cells, nodes, aware)
        for cells, surfaces in sorted(SURFACES.items(), reverse=True)  # the longest first
        for surface in surfaces
        for number in range(maps)
        for nodes, aware in parties
    ]
    found: dict[Asked, Made] = {}
    with Pool(os.cpu_count()) as pool:
        for each, got in zip(asked, pool.imap(made, asked, chunksize=1), strict=True):
            found[each] = got
            progress(f"{len(found)}/{len(asked)} maps, {each.surface}")
    progress("")
    rows = []
    for cells, surfaces in SURFACES.items():
        of = {
            name: [each for each in asked if (each.cells, each.surface) == (cells, name)] for name in surfaces
        }
        rows.append(_judged(cells, [each for every in of.values() for each in every], found))
        rows += [_row(f"{name}, {cells} cells", each, found) for name, each in of.items()]
    return rows


def _judged(cells: int, asked: Sequence[Asked], found: dict[Asked, Made]) -> Row:
    row = _row(f"{cells} cells over {NODES} nodes, all surfaces", asked, found)
    reached = fmean(_efficiencies(asked, found, aware=True)) >= REACH[cells]
    chosen = [each for each in asked if each.surface != "DB_TP"]
    reached &= _error(chosen, found, NODES, True) <= WORSE * _error(chosen, found, 1, True)
    limit = f"mean ≥ {REACH[cells]:g}, error ≤ {WORSE:g} × where cells are chosen"
    return replace(row, reach=limit, reached=reached)


def _row(what: str, asked: Sequence[Asked], found: dict[Asked, Made]) -> Row:
    ours, naive = (_efficiencies(asked, found, aware=aware) for aware in (True, False))
    errors = [
        100 * _error(asked, found, nodes, aware)
        for nodes, aware in ((NODES, True), (1, True), (NODES, False))
    ]
    said = f"{fmean(ours):.2f} of the ideal; median {spread(ours)}; error {errors[0]:.1f} %"
    rival = (
        f"one node: error {errors[1]:.1f} %; others under way ignored: {fmean(naive):.2f}, {errors[2]:.1f} %"
    )
    return Row(what, rival, said, "–", None)


def _efficiencies(asked: Sequence[Asked], found: dict[Asked, Made], *, aware: bool) -> list[float]:
    wanted = [each for each in asked if each.nodes == NODES and each.aware == aware]
    ones = [found[replace(each, nodes=1, aware=True)] for each in wanted]
    return [one.span_s / NODES / found[each].span_s for one, each in zip(ones, wanted, strict=True)]


def _error(asked: Sequence[Asked], found: dict[Asked, Made], nodes: int, aware: bool) -> float:
    return fmean(found[each].error for each in asked if (each.nodes, each.aware) == (nodes, aware))


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--maps", type=int, default=MAPS, help="of each surface (default %(default)s)")
    print(*HEADING, *map(line, pool_surface(parser.parse_args().maps)), sep="\n")


if __name__ == "__main__":
    main()
