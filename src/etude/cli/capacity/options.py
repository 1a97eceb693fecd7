"""Options of the verbs that search a server's capacity: peak and surface."""

from __future__ import annotations

import argparse
import re

from etude.cli import parser as kinds
from etude.cli.capacity.peak_harness import add_harness_options
from etude.cli.shared_options import FORMATS, add_budget, add_like, add_output, add_pool
from etude.peak import LONGEST_S

PEAK = """\
Find the highest load that a server bears: the peak rate, with a stated confidence, at the least benchmarking time.

--url names a server of HTTP, --run a load command, each with limits such as --p99 100ms. HARNESS is a file that says
more: how the system is started, offered load, read and stopped, and what is too much (docs/workbench.md); or
MODULE:NAME of one in Python. Each trial is on disk before the next begins: the same command with the same -o goes on
where it was ended. Results directories in its place are shown again, and drawn beside each other with --figures. The
exit status is 0 where the target is met, 1 where it is not.
"""


PEAK_POLICY = "posterior"


def peak_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude peak`."""
    add = parser.add_argument
    add("harness", nargs="*", metavar="HARNESS", help="HARNESS.toml, MODULE:NAME, or results to show again")
    add(
        "--simulate",
        metavar="CURVE[:PEAK]",
        help="a simulated server in place of HARNESS: mm1, mmc, knee, ramp, tail and others (default peak 500)",
    )
    add_output(add, "DIR", "results directory; one that holds this search goes on")
    add_harness_options(parser.add_argument_group("in place of HARNESS"))
    add_pool(parser)
    _peak_search_options(parser.add_argument_group("the search"))
    _peak_other_ways(parser.add_argument_group("before the bench is booked"))
    add(
        "--figures",
        metavar="DIR",
        help="draw figures there: load factors over benchmarking time, time at each load",
    )
    add("--format", choices=FORMATS, default="pdf", help="of the figures (default pdf)")
    add("--json", action="store_true", help="print the answer as JSON on standard output (docs/formats.md)")
    add("-q", "--quiet", action="store_true", help="nothing of single trials, only the answer")


def _peak_search_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--policy",
        default=PEAK_POLICY,
        metavar="NAME",
        help="posterior (default), bracket, binsearch, linear, model, polynomial, strawman; or MODULE:NAME",
    )
    add(
        "--seed",
        type=kinds.seed,
        metavar="N",
        help="of what the policy (and a simulated server) draws (default 0)",
    )
    add(
        "--seed-load",
        type=kinds.load,
        metavar="LOAD",
        help="begin there: the peak of a similar configuration",
    )
    add(
        "--factor",
        action="append",
        type=_peak_factor,
        default=[],
        metavar="NAME=VALUE",
        help="of the configuration: {NAME} in the harness",
    )
    add(
        "--promise",
        choices=("rate", "region"),
        help="the target: an answer within --within of the peak (default), or whose reading is near its limit",
    )
    add("--within", type=kinds.share, metavar="SHARE", help="of the target rate (default 10%%)")
    add("--width", type=kinds.share, metavar="SHARE", help="of the target region: s (default 10%%)")
    add("--confidence", type=kinds.percent_between, metavar="PERCENT", help="of the target (default 95)")
    add_budget(add)
    add("--deadline", type=kinds.deadline, metavar="TIME", help="such as 17:30; then the best so far")
    add(
        "--speed",
        type=kinds.number_above_0,
        metavar="N",
        help="of --simulate: N times faster than life, to watch it",
    )


def _peak_other_ways(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    one = group.add_mutually_exclusive_group()
    one.add_argument(
        "--rehearse",
        action="store_true",
        help="search simulated servers only: what it will cost, and how often it is right",
    )
    one.add_argument(
        "--calibrate",
        action="store_true",
        help="measure how trials vary with run length and load; suggests both (a known peak: --seed-load)",
    )
    add(
        "--fixed-cost",
        type=kinds.time_to(LONGEST_S, zero=True),
        metavar="TIME",
        help="of --rehearse: a trial's, besides its run (default: 170 s; of a HARNESS, its warm-up and 1 s)",
    )
    add_like(group)
    add("--searches", type=kinds.count, metavar="N", help="of --rehearse, on each curve (default 20)")


def _peak_factor(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return name, value


SURFACE = """\
Map a response over configurations, at the least benchmarking time: peak rates of a server, or a metric of a test.

SPEC.toml says what is measured, which factors are varied over which levels, and which cells are to be measured
(docs/surfaces.md). Each cell is on disk before the next begins: the same command with the same -o goes on where it was
ended, and nothing is measured twice. A results directory in place of SPEC.toml is shown again. The exit status is 0
where every cell that was tried has a value that meets its target, 1 where one has not.
"""


SURFACE_PLANS = ("full", "in-order", "one-at-a-time", "d-optimal", "adaptive")


def surface_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude surface`."""
    add = parser.add_argument
    add("spec", nargs="?", metavar="SPEC", help="SPEC.toml, or results to show again")
    add(
        "--simulate",
        metavar="NAME[:SEED]",
        help="simulated servers in place of SPEC: DB_TP, Web, Mail, SPECsfs97, cached and others",
    )
    add_output(add, "DIR", "results directory; one that holds this map goes on")
    _surface_sampling(parser.add_argument_group("which cells are measured (in place of what SPEC says)"))
    add(
        "--target",
        type=kinds.number_above_0,
        metavar="R",
        help="say how much of each factor a response of R takes",
    )
    add("--figures", metavar="DIR", help="draw figures there: the surface, its map, the effects")
    add("--format", choices=FORMATS, default="pdf", help="of the figures (default pdf)")
    add_pool(parser)
    _surface_rehearsal(parser.add_argument_group("before the bench is booked"))
    add("--json", action="store_true", help="print the surface as JSON on standard output (docs/formats.md)")
    add("-q", "--quiet", action="store_true", help="nothing of single cells, only the surface")


def _surface_sampling(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--plan", choices=SURFACE_PLANS, help="full (default), in-order, one-at-a-time, d-optimal or adaptive"
    )
    add("--count", type=kinds.count, metavar="N", help="cells that are measured at most")
    add(
        "--error",
        type=kinds.share,
        metavar="SHARE",
        help="of adaptive: predictions that are so near are enough",
    )
    add("--skip", action="store_true", help="leave out cells that are predicted well enough")
    add_budget(add)
    add("--deadline", type=kinds.deadline, metavar="TIME", help="such as 17:30; then the best so far")
    add("--retry", action="store_true", help="try cells again that failed in an earlier session")


def _surface_rehearsal(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--rehearse",
        action="store_true",
        help="map simulated surfaces only: what it will cost, and how often cells are right",
    )
    add_like(group)
    add("--maps", type=kinds.count, metavar="N", help="of --rehearse (default 5)")
    add(
        "--fixed-cost",
        type=kinds.time_to(LONGEST_S, zero=True),
        metavar="TIME",
        help="of --rehearse: a trial's, besides its run (default: the harness's warm-up and 1 s)",
    )
