"""Find the highest load that a server bears: the peak rate, with a stated confidence, at the least bench time.

--url names a server of HTTP, --run a load command, each with limits such as --p99 100ms. HARNESS is a file that says
more: how the system is started, offered load, read and stopped, and what is too much (docs/workbench.md); or
MODULE:NAME of one in Python. Each trial is on disk before the next begins: the same command with the same -o goes on
where it was ended. Results directories in its place are shown again, and drawn beside each other with --figures. The
exit status is 0 where the target is met, 1 where it is not.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from etude.cli import parser as kinds
from etude.cli.io_options import FORMATS
from etude.cli.one_thread import one_thread
from etude.cli.peak_harness import add_harness_options, parsed, resolve_host, save_harness, short_harness
from etude.cli.peak_options import add_budget, add_like, only_with_rehearse
from etude.cli.pool_options import add_pool, pool_of
from etude.workbench.most import LONGEST_S

if TYPE_CHECKING:
    from etude.workbench.sources import Source
    from etude.workbench.task import Task

POLICY = "posterior"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude peak`."""
    add = parser.add_argument
    add("harness", nargs="*", metavar="HARNESS", help="HARNESS.toml, MODULE:NAME, or results to show again")
    add(
        "--simulate",
        metavar="CURVE[:PEAK]",
        help="a simulated server in place of HARNESS: mm1, mmc, knee, ramp, tail and others (default peak 500)",
    )
    add(
        "-o",
        "--output",
        type=kinds.place,
        metavar="DIR",
        help="results directory; one that holds this search goes on",
    )
    add_harness_options(parser.add_argument_group("in place of HARNESS"))
    add_pool(parser)
    _search_options(parser.add_argument_group("the search"))
    _other_ways(parser.add_argument_group("before the bench is booked"))
    add(
        "--figures", metavar="DIR", help="draw figures there: load factors over bench time, time at each load"
    )
    add("--format", choices=FORMATS, default="pdf", help="of the figures (default pdf)")
    add("--json", action="store_true", help="print the answer as JSON on standard output (docs/formats.md)")
    add("-q", "--quiet", action="store_true", help="nothing of single trials, only the answer")


def _search_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--policy",
        default=POLICY,
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
        type=_factor,
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


def _other_ways(group: argparse._ArgumentGroup) -> None:
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


def _factor(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return name, value


def run(options: argparse.Namespace) -> int:
    """Search, or show a search again; returns the exit code."""
    from etude.errors import UsageError

    if options.speed is not None and options.simulate is None:
        raise UsageError("--speed is for --simulate")
    only_with_rehearse(options, "like", "searches", "fixed_cost")
    if options.simulate is not None and options.harness:
        raise UsageError("--simulate takes the place of HARNESS: leave out one of them")
    short = short_harness(options)
    if short:
        save_harness(options, short)
    if options.harness and all((Path(word) / "experiment.json").exists() for word in options.harness):
        from etude.cli.peak_show import show_stored

        return show_stored(options)
    if options.simulate is None and not short and len(options.harness) != 1:
        raise UsageError(
            "expected one HARNESS.toml, --url URL or --run COMMAND (or --simulate CURVE, or results directories to "
            "show again)"
        )
    one_thread()
    spec = pool_of(options)
    if spec is not None and short and not options.harness:
        raise UsageError(
            "--pool takes the harness as a file, which its nodes read: write it with --save FILE"
        )
    if spec is not None and (options.rehearse or options.calibrate):
        raise UsageError("--pool is for a search: leave it out with --rehearse and --calibrate")
    source = _source(options, short)
    from etude.cli.peak_show import check_figures

    check_figures(options)
    if spec is not None and source.load_hosts:
        raise UsageError(
            "--pool: its jobs would offer load from the same hosts ([generator] hosts): leave out one of them"
        )
    if spec is None and not options.rehearse:
        resolve_host(options)
    if options.rehearse or options.calibrate:
        from etude.cli.peak_ways import calibrate, rehearse

        return rehearse(options, source) if options.rehearse else calibrate(options, source)
    from etude.cli.peak_run import search_peak

    return search_peak(options, source)


def _source(options: argparse.Namespace, short: str) -> Source:
    """The source, and its task as the command line changes it. `short`: a harness of options, else empty."""
    from etude.errors import UsageError
    from etude.workbench.sources import of_harness, of_simulation

    if options.simulate is not None:
        source = of_simulation(options.simulate)
        if options.factor:
            raise UsageError("--factor is for a harness: a simulated server has none")
    elif short and not options.harness:
        source = parsed(Path("command-line"), short)
    else:
        source = of_harness(options.harness[0])
    return replace(source, task=_task(source.task, options))


def _task(task: Task, options: argparse.Namespace) -> Task:
    from etude.errors import UsageError

    given = {
        "seed": options.seed,
        "seed_load": options.seed_load,
        "promise": options.promise,
        "within": options.within,
        "width": options.width,
        "confidence": options.confidence,
        "budget_s": options.budget,
    }
    seed_load = options.seed_load
    if task.whole and seed_load is not None and (seed_load < 1 or not float(seed_load).is_integer()):
        raise UsageError(f"--seed-load {seed_load:g}: expected a whole number from 1, as the loads are")
    return replace(task, **{name: value for name, value in given.items() if value is not None})
