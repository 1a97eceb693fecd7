"""A C program made slower by a known share, compared with itself: how often the verdict's interval holds the truth.

    python bench/true_slowdown.py [--runs N] [--time SECONDS] [--trial MILLISECONDS]

Of no slowdown it counts false differences. A start of the process, which is not slower, is a small part of a trial.
A C compiler is needed; the machine may be as noisy as it is.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rows import ETUDE, options, printed, progress, table, wall_s

PROGRAM = """
#include <stdlib.h>
int main(int count, char **words)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 0, last = strtoul(words[1], 0, 10); i < last; i++)
        sum += i * i;
    return count != 2;
}
"""
SLOWDOWNS = (0.0, 0.01, 0.02, 0.05)
PROBE_ITERATIONS = 20_000_000


def main() -> None:
    parser = options(__doc__)
    parser.add_argument(
        "--runs", type=int, default=15, help="of each slowdown; of none 40 of 15 [default: 15]"
    )
    parser.add_argument("--time", default="10", help="of each comparison, s [default: 10]")
    parser.add_argument("--trial", type=float, default=100.0, help="length of a trial, ms [default: 100]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        program = compiled(Path(directory))
        base = round(given.trial / 1000.0 / per_iteration(program))
        rows = []
        for slowdown in SLOWDOWNS:
            runs = given.runs if slowdown else round(given.runs * 40 / 15)
            duration = given.time if slowdown else "2"
            found = [compared(program, base, slowdown, seed, duration) for seed in range(1, runs + 1)]
            rows.append(row(slowdown, found))
            print(" | ".join(rows[-1]), file=sys.stderr)
    header = [
        "slower by",
        "runs",
        "interval holds it",
        "difference claimed",
        "quieter metric named",
        "its interval",
    ]
    print("\n".join(table(header, rows)))


def compiled(directory: Path) -> str:
    source, program = directory / "loop.c", directory / "loop"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-O2", "-o", program, source], check=True)
    return str(program)


def per_iteration(program: str) -> float:
    """Seconds an iteration takes: the shortest of five runs."""
    return min(wall_s([program, str(PROBE_ITERATIONS)]) for _ in range(5)) / PROBE_ITERATIONS


def compared(program: str, base: int, slowdown: float, seed: int, duration: str) -> dict[str, Any]:
    progress(f"{100 * slowdown:g} %: run {seed}")
    with tempfile.TemporaryDirectory() as directory:
        slower = round(base * (1.0 + slowdown))
        commands = ["-n", "A", f"{program} {base}", "-n", "B", f"{program} {slower}"]
        how = [
            "--json",
            "--time",
            duration,
            "--seed",
            str(seed),
            "-o",
            f"{directory}/r",
            "--max-trials",
            "5000",
        ]
        found = printed(ETUDE, "bench", *how, *commands)
    comparison: dict[str, Any] = json.loads(found)["comparisons"][0]
    return comparison


def row(slowdown: float, found: list[dict[str, Any]]) -> list[str]:
    truth = 1.0 + slowdown
    quieter = [each["quieter"] for each in found if each.get("quieter")]

    def of(count: int, among: int = len(found)) -> str:
        return f"{count} of {among}"

    return [
        f"{100 * slowdown:g} %",
        str(len(found)),
        of(sum(each["ratio"]["low"] <= truth <= each["ratio"]["high"] for each in found)),
        of(sum(bool(each["differs"]) for each in found)),
        of(len(quieter)),
        of(sum(q["ratio"]["low"] <= truth <= q["ratio"]["high"] for q in quieter), len(quieter)),
    ]


if __name__ == "__main__":
    main()
