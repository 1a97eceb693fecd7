"""What Étude itself costs, beside its peers, in one run: the table that `make bench` prints.

python bench/run.py [--quick] [--all] [PART …]

Parts: launching, reported, barrier, starting, scripts, verdicts, verdict-time, deciding, reading, small, opening, io,
recording, replay, load-files, load-stalls, load-nfs, store, pool-surface, pool-idle; and pool-scale, if named or with
--all.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from importlib import import_module

from rows import HEADING, Row, line, need, options, printed, quiet_priority

PARTS: dict[str, tuple[str, int, int]] = {
    "launching": ("costs.launching.launching", 15, 3),
    "reported": ("costs.launching.reported", 15, 3),
    "barrier": ("costs.launching.barrier", 1, 1),
    "starting": ("costs.reading.starting", 21, 5),
    "scripts": ("costs.launching.scripts", 7, 2),
    "verdicts": ("costs.verdicts.verdicts", 40, 3),
    "verdict-time": ("costs.verdicts.verdict_time", 5, 1),
    "deciding": ("costs.launching.deciding", 9, 2),
    "reading": ("costs.reading.reading", 5, 2),
    "small": ("costs.reading.small", 15, 3),
    "opening": ("costs.reading.opening", 9, 2),
    "io": ("io_lab.io_lab", 15, 2),
    "recording": ("recording.recording", 15, 2),
    "replay": ("replay.replay", 7, 2),
    "load-nfs": ("load.files.load_nfs", 9, 2),
    "load-files": ("load.files.load_files", 7, 1),
    "load-stalls": ("load.stalls.load_stalls", 3, 1),
    "store": ("costs.store.store", 51, 3),
    "pool-surface": ("pool.maps.pool_surface", 3, 1),
    "pool-idle": ("pool.idle.pool_idle", 10, 2),
    "pool-scale": ("pool.scale.pool_scale", 10_000, 600),
}
"""Module and function, rounds, and rounds of --quick."""
LARGE = {"pool-scale"}
"""What takes half an hour: run where it is asked for."""


def part(name: str) -> Callable[[int], list[Row]]:
    """A part's function; its module is imported now, as some compute in one thread, which is inherited from then on."""
    module, _, function = PARTS[name][0].rpartition(".")
    found: Callable[[int], list[Row]] = getattr(import_module(module), function)
    return found


def main() -> None:
    """Run the parts and print their rows; the exit code is 1 when something was not reached."""
    parser = options(__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="few rounds: shows that it runs, not what it costs"
    )
    parser.add_argument("--all", action="store_true", help=f"also {', '.join(sorted(LARGE))}")
    parser.add_argument("--no-fifo", action="store_true", help="do not ask for real-time priority")
    parser.add_argument("parts", nargs="*", metavar="PART")
    given = parser.parse_args()
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    need("hyperfine")
    peer = printed("hyperfine", "--version").strip()
    priority = "ordinary priority" if given.no_fifo else quiet_priority()
    print(f"{platform.release()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}; {peer}; {priority}")
    print(*HEADING, sep="\n", flush=True)
    missed = False
    for name in given.parts or [name for name in PARTS if given.all or name not in LARGE]:
        _, rounds, quick = PARTS[name]
        for row in part(name)(quick if given.quick else rounds):
            missed |= row.reached is False
            print(line(row), flush=True)
    sys.exit(missed and not given.quick)


if __name__ == "__main__":
    main()
