"""Options of the verbs that read results: stats, report, diff, plan, export and bundle."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from etude.cli import parser as kinds
from etude.cli.shared_options import (
    add_between_sessions,
    add_confidence,
    add_output,
    add_same_within,
    add_undecided,
)

STATS = """\
Show statistics of stored results, also of other programs: summaries, comparisons, warnings, and checks for CI.

FILE is a results directory, a bundle, an Auto-pilot .res file, or what hyperfine, perf stat, fio, pytest-benchmark and
others write (docs/howto/reading-other-tools.md); FORMAT:FILE names the format. Of several files the first is the
baseline. What each number means, and its formula: docs/explanation/statistics.md.
"""


def stats_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude stats`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="results; the first is the baseline")
    parser.add_argument(
        "--style",
        choices=("etude", "autopilot"),
        default="etude",
        help="autopilot: the tables of Getstats, with its options (etude stats --style autopilot --help)",
    )
    _stats_shown(parser.add_argument_group("tables"))
    _stats_compared(parser.add_argument_group("comparisons"))
    _stats_warned(parser.add_argument_group("notes"))
    _stats_asked(parser.add_argument_group("checks, answered by the exit code"))
    from etude.cli.analyse.transform_options import add_transform_options

    add_transform_options(parser)


def _stats_shown(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    repeated("--metric", metavar="NAME", help="show only this metric (repeatable); the first is compared")
    add("--all", action="store_true", help="show all metrics, and a table for each of many tests")
    add(
        "--wide",
        action="store_true",
        help="show all columns, also on a narrow screen, and each sample as a line of bars in the order of its trials, "
        "outliers marked",
    )
    add_confidence(add)
    add(
        "--percentiles",
        type=kinds.percentile_list,
        nargs="?",
        const=(0.5, 0.9, 0.99, 0.999),
        metavar="LIST",
        help="percentiles to show, with intervals: of all responses if trials have histograms, else of the trials "
        "(default p50,p90,p99,p99.9)",
    )
    add(
        "--trim",
        type=kinds.share_below_half,
        metavar="SHARE",
        help="also show the trimmed mean, without this share at either end",
    )
    add(
        "--mean",
        choices=("arithmetic", "harmonic", "geometric", "proportion"),
        help="use this mean; an error if it does not fit the metric",
    )
    add(
        "--error-bars",
        choices=("interval", "min-max", "quartiles", "deviation"),
        default="interval",
        help="statistic shown beside the mean (default: its interval)",
    )
    add("--json", action="store_true", help="print JSON (docs/reference/formats.md)")


def _stats_compared(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    add("--reference", metavar="TEST", help="baseline: compare all other tests with this one")
    add_between_sessions(
        group,
        kinds.share,
        "standard deviation between sessions of one test on this machine, such as 3%%: "
        "results of different sessions are compared only if it is known",
    )
    add_same_within(add)
    repeated(
        "--test",
        choices=("student", "by-variance", "permutation", "bootstrap"),
        help="an additional two-sample test of each comparison; repeat for several",
    )


def _stats_warned(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    repeated(
        "--threshold",
        metavar="NAME=VALUE",
        help="threshold of a warning, such as drift=5%% (docs/reference/warnings.md)",
    )
    repeated(
        "--watch",
        metavar="NAME",
        help="also report whether this metric rises, falls or shifts its level over the trials",
    )
    repeated("--no-warn", metavar="KIND", help="suppress warnings of this kind")
    add(
        "-v",
        "--verbose",
        "--all-warnings",
        action="store_true",
        help="show every note in full, and also outliers that the monitor cannot explain",
    )


def _stats_asked(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    add(
        "--predicate",
        metavar="EXPR",
        help="exit with 1 unless EXPR holds for elapsed, user and system (or --metric) of every test, "
        "as getstats --predicate",
    )
    repeated(
        "--fail-if",
        metavar="BOUND",
        help="exit with 1 if the interval shows that BOUND holds, such as 'elapsed > baseline * 1.05'",
    )
    add_undecided(group)


def stats_take_over(arguments: Sequence[str]) -> int | None:
    """Run Getstats where `--style autopilot` is given; returns its exit status, else None."""
    words = list(arguments)
    for place, word in enumerate(words):
        if word == "--":
            break
        if word == "--style=autopilot" or words[place : place + 2] == ["--style", "autopilot"]:
            from etude.cli import getstats

            del words[place : place + (1 if "=" in word else 2)]
            return getstats.main(words)
    return None


REPORT = """\
Make one self-contained page of stored results: the verdict first, then tables, charts, warnings and the data.

FILE is what `etude stats` reads (a results directory, or what another program wrote), results of a search or a map, or
the output of `etude load --json` or `etude replay --json`. Of several the first is the baseline.
The HTML page needs no network and no other file (docs/howto/report.md).
"""


REPORT_FORMATS = {"html": "html", "markdown": "md", "latex": "tex"}
"""Report formats, with the ending of each one's file."""


def report_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude report`."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="results; the first is the baseline")
    add_output(
        add,
        "FILE",
        "output file; - is standard output (default: HTML to report.html in the first results directory, "
        "beside a bundle, or here; "
        "the others to standard output)",
    )
    add(
        "--format",
        choices=tuple(REPORT_FORMATS),
        help="html (default), markdown for pull requests, latex for papers; else from the name of -o",
    )
    add("--title", metavar="TEXT", help="title of the page (default: the experiment's name)")
    add("--metric", metavar="NAME", help="judge this metric instead of the primary one")
    add("--reference", metavar="TEST", help="baseline: compare all other tests with this one")
    add_same_within(add)
    add_between_sessions(
        parser,
        kinds.share,
        "standard deviation between sessions of one test on this machine, for comparing several results",
    )
    add_confidence(add)


DIFF = """\
Show what differs between two results: machines, settings, programs and plans. The exit code is 0 without --fail-if.

A and B are results directories or bundles; `now` is the machine as it is at this moment. A alone is compared with
itself: the machine before its first trial and after its last. Values that always change (load, free space, times)
and those that only one side recorded are listed apart (docs/howto/snapshot.md).
"""


def diff_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude diff`."""
    add = parser.add_argument
    repeated = partial(add, action="append", default=[])
    add("first", metavar="A", help="a results directory, a bundle, or now")
    add("second", nargs="?", metavar="B", help="a second one; without it, A is compared before and after")
    add("--all", action="store_true", help="also list values that always change, and those not recorded")
    repeated(
        "--fail-if",
        metavar="NAME",
        help="exit with 1 if a name that fits the pattern differs, such as 'sysctl.*'; repeat for several",
    )
    add("--json", action="store_true", help="print JSON (docs/reference/formats.md)")


WHY = """\
Why one test takes longer than another: causes ranked, with their share of the difference and its interval.

DIR is a results directory of `etude bench` or `etude run`. Further pairs of trials are run, plain and under
instruments in the same random blocks: a timeline by perf (functions, system calls, page faults, waiting, on the
critical path) and Étude's recorder (calls and bytes by file). With --outliers: trials of one test, slow against
typical ones. What is in the directory of pairs or trials already is shown again, or continued if it was not finished
(docs/howto/why.md).
"""


def why_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude why`."""
    add = parser.add_argument
    add("directory", metavar="DIR", help="a results directory of etude bench or etude run")
    add("tests", nargs="*", metavar="TEST", help="the two tests, the baseline first (default: the first two)")
    add(
        "--outliers",
        action="store_true",
        help="explain the slow trials of one TEST (default: the only one) by further trials of it",
    )
    add(
        "--trials",
        type=kinds.count,
        metavar="N",
        help="with --outliers: number of trials, 10 or more (default: what --time allows, 40 to 400)",
    )
    add(
        "--pairs",
        type=kinds.count,
        metavar="N",
        help="number of pairs, 5 or more (default: what --time allows, 5 to 30)",
    )
    add(
        "--time",
        type=kinds.seconds,
        default=60.0,
        metavar="DURATION",
        help="wall-clock time that all pairs or trials may take (default 60s)",
    )
    add_output(add, "PAIRS", "directory of the pairs or trials (default: why, or why-outliers, in DIR)")
    add(
        "--instructions",
        action="store_true",
        help="also count them exactly, by function, in two further runs of each test under valgrind (far slower)",
    )
    add("--page", metavar="FILE", help="also write a page: waterfall, flame graph, calls, files, processes")
    add(
        "--export",
        metavar="FILE",
        help="also write the stacks: a name that ends in .speedscope.json, or .perf.txt (as perf script)",
    )
    add("--json", action="store_true", help="print JSON (docs/reference/formats.md)")
    add("-q", "--quiet", action="store_true", help="no progress")


PLAN = """\
Plan from a pilot: how many trials, and how much time, a difference needs, and what fits a deadline.

PILOT is a results directory, or a file of any format that `etude stats` reads. For tests that are compared: the trials
with which a true difference is found. For a single test, or with --precision: the trials that its mean needs.
"""


def plan_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude plan`."""
    add = parser.add_argument
    repeated = partial(add, action="append", default=[])
    add("pilot", metavar="PILOT", help="a results directory, or a file that etude stats reads")
    add(
        "--effect",
        type=kinds.share,
        metavar="SHARE",
        help="smallest difference between two tests to detect (default 1%%)",
    )
    add(
        "--power",
        type=kinds.share,
        default=0.8,
        metavar="SHARE",
        help="probability of detecting it (default 0.8)",
    )
    add(
        "--precision",
        type=kinds.share,
        metavar="SHARE",
        help="plan the mean of each test instead: its relative margin of error",
    )
    add(
        "--deadline",
        type=kinds.seconds,
        metavar="DURATION",
        help="show what difference this time can detect, such as 30m or 2h",
    )
    add("--metric", metavar="NAME", help="metric to plan for (default: the primary one)")
    repeated(
        "--test",
        metavar="NAME",
        help="plan for these tests only; the first is the baseline; repeat for each",
    )
    add("--json", action="store_true", help="print JSON (docs/howto/planning.md)")


EXPORT = """\
Export results in the formats of other programs: for their dashboards, bots and statistics.

FILE is what `etude stats` reads; with --store the history in a store is exported. What a format cannot hold is
reported on standard error. docs/howto/export.md lists what each format keeps and loses.
"""


def export_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude export`."""
    from etude.export import FORMATS

    add = parser.add_argument
    repeated = partial(add, action="append", default=[])
    add("files", nargs="*", metavar="FILE", help="results")
    add(
        "--format",
        required=True,
        choices=tuple(FORMATS),
        metavar="FORMAT",
        help=f"{', '.join(FORMATS)} (docs/howto/export.md)",
    )
    add_output(add, "FILE", "output file (default: standard output)")
    add(
        "--store",
        metavar="PLACE",
        help="export the results of this store (a file, or a URL), or those that the options below select",
    )
    repeated("--test", metavar="NAME", help="export only this test; repeat for several")
    repeated("--metric", metavar="NAME", help="export only this metric; repeat for several")
    add("--machine", metavar="NAME", help="export only results of this machine")
    add(
        "--commit",
        metavar="SHA",
        help="commit of the measured program; with --store: export only its results",
    )
    add("--branch", metavar="NAME", help="branch of the commit; with --store: export only its results")
    add(
        "--repository",
        metavar="URL",
        help="repository of the measured program, for Conbench: https://github.com/ORG/NAME",
    )
    add("--reason", metavar="WORD", help="reason for the run, for Conbench, such as commit or nightly")
    add_confidence(add)


BUNDLE = """\
Pack results for publication: with scripts, machine, verdict and checksums, so that others can verify and repeat.

DIR is a results directory; several go into one bundle. The same input gives the same bytes. docs/howto/bundle.md
lists the contents of a bundle.
"""


def bundle_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude bundle`."""
    add = parser.add_argument
    add("directories", nargs="*", metavar="DIR", help="results directories")
    add_output(
        add,
        "FILE",
        "FILE.tar.gz, FILE.tar.zst or FILE.tar; another name is that of a directory (default DIR-bundle.tar.gz)",
    )
    add("--no-logs", action="store_true", help="leave out the output of the programs (TEST/logs)")
    add(
        "--anonymous",
        action="store_true",
        help="replace host names by host-1 … and home directories by /home/user, consistently",
    )
    kinds.add_mask(add)
    add(
        "--verify",
        metavar="FILE",
        help="pack nothing: check every file of this bundle, and that none is missing or was added (exit code 1: not "
        "so)",
    )
