"""How long a verdict takes over many stored trials, beside a plain script that reads the same lines."""

from __future__ import annotations

import sys

from made import results
from rows import BUILD, ETUDE, Row, interleave, ratios, spread, wall_s

SIZES = (10**4, 10**5, 10**6)
MOST_S = {10**4: 1.0, 10**6: 10.0}
PEER = """
import json, statistics, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
values = [row["metrics"]["elapsed"][0] for row in rows if row["kept"]]
print(statistics.fmean(values), statistics.stdev(values))
"""


def verdict_time(rounds: int) -> list[Row]:
    """`etude stats` of one test with more and more stored trials (1.2 GB at most), and how its time grows."""
    parties, what = {}, {}
    for size in SIZES if rounds > 1 else SIZES[:2]:
        directory = results(BUILD / f"verdict-{size}", 1, size)
        file = str(directory / "configuration-0" / "results.jsonl")
        parties[f"etude {size}"] = lambda d=str(directory): wall_s([ETUDE, "stats", d])
        parties[f"peer {size}"] = lambda f=file: wall_s([sys.executable, "-c", PEER, f])
        what[size] = f"etude stats, {size:,} stored trials"
    found = interleave(parties, rounds + 1)
    rows = []
    for size, name in what.items():
        took = spread(found[f"etude {size}"])
        ratio = ratios(found[f"etude {size}"], found[f"peer {size}"])
        most = MOST_S.get(size)
        rows.append(
            Row(
                name,
                f"json.loads of each line, mean and deviation: {spread(found[f'peer {size}'])} s",
                f"{took} s, {ratio} ×",
                f"≤ {most:g} s" if most else "–",
                took.median <= most if most else None,
            )
        )
    if len(what) > 2:
        growth = ratios(found[f"etude {SIZES[2]}"], found[f"etude {SIZES[1]}"])
        rows.append(
            Row("the same: 10 × as many trials", "10^5 trials", f"{growth} ×", "≤ 10 ×", growth.median <= 10)
        )
    return rows
