"""Each preset of `etude load`, as a server of NFS saw it, beside what the preset says: the table of docs/load-seen.md.

python bench/load_seen.py [--operations N] [--rate R] [PRESET …]

Needs root, and the Debian packages nfs-ganesha, nfs-ganesha-vfs, rpcbind and iproute2. Some 600 MB of a disk.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from rows import ROOT, measured_where

sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from distributions import Check
from preset_checks import Arrivals, arrivals, checks
from published import PUBLISHED
from seen_loads import over_nfs, server

HEADING = "| preset | check | seen | expected | statistic | p | holds |\n| --- | --- | --- | --- | --- | --- | --- |"


def main() -> None:
    """Print the table; the exit status is 1 where a check does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operations", type=int, default=1_000_000, help="of each preset (default 1000000)")
    parser.add_argument("--rate", type=float, default=2000.0, help="requests/s (default 2000)")
    parser.add_argument("--place", type=Path, default=Path("/var/tmp"), help="where the server's files are")
    parser.add_argument("presets", nargs="*", metavar="PRESET")
    options = parser.parse_args()
    unknown = set(options.presets) - set(PUBLISHED)
    if unknown:
        parser.error(f"no preset {', '.join(sorted(unknown))}; there are {', '.join(PUBLISHED)}")
    conditions = (
        f"{options.operations:,} operations of each at {options.rate:g}/s; one connection, ganesha on a disk"
    )
    print(*measured_where(conditions, ["etude-engine load --nfs"]), "", HEADING, sep="\n", flush=True)
    failed = False
    with (
        tempfile.TemporaryDirectory(prefix="etude-seen-", dir=options.place) as place,
        server(Path(place), f"seen{os.getpid()}", "10.79.22") as nfs,
    ):
        for preset in options.presets or list(PUBLISHED):
            found = over_nfs(nfs, preset, options.operations, Arrivals(options.rate, shape=False))
            for check in checks(found.load):
                failed |= not check.holds
                print(line(preset, check), flush=True)
        for poisson in (True, False):
            # Slow enough that the proxy's own delays are a small part of a gap.
            asked = Arrivals(200.0, poisson, moved=0.02, late=0.1, allowance=0.2)
            found = over_nfs(nfs, "web", options.operations // 50, asked)
            for check in arrivals(found.load.seen.at_ns, asked):
                failed |= not check.holds
                print(line("poisson" if poisson else "constant", check), flush=True)
    sys.exit(failed)


def line(preset: str, check: Check) -> str:
    """A row of the table."""
    verdict = "yes" if check.holds else "NO"
    told = (check.name, check.observed, check.expected, check.statistic, f"{check.p:.2g}", verdict)
    return f"| `{preset}` | {' | '.join(told)} |"


if __name__ == "__main__":
    main()
