"""Options of the verbs that search a server's capacity: peak and surface."""

from __future__ import annotations

import argparse
import re

from etude.cli import parser as kinds
from etude.cli.capacity.peak_harness import add_harness_options
from etude.cli.shared_options import FORMATS, add_budget, add_like, add_output, add_pool
from etude.peak import LONGEST_S

PEAK = """\
Find the maximum sustainable load of a server (its peak rate), with a stated confidence, in the least benchmarking time.

--url names a server of HTTP, --run a load command, each with limits such as --p99 100ms. HARNESS is a file that defines
more: how the system is started, offered load, read and stopped, and what is too much (docs/reference/harness.md); or
MODULE:NAME of one in Python. Each trial is on disk before the next begins: the same command with the same -o
resumes it. Results directories in place of HARNESS are shown again, and drawn together with --figures. The
exit status is 0 if the target is met, else 1.
"""


PEAK_POLICY = "posterior"


def peak_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude peak`."""
    add = parser.add_argument
    add("harness", nargs="*", metavar="HARNESS", help="HARNESS.toml, MODULE:NAME, or results to show again")
    add(
        "--simulate",
        metavar="CURVE[:PEAK]",
        help="a simulated server instead of HARNESS: mm1, mmc, knee, ramp, tail and others (default peak 500)",
    )
    add_output(add, "DIR", "results directory; if it holds this search, resume it")
    add_harness_options(parser.add_argument_group("the system (instead of HARNESS)"))
    add_pool(parser)
    _peak_search_options(parser.add_argument_group("the search"))
    _peak_other_ways(parser.add_argument_group("rehearsal"))
    add(
        "--figures",
        metavar="DIR",
        help="draw figures in DIR: load factors over benchmarking time, time at each load",
    )
    add("--format", choices=FORMATS, default="pdf", help="format of the figures (default pdf)")
    add(
        "--json",
        action="store_true",
        help="print the answer as JSON on standard output (docs/reference/formats.md)",
    )
    add("-q", "--quiet", action="store_true", help="no line for each trial, only the answer")


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
        help="seed of the policy and of a simulated server (default 0)",
    )
    add(
        "--seed-load",
        type=kinds.load,
        metavar="LOAD",
        help="first load: the peak of a similar configuration",
    )
    add(
        "--factor",
        action="append",
        type=_peak_factor,
        default=[],
        metavar="NAME=VALUE",
        help="a factor of the configuration: {NAME} in the harness",
    )
    add(
        "--promise",
        choices=("rate", "region"),
        help="the target: an answer within --within of the peak (default), or with a response near its limit",
    )
    add("--within", type=kinds.share, metavar="SHARE", help="accuracy of the target rate (default 10%%)")
    add("--width", type=kinds.share, metavar="SHARE", help="width s of the target region (default 10%%)")
    add(
        "--confidence",
        type=kinds.percent_between,
        metavar="PERCENT",
        help="confidence of the target (default 95)",
    )

    add_budget(add)
    add(
        "--deadline",
        type=kinds.deadline,
        metavar="TIME",
        help="end by TIME, such as 17:30, with the best result so far",
    )
    add(
        "--speed",
        type=kinds.number_above_0,
        metavar="N",
        help="with --simulate: run N times faster than real time, to watch the search",
    )


def _peak_other_ways(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    one = group.add_mutually_exclusive_group()
    one.add_argument(
        "--rehearse",
        action="store_true",
        help="search simulated servers only: report the cost, and how often the answer is right",
    )
    one.add_argument(
        "--calibrate",
        action="store_true",
        help="measure how trials vary with run length and load, and suggest both (if the peak is known: --seed-load)",
    )
    add(
        "--fixed-cost",
        type=kinds.time_to(LONGEST_S, zero=True),
        metavar="TIME",
        help="with --rehearse: fixed cost of a trial, besides its run (default: 170 s; for a HARNESS, its "
        "warm-up and 1 s)",
    )
    add_like(group)
    add(
        "--searches",
        type=kinds.count,
        metavar="N",
        help="with --rehearse: searches of each curve (default 20)",
    )


def _peak_factor(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return name, value


SURFACE = """\
Map a response over configurations, at the least benchmarking time: peak rates of a server, or a metric of a test.

SPEC.toml defines what is measured, which factors are varied over which levels, and which configurations are measured
(docs/howto/surfaces.md). Each configuration is on disk before the next begins: the same command with the same -o
resumes
the map, and nothing is measured twice. A results directory in place of SPEC.toml is shown again. The exit status is
0 if every configuration that was tried has a value that meets its target, else 1.
"""


SURFACE_PLANS = ("full", "in-order", "one-at-a-time", "d-optimal", "adaptive")


def surface_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude surface`."""
    add = parser.add_argument
    add("spec", nargs="?", metavar="SPEC", help="SPEC.toml, or results to show again")
    add(
        "--simulate",
        metavar="NAME[:SEED]",
        help="simulated servers instead of SPEC: DB_TP, Web, Mail, SPECsfs97, cached and others",
    )
    add_output(add, "DIR", "results directory; if it holds this map, resume it")
    _surface_sampling(parser.add_argument_group("sampling of configurations (overrides SPEC)"))
    add(
        "--target",
        type=kinds.number_above_0,
        metavar="R",
        help="report how much of each factor a response of R needs",
    )
    add("--figures", metavar="DIR", help="draw figures in DIR: the surface, its map, the effects")
    add("--format", choices=FORMATS, default="pdf", help="format of the figures (default pdf)")
    add_pool(parser)
    _surface_rehearsal(parser.add_argument_group("rehearsal"))
    add(
        "--json",
        action="store_true",
        help="print the surface as JSON on standard output (docs/reference/formats.md)",
    )
    add("-q", "--quiet", action="store_true", help="no line for each configuration, only the surface")


def _surface_sampling(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--plan", choices=SURFACE_PLANS, help="full (default), in-order, one-at-a-time, d-optimal or adaptive"
    )
    add("--count", type=kinds.count, metavar="N", help="maximum number of configurations measured")
    add(
        "--error",
        type=kinds.share,
        metavar="SHARE",
        help="error of predictions at which the adaptive plan stops",
    )
    add("--skip", action="store_true", help="skip configurations that are predicted well enough")
    add_budget(add)
    add(
        "--deadline",
        type=kinds.deadline,
        metavar="TIME",
        help="end by TIME, such as 17:30, with the best result so far",
    )
    add("--retry", action="store_true", help="measure configurations again that failed in an earlier session")


def _surface_rehearsal(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--rehearse",
        action="store_true",
        help="map simulated surfaces only: report the cost, and how many configurations are right",
    )
    add_like(group)
    add("--maps", type=kinds.count, metavar="N", help="with --rehearse: number of maps (default 5)")
    add(
        "--fixed-cost",
        type=kinds.time_to(LONGEST_S, zero=True),
        metavar="TIME",
        help="with --rehearse: fixed cost of a trial, besides its run (default: the harness's warm-up and 1 s)",
    )
