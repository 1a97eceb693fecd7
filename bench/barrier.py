"""From the first to the last worker's own start stamp, behind the barrier and without one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from rows import ETUDE, Row, peer

TRIALS = 200
PROGRAM = "/bin/true"


def spans_us(workers: int, trials: int) -> list[float]:
    """First to last start of each trial's workers, µs."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(
            [
                ETUDE,
                "bench",
                "--trials",
                str(trials),
                "--workers",
                str(workers),
                "-n",
                "true",
                "-o",
                f"{directory}/r",
                PROGRAM,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        starts: dict[int, list[int]] = {}
        for line in (Path(directory) / "r" / "true" / "results.jsonl").read_text().splitlines():
            row = json.loads(line)
            if row["kept"]:
                starts.setdefault(row["trial"], []).append(row["start_ns"])
    return [(max(found) - min(found)) / 1000 for found in starts.values()]


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def barrier(_: int) -> list[Row]:
    """As many workers as cores, which must start together; and 64, which cannot."""
    rows = []
    cores = len(os.sched_getaffinity(0))
    for workers, reach in ((cores, 100.0), (64, None)):
        ours = spans_us(workers, TRIALS if workers == cores else 50)
        out = subprocess.run(
            [peer("fork_loop"), str(workers), str(len(ours)), PROGRAM],
            check=True,
            capture_output=True,
            text=True,
        )
        p50_peer, p90_peer = re.findall(r"p\d+ ([\d.]+)", out.stdout)
        p90 = percentile(ours, 0.9)
        rows.append(
            Row(
                f"first to last start of {workers} workers, p50 / p90",
                f"forks without a barrier: {p50_peer} / {p90_peer} µs",
                f"{percentile(ours, 0.5):.1f} / {p90:.1f} µs",
                "≤ 100 µs at p90" if reach else "–",
                p90 <= reach if reach else None,
            )
        )
    return rows
