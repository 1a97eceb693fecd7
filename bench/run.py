"""What Étude itself costs, beside its peers, in one run: the table that `make bench` prints.

python bench/run.py [--quick] [--all] [PART …]

Parts: launching, reported, barrier, starting, scripts, verdicts, verdict-time, deciding, reading, small, opening, io,
recording, replay, load-files, load-stalls, load-nfs, store, pool-surface, pool-idle; pool-scale and
reading-large if named, or with --all.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from barrier import barrier
from deciding import deciding
from io_lab import io_lab
from launching import launching, reported
from load_files import load_files
from load_nfs import load_nfs
from load_stalls import load_stalls
from opening import opening
from reading import reading, reading_large, small
from recording import recording
from replay import replay
from rows import HEADING, Row, line, quiet_priority
from scripts import scripts
from starting import starting
from store import store
from verdict_time import verdict_time
from verdicts import COMPARISONS, verdicts

sys.path.append(str(Path(__file__).parent / "pool"))


def _pool_surface(maps: int) -> list[Row]:
    from pool_surface import (
        pool_surface,  # late: it computes in one thread, and what is started then inherits that
    )

    return pool_surface(maps)


def _pool_idle(stretches: int) -> list[Row]:
    from pool_idle import pool_idle

    return pool_idle(stretches)


def _pool_scale(samples: int) -> list[Row]:
    from pool_scale import pool_scale

    return pool_scale(samples)


PARTS: dict[str, tuple[Callable[[int], list[Row]], int, int]] = {
    "launching": (launching, 15, 3),
    "reported": (reported, 15, 3),
    "barrier": (barrier, 1, 1),
    "starting": (starting, 21, 5),
    "scripts": (scripts, 7, 2),
    "verdicts": (verdicts, COMPARISONS, 3),
    "verdict-time": (verdict_time, 5, 1),
    "deciding": (deciding, 9, 2),
    "reading": (reading, 5, 2),
    "small": (small, 15, 3),
    "opening": (opening, 9, 2),
    "io": (io_lab, 15, 2),
    "recording": (recording, 15, 2),
    "replay": (replay, 7, 2),
    "load-nfs": (load_nfs, 9, 2),
    "load-files": (load_files, 7, 1),
    "load-stalls": (load_stalls, 3, 1),
    "store": (store, 51, 3),
    "reading-large": (reading_large, 2, 1),
    "pool-surface": (_pool_surface, 3, 1),
    "pool-idle": (_pool_idle, 10, 2),
    "pool-scale": (_pool_scale, 10_000, 600),
}
LARGE = {"reading-large", "pool-scale"}
"""What takes much of the disk, or half an hour: run where it is asked for."""


def main() -> None:
    """Run the parts and print their rows; the exit code is 1 when something was not reached."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rounds: shows that it runs, not what it costs"
    )
    parser.add_argument("--all", action="store_true", help=f"also {', '.join(sorted(LARGE))}")
    parser.add_argument("--no-fifo", action="store_true", help="do not ask for real-time priority")
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if shutil.which("hyperfine") is None:
        sys.exit(
            "bench: the peer hyperfine is missing: apt-get install hyperfine (packaging/debian-packages.txt)"
        )
    peer = subprocess.run(
        ["hyperfine", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    priority = "ordinary priority" if options.no_fifo else quiet_priority()
    print(f"{platform.release()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}; {peer}; {priority}")
    print(*HEADING, sep="\n", flush=True)
    missed = False
    for name in options.parts or [name for name in PARTS if options.all or name not in LARGE]:
        part, rounds, quick = PARTS[name]
        for row in part(quick if options.quick else rounds):
            missed |= row.reached is False
            print(line(row), flush=True)
    sys.exit(missed and not options.quick)


if __name__ == "__main__":
    main()
