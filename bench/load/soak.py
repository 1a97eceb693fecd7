"""A load held for long at 80 % of the highest rate: is its memory flat, and does what is offered stay what was asked?

python bench/load/soak.py [--minutes M] [--place DIR]

The highest rate is what is completed while more is asked than can be made: reads of 4 KiB that are in memory, on one
processor. Memory is the resident set of the generator, each second.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

import numpy as np

from etude.program import engine_path
from load.files import command_of
from rows import measured_where, options, printed, table

MOST = 5_000_000
PART = 0.8


def main() -> None:
    """Prints the rates, and a line for each tenth of the run."""
    parser = options(__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--place", type=Path, help="a directory on the file system [default: that of $TMPDIR]"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="etude-soak-", dir=given.place) as scratch:
        place = Path(scratch)
        highest = sum(window["completed"] for window in windows(place, MOST, 5.0)) / 5.0
        rate = PART * highest
        version = printed(engine_path(), "--version").strip()
        print(
            *measured_where(f"{given.minutes:g} minutes at {rate:,.0f} requests/s", [version]), "", sep="\n"
        )
        print(f"Highest rate: {highest:,.0f} requests/s.\n", flush=True)
        found = list(windows(place, rate, given.minutes * 60))
    print(*tenths(found, rate), sep="\n")


def windows(place: Path, rate: float, seconds: float) -> Iterator[dict[str, Any]]:
    """Windows of a load as they come, each with the generator's resident set at its end, B."""
    words = ["--rate", f"{rate:.0f}", "--seconds", f"{seconds:g}", "--wait", "hybrid"]
    command = ["taskset", "-c", "0", *command_of(place, 1), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            window = json.loads(line)
            if "summary" not in window:
                yield window | {"resident": resident_bytes(process.pid), "at_s": time.monotonic()}


def resident_bytes(pid: int) -> int:
    """What of it is in memory; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except (OSError, IndexError):
        return 0


def tenths(found: list[dict[str, Any]], rate: float) -> Iterator[str]:
    """A row a tenth of the run, and the slope of memory over all of it but the first minute."""
    rows = []
    for part in np.array_split(np.array(found, dtype=object), 10):
        span, offered = (sum(window[name] for window in part) for name in ("duration_s", "offered"))
        done, failed = (sum(window[name] for window in part) for name in ("completed", "failed"))
        late = np.median([window["lateness_p99_s"] or 0.0 for window in part])
        minute = (part[-1]["at_s"] - found[0]["at_s"]) / 60
        shares = (
            f"{offered / (rate * span):.5f}",
            f"{done / offered:.5f}",
            str(failed),
            f"{late * 1e6:,.0f} µs",
        )
        cpu = f"{np.mean([window['cpu'] for window in part]):.2f}"
        resident = f"{max(window['resident'] for window in part) / 2**20:.2f} MiB"
        rows.append([f"{minute:.1f}", *shares, cpu, resident])
    heads = ("minute", "offered / asked", "completed / offered", "failed", "lateness p99", "CPU", "resident")
    yield from table(heads, rows)
    later = [window for window in found if window["at_s"] - found[0]["at_s"] >= 60 and window["resident"]]
    if len(later) > 60:
        at = np.array([window["at_s"] for window in later])
        slope = np.polyfit(at - at[0], np.array([window["resident"] for window in later], dtype=float), 1)[0]
        yield f"Memory after the first minute: {slope * 3600 / 2**20:+.2f} MiB an hour."


if __name__ == "__main__":
    main()
