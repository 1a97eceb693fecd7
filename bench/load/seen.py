"""Each preset of `etude load`, as a server of NFS saw it, beside what the preset says: the table of
docs/internals/measurements.md.

python bench/load/seen.py [--directory] [--operations N] [--rate R] [PRESET …]

With --directory the load is on a directory, by one thread, and is seen by `etude record`. Else it needs root, and the
Debian packages nfs-ganesha, nfs-ganesha-vfs, rpcbind and iproute2. Some 600 MB of a disk.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

from rows import cells, measured_where, options, table
from support.distributions import Check
from support.preset_checks import Arrivals, Load, arrivals, checks
from support.published import PUBLISHED
from support.seen_loads import over_directory, over_nfs, server

Offer = Callable[[str, int, Arrivals], Load]
"""Offers so many operations of a preset, and says what was seen."""
HEADING = table(("preset", "check", "seen", "expected", "statistic", "p", "holds"), ())[:2]


def main() -> None:
    """Print the table; the exit status is 1 where a check does not hold."""
    parser = options(__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000, help="of each preset (default 1000000)")
    parser.add_argument("--rate", type=float, default=2000.0, help="requests/s (default 2000)")
    parser.add_argument("--directory", action="store_true", help="on a directory, and not on a server of NFS")
    parser.add_argument("--place", type=Path, default=Path("/var/tmp"), help="where the files are")
    parser.add_argument("presets", nargs="*", metavar="PRESET")
    given = parser.parse_args()
    unknown = set(given.presets) - set(PUBLISHED)
    if unknown:
        parser.error(f"no preset {', '.join(sorted(unknown))}; there are {', '.join(PUBLISHED)}")
    seen_at = "by one thread on a directory" if given.directory else "one connection, ganesha on a disk"
    conditions = f"{given.operations:,} operations of each at {given.rate:g}/s; {seen_at}"
    by = "etude-engine load --directory" if given.directory else "etude-engine load --nfs"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server is ended then, too
    print(*measured_where(conditions, [by]), "", *HEADING, sep="\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="etude-seen-", dir=given.place) as place:
        target = on_directory if given.directory else on_server
        with target(Path(place)) as offer:
            done = list(shown(offer, given.presets or list(PUBLISHED), given.operations, given.rate))
    sys.exit(not all(check.holds for check in done))


def shown(offer: Offer, presets: list[str], operations: int, asked: float) -> Iterator[Check]:
    for preset in presets:
        load = offer(preset, operations, Arrivals(asked, shape=False))
        for check in checks(load):
            print(line(preset, check), flush=True)
            yield check
    for poisson in (True, False):
        # Slow enough that what lies between (a proxy, wake-ups) is a small part of a gap.
        slow = Arrivals(200.0, poisson, moved=0.02, late=0.1, allowance=0.2)
        seen = offer("web", operations // 50, slow).seen
        for check in arrivals(seen.at_ns, slow):
            print(line("poisson" if poisson else "constant", check), flush=True)
            yield check


@contextmanager
def on_server(place: Path) -> Iterator[Offer]:
    with server(place, f"seen{os.getpid()}", "10.79.22") as nfs:
        yield lambda preset, operations, asked: over_nfs(nfs, preset, operations, asked).load


@contextmanager
def on_directory(place: Path) -> Iterator[Offer]:
    """One thread makes all calls, so that they come in the order in which they were drawn."""
    one = ("--outstanding", "1")
    yield lambda preset, operations, asked: over_directory(place, preset, operations, asked, options=one)[0]


def line(preset: str, check: Check) -> str:
    verdict = "yes" if check.holds else "NO"
    seen = (check.name, check.observed, check.expected, check.statistic, f"{check.p:.2g}", verdict)
    return cells((f"`{preset}`", *seen))


if __name__ == "__main__":
    main()
