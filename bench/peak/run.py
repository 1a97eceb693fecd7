"""Searches for a peak rate on simulated servers: the policies of "Cutting Corners", MLRsearch and ours.

python bench/peak/run.py [--quick] [--searches N] [--seed N] [--parties NAME,…] [--curves NAME,…]
                               [--processes N] [--record FILE]

Each search has a server of its own, with a true peak and noise drawn from the seed (a new one unless given, and
printed); all policies search the same servers. By default 200 searches of each policy on each curve, of the strawman
20: under 40 minutes on two cores. --quick shows within a minute that all of it runs, with too few searches to
judge by.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two processes; matrices are small
sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

from etude.peak.harnesses.curves import CURVES, TROUBLED
from peak import mlrsearch_peer
from peak.searches import FIXED_COST_S, MLRSEARCH, PARTIES, PEAKS, SEED_FACTOR, TASK, Found, Party, searched
from peak.tables import OURS, in_families, reached, tables
from rows import HEADING, Row, line, measured_where, names, options, publish

SEARCHES, QUICK = 200, 1
LONGEST_S = 2400.0
IN_TROUBLE = ("binsearch", "bracket", OURS)
"""Who searches on troubled servers."""

EXPLAINED = f"""\
A simulated trial costs its run and {FIXED_COST_S:g} s. Loads of {TASK.lowest:g} to {TASK.highest:g} requests a second;
policies without a seed begin at the lowest (MLRsearch at the highest), those with one within a factor of
{SEED_FACTOR:g} of the truth. The goal is a mean response of 40 ms; width s 10 %, accuracy a 90 %, confidence c 95 %,
run length {TASK.runlength_s:g} s, step {TASK.step:g}; the strawman makes ten trials of 300 s a load. True peaks are
drawn from {PEAKS[0]:g} to {PEAKS[1]:g}, every factor as likely as the next. *ours*: the default policy under the rate
promise; *ours+region*: under the region promise; *+seed*: with one. Hours are the mean of a search, and sums are over
curves. All of it is simulation: no server drifts, stalls or thrashes but those that are named for it, and the noise law
goes through four readings of the paper, extrapolated beyond load factor 0.9."""


def page(
    found: Found, curves: Sequence[str], troubled: Sequence[str], header: Sequence[str], judged: Sequence[Row]
) -> str:
    """All of it in Markdown."""
    lines = ["# Searches for a peak rate, simulated", "", *header, "", EXPLAINED, ""]
    lines += [f"Curves: {in_families(curves)}.", ""]
    lines += [
        "## What was to be reached",
        "",
        *HEADING,
        *map(line, judged),
        "",
        *tables(found, curves, troubled),
    ]
    return "\n".join(lines).rstrip() + "\n"


def verdicts(
    found: Found, curves: Sequence[str], troubled: Sequence[str], took_s: float, quick: bool
) -> list[Row]:
    """What was to be reached, the time of the bench itself as well; few searches judge nothing."""
    took, limit = f"{took_s / 60:.1f} min", f"≤ {LONGEST_S / 60:g} min"
    time_row = Row("this bench as a whole", "–", took, limit, took_s <= LONGEST_S)
    rows = [*reached(found, curves, troubled), time_row]
    return [replace(row, reached=None) for row in rows] if quick else rows


def main() -> int:
    """Search, print the page, and write it where asked; the exit code is 1 when something was not reached."""
    given = _options()
    start = time.monotonic()
    count = QUICK if given.quick else given.searches
    parties, peer = taking_part(given.parties)
    few = [party for party in parties if party.name in IN_TROUBLE]
    curves = [name for name in given.curves if name in CURVES]
    troubled = [name for name in given.curves if name in TROUBLED and few]
    print(f"seed {given.seed}, {count} searches of each policy on each curve", file=sys.stderr)
    found = searched(parties, curves, given.seed, count, given.processes, peer)
    found |= searched(few, troubled, given.seed, count, given.processes, peer)
    judged = verdicts(found, curves, troubled, time.monotonic() - start, given.quick)
    conditions = (
        f"{count} searches of each policy on each curve, the strawman {PARTIES['strawman'].share:g} and ours+region "
        f"{PARTIES['ours+region'].share:g} times as many; --seed {given.seed}; {given.processes} processes"
    )
    header = measured_where(conditions, mlrsearch_peer.versions(peer))
    return publish(page(found, curves, troubled, header, judged), given.record, judged)


def taking_part(names: Sequence[str]) -> tuple[list[Party], Path | None]:
    """Those asked for, without MLRsearch where it cannot be had."""
    peer = mlrsearch_peer.installed() if MLRSEARCH in names else None
    return [PARTIES[name] for name in names if name != MLRSEARCH or peer is not None], peer


def _options() -> Namespace:
    parser = options(__doc__, record=True)
    every = [*CURVES, *TROUBLED]
    seed = secrets.randbelow(2**31)
    parser.add_argument("--quick", action="store_true", help="one search each: only shows that it runs")
    parser.add_argument(
        "--searches", type=int, default=SEARCHES, help="of a policy on a curve (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=seed, help="of all servers (default: a new one)")
    parser.add_argument("--parties", default=",".join(PARTIES), help="by commas (default %(default)s)")
    parser.add_argument(
        "--curves", default=",".join(every), help="by commas, troubled ones too (default: all)"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="(default: one a CPU)")
    given = parser.parse_args()
    given.parties = names(parser, "parties", given.parties, PARTIES)
    given.curves = names(parser, "curves", given.curves, every)
    if given.searches < 1 or given.processes < 1 or given.seed < 0:
        parser.error("--searches and --processes are one or more, --seed is no negative number")
    return given


if __name__ == "__main__":
    sys.exit(main())
