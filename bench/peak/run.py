"""Searches for a peak rate on simulated servers: the policies of "Cutting Corners", MLRsearch and ours.

python bench/peak/run.py [--quick] [--searches N] [--seed N] [--parties NAME,…] [--curves NAME,…]
                               [--processes N] [--record FILE]

Each search has a server of its own, with a true peak and noise drawn from the seed (a new one unless given, and
printed); all policies search the same servers. By default 200 searches of each policy on each curve, of the strawman
20: under 40 minutes on two cores. --quick shows within a minute that all of it runs, with too few searches to
judge by.
"""

from __future__ import annotations

import math
import os
import secrets
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two processes; matrices are small
sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

import numpy as np

from etude.peak.harnesses.curves import CURVES, FAMILIES, TROUBLED
from etude.peak.task import Kind
from peak import mlrsearch_peer
from peak.searches import (
    FIXED_COST_S,
    MLRSEARCH,
    OURS,
    PARTIES,
    PEAKS,
    SEED_FACTOR,
    TASK,
    Found,
    Outcome,
    Party,
    mean_hours,
    searched,
    share,
)
from rows import HEADING, Row, line, measured_where, names, options, publish, shown, table

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


OURS_REGION, BINSEARCH = "ours+region", "binsearch"
SHORTEST_WINDOW_S = 1.0
"""Of harnesses that stream windows; the simulated ones have 10 s."""
WITH_STALLS = ("tail",)
FLAT = "ramp"
"""Where a percent of load is little more than a percent of response, so that a rate is as dear as a response."""

NAMES: Mapping[str, frozenset[Kind]] = {
    "stalling": frozenset({"stalling"}),
    "stalling-rarely": frozenset({"stalling"}),
    "thrashing": frozenset({"non-monotone", "failing"}),
    "non-monotone": frozenset({"non-monotone"}),
    "non-monotone-low": frozenset({"non-monotone", "below-lowest"}),
    "hump": frozenset({"non-monotone"}),
    "hysteretic": frozenset({"hysteretic"}),
    "bimodal": frozenset({"bimodal"}),
    "drifting": frozenset({"drifting"}),
}
"""The findings that name a server's trouble."""

JUDGED = ("stalling", "non-monotone", "non-monotone-low", "thrashing", "hysteretic")
"""Servers whose trouble is to be named; of the others it is told how often it is. *stalling-rarely*: a stall in 70
windows is seen in nine of ten searches of 150 windows, three times what a search has. *hump*: the highest load at which
the limit holds is what is asked for, and is found; the band below need not be visited. *bimodal*, *drifting*: few
searches repeat a load often enough."""

DIPS = ("non-monotone", "non-monotone-low")
"""Of which only those servers count that show it at the loads that may be offered (`Outcome.shows`)."""

TROUBLES: frozenset[Kind] = frozenset(("stalling", "non-monotone", "hysteretic", "bimodal", "drifting"))


def percent_of(has: Callable[[Outcome], bool]) -> Callable[[Sequence[Outcome]], float]:
    return lambda outcomes: 100 * share(outcomes, has)


right = percent_of(lambda each: each.right)
region = percent_of(lambda each: each.in_region)
held = percent_of(lambda each: each.held)
wrongly_kept = percent_of(lambda each: each.kept and not each.right)
kept = percent_of(lambda each: each.kept)
misfit = percent_of(lambda each: "model-misfit" in each.kinds)
trouble = percent_of(lambda each: bool(each.kinds & TROUBLES))


def tables(found: Found, curves: Sequence[str], troubled: Sequence[str]) -> list[str]:
    parties = [name for name in PARTIES if any((name, curve) in found for curve in curves)]
    healthy = "servers with one peak rate"
    lines = []
    for title, of, last in (
        ("Benchmarking hours of a search", mean_hours, sum),
        ("Within 10 % of the true peak rate, %", right, min),
        ("Response within 10 % of the limit, %", region, min),
        ("True peak in the interval that is given, %", held, min),
    ):
        lines += by_curve(f"{title}: {healthy}", found, parties, curves, of, last)
    lines += stability(found, parties, curves)
    ours = [name for name in parties if name.startswith(OURS) or name in (BINSEARCH, "bracket")]
    if ours:
        title = f"Trouble named where there is none, %: {healthy}"
        lines += by_curve(title, found, ours, curves, trouble, max)
    if troubled and ours:
        lines += by_curve("Named by its trouble, %: troubled servers", found, ours, troubled, None, min)
        lines += by_curve(
            "Wrong, and said to be kept, %: troubled servers", found, ours, troubled, wrongly_kept, max
        )
    return lines


def by_curve(
    title: str,
    found: Found,
    parties: Sequence[str],
    curves: Sequence[str],
    of: Callable[[Sequence[Outcome]], float] | None,
    last: Callable[[Sequence[float]], float],
) -> list[str]:
    """A party a row, a curve a column, and their sum or the worst; `of` is None for the share that names trouble."""
    digits, rows = 2 if of is mean_hours else 0, []
    for party in parties:
        if all((party, curve) in found for curve in curves):
            each = [(curve, found[party, curve]) for curve in curves]
            cells = [named(*one) if of is None else of(one[1]) for one in each]
            rows.append([party, *(f"{cell:.{digits}f}" for cell in (*cells, last(cells)))])
    return [f"## {title}", "", *table(["policy", *curves, "sum" if last is sum else "worst"], rows)]


def stability(found: Found, parties: Sequence[str], curves: Sequence[str]) -> list[str]:
    """How each policy's cost varies over curves and searches, and what it says of itself."""
    rows = []
    for party in parties:
        every = together_of(found, party, curves)
        ratios = [each for curve in curves if not math.isnan(each := ratio(found, party, BINSEARCH, [curve]))]
        spent = np.array([each.hours for each in every])
        tail = float(np.percentile(spent, 95) / np.median(spent))
        extremes = (most(ratios, default=math.nan) for most in (min, max))
        figures = (ratio(found, party, BINSEARCH, curves), *extremes, tail)
        shares = (kept(every), misfit(every))
        rows.append([party, *(f"{x:.2f}" for x in figures), *(f"{x:.0f}" for x in shares)])
    header = ["policy", "hours / binsearch", "least", "most", "95th search / median", "kept, %", "misfit, %"]
    return ["## Ordering: all curves together", "", *table(header, rows)]


def reached(found: Found, curves: Sequence[str], troubled: Sequence[str]) -> list[Row]:
    """What was to be reached, as far as those took part that it is about."""
    took_part = {party for party, _ in found}
    rows = []
    if {"linear", "linear+seed", BINSEARCH, "binsearch+seed", "model"} <= took_part:
        rows += ordering(found, curves)
    if {OURS, BINSEARCH} <= took_part:
        rows += against_binsearch(found, curves)
    if {OURS, MLRSEARCH} <= took_part:
        rows += against_mlrsearch(found, curves)
    if {OURS_REGION, BINSEARCH} <= took_part:
        rows += region_promise(found, [curve for curve in curves if curve not in WITH_STALLS])
    if OURS in took_part:
        rows += in_trouble(found, curves, troubled)
        rows += decisions(found)
    return rows


def against_binsearch(found: Found, curves: Sequence[str]) -> list[Row]:
    cost = ratio(found, OURS, BINSEARCH, curves)
    worst, curve = worst_share(found, OURS, curves)
    said = f"{100 * worst:.1f} % ({curve})"
    return [
        Row("benchmarking hours without a seed", "Binsearch", f"{cost:.3f} ×", "≤ 0.20 ×", cost <= 0.20),
        Row("within 10 % of the peak, worst curve", "–", said, "≥ 95 %", worst >= 0.95),
    ]


def against_mlrsearch(found: Found, curves: Sequence[str]) -> list[Row]:
    steep = [curve for curve in curves if curve != FLAT]
    cost, without = ratio(found, OURS, MLRSEARCH, curves), ratio(found, OURS, MLRSEARCH, steep)
    (worst, curve), (peers, of) = worst_share(found, OURS, curves), worst_share(found, MLRSEARCH, curves)
    name = "MLRsearch 1.2.1, width 5 %"
    said = f"{100 * worst:.1f} % ({curve}); {100 * peers:.1f} % ({of})"
    return [
        Row("benchmarking hours", name, f"{cost:.3f} ×", "≤ 0.6 ×", cost <= 0.6),
        Row(f"benchmarking hours, all but {FLAT}", name, f"{without:.3f} ×", "≤ 0.5 ×", without <= 0.5),
        Row("within 10 % of the peak, worst curve", name, said, "higher", worst > peers),
    ]


def region_promise(found: Found, curves: Sequence[str]) -> list[Row]:
    """Where no server stalls."""
    outcomes = together_of(found, OURS_REGION, curves)
    actual = share(outcomes, lambda each: each.in_region)
    least, worst = min((region(found[OURS_REGION, curve]), curve) for curve in curves)
    cost = ratio(found, OURS_REGION, BINSEARCH, curves)
    said = f"{100 * actual:.1f} % (worst: {least:.0f} %, {worst})"
    theirs = f"Binsearch: {region(together_of(found, BINSEARCH, curves)):.0f} %"
    return [
        Row("response within 10 % of the limit", theirs, said, "≥ 95 %", actual >= 0.95),
        Row("benchmarking hours for that", "Binsearch", f"{cost:.3f} ×", "≤ 0.7 ×", cost <= 0.7),
    ]


def in_trouble(found: Found, curves: Sequence[str], troubled: Sequence[str]) -> list[Row]:
    rows = []
    for name in troubled:
        outcomes = found[OURS, name]
        told, lies = named(name, outcomes), wrongly_kept(outcomes)
        reach = ("≥ 90 %", told >= 90) if name in JUDGED else ("–", None)
        rows.append(Row(f"{name}: named as such", "–", f"{told:.0f} %", *reach))
        rows.append(Row(f"{name}: wrong, and said to be kept", "–", f"{lies:.1f} %", "≤ 5 %", lies <= 5))
    falsely = trouble(together_of(found, OURS, curves))
    return [*rows, shown("trouble named where there is none", "–", f"{falsely:.1f} %")]


def decisions(found: Found) -> list[Row]:
    searches = (each for (party, _), of in found.items() if party == OURS for each in of)
    took = np.array([s for each in searches for s in each.decisions_s])
    late, most = float(np.percentile(took, 99)), float(took.max())
    said = f"99 % within {1e3 * late:.1f} ms, all within {1e3 * most:.1f} ms"
    limit = SHORTEST_WINDOW_S / 10
    return [Row("a decision of the controller", "a window of 1 s", said, f"≤ {limit:g} s", late <= limit)]


def ordering(found: Found, curves: Sequence[str]) -> list[Row]:
    """The paper's, of its own policies: linear dear, seeding cheap, the model unstable."""
    dear = ratio(found, "linear", BINSEARCH, curves)
    seeds = [ratio(found, f"{name}+seed", name, curves) for name in ("linear", BINSEARCH)]
    ratios = [ratio(found, "model", BINSEARCH, [curve]) for curve in curves]
    spread = f"{min(ratios):.2f}–{max(ratios):.2f} ×, by curve"
    unstable = max(ratios) / min(ratios)
    cheap = f"Linear {seeds[0]:.2f} ×, Binsearch {seeds[1]:.2f} ×"
    return [
        Row("Linear's benchmarking hours: dear", "Binsearch", f"{dear:.2f} ×", "≥ 1.5 ×", dear >= 1.5),
        Row("benchmarking hours with a seed: cheap", "without", cheap, "< 1 ×", max(seeds) < 1),
        Row("Model's benchmarking hours: unstable", "Binsearch", spread, "most / least ≥ 2", unstable >= 2),
    ]


def ratio(found: Found, party: str, peer: str, curves: Sequence[str]) -> float:
    """Of the hours of a search, summed over curves; NaN where one of them did not take part."""
    if any((name, curve) not in found for name in (party, peer) for curve in curves):
        return math.nan
    ours = theirs = 0.0
    for curve in curves:
        one, other = found[party, curve], found[peer, curve]
        same = min(len(one), len(other))  # of the strawman there are fewer; these are on the same servers
        ours += mean_hours(one[:same])
        theirs += mean_hours(other[:same])
    return ours / theirs


def worst_share(found: Found, party: str, curves: Sequence[str]) -> tuple[float, str]:
    """Of the curves, how often it is right on the one where it is least often."""
    return min((right(found[party, curve]) / 100, curve) for curve in curves)


def together_of(found: Found, party: str, curves: Sequence[str]) -> list[Outcome]:
    return [each for curve in curves for each in found.get((party, curve), [])]


def named(server: str, outcomes: Sequence[Outcome]) -> float:
    """%, of a troubled server."""
    kinds = NAMES.get(server, frozenset(TROUBLES))
    if server in DIPS:
        outcomes = [each for each in outcomes if each.shows]
    return 100 * share(outcomes, lambda each: bool(each.kinds & kinds))


def in_families(curves: Sequence[str]) -> str:
    """Which of them a policy may know, in words."""
    own = [curve for curve in curves if curve not in FAMILIES]
    known = [curve for curve in curves if curve in FAMILIES]
    return (
        f"families that a policy may know: {', '.join(known) or 'none'}; others: {', '.join(own) or 'none'}"
    )


if __name__ == "__main__":
    sys.exit(main())
