"""Options of the verbs about results over time: the store, history and compare."""

from __future__ import annotations

import argparse
from functools import partial

from etude.cli import parser as kinds
from etude.cli.shared_options import add_output
from etude.peak import LONGEST_BUDGET_S

STORE_ADD = """\
Add results to the store, with the commit that was measured.

DIR is a results directory, or a file that `etude stats` reads. The same result is not added twice; one that has
grown since replaces the stored one. Each is added whole or not at all (docs/howto/store.md).
"""


def store_add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude store add`."""
    add = parser.add_argument
    repeated = partial(add, action="append", default=[])
    add("directories", nargs="+", metavar="DIR", help="a results directory, or a file that etude stats reads")
    add("--repository", metavar="DIR", help="ask git in DIR for the commit, its time, branch and tags")
    add(
        "--dirty",
        action="store_true",
        help="also accept uncommitted changes: the result gets the tag dirty",
    )
    add(
        "--commit",
        metavar="COMMIT",
        help="the commit that was measured; with --repository one of that repository, else any word",
    )

    add(
        "--committed",
        type=kinds.moment,
        metavar="TIME",
        help="when that commit was made, such as 2026-11-23T08:00Z (without --repository)",
    )
    add("--branch", metavar="NAME", help="the branch that was measured")
    repeated("--tag", metavar="WORD", help="a tag of the results; repeat for several")
    add(
        "--machine",
        metavar="NAME",
        help="name of the machine (default: its host name); required for files without one",
    )
    add_place(parser)


STORE = """\
List, remove and check stored results. `etude store add` adds results.

A store is a file of SQLite or a database of PostgreSQL (docs/howto/store.md): --store, else $ETUDE_STORE, else
etude-store.sqlite in the working directory.
"""


STORE_WAYS = ("list", "tests", "forget", "check")


def add_place(parser: argparse.ArgumentParser) -> None:
    """Declare `--store`."""
    parser.add_argument(
        "--store",
        metavar="PLACE",
        help="an SQLite file, or postgresql://USER@HOST/DATABASE (default: $ETUDE_STORE, or etude-store.sqlite here)",
    )


def store_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude store`."""
    add = parser.add_argument
    add(
        "what",
        choices=STORE_WAYS,
        metavar="|".join(STORE_WAYS),
        help="list results; list tests; remove results; look for damage",
    )
    add(
        "results", nargs="*", metavar="RESULT", help="with forget: numbers of the results, as list shows them"
    )
    add("--json", action="store_true", help="print list and tests as JSON (docs/reference/formats.md)")
    add_place(parser)


HISTORY = """\
Show stored results of one test over time: steps, their first results, and what changed on the machine.

Each machine has a history of its own. A rules file (--rules) turns steps into alerts; --backtest shows how often these
would have been false or missing, and --gate ends with 1 where there is one (docs/howto/history.md).
"""


def history_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude history`."""
    add = parser.add_argument
    add("test", metavar="TEST", help="name of the test in the store (etude store tests)")
    add("--metric", metavar="NAME", help="metric (default elapsed)")
    add("--machine", metavar="NAME", help="show only results of this machine")
    add("--branch", metavar="NAME", help="show only results of commits of this branch")
    add_place(parser)
    add("--figure", metavar="FILE", help="draw the history: .pdf, .eps, .svg or .png")
    add("--page", metavar="FILE", help="write one self-contained HTML page")
    add("--json", action="store_true", help="print JSON")
    group = parser.add_argument_group("alerts").add_argument
    group("--rules", metavar="FILE", help="rules that raise alerts (TOML)")
    group(
        "--backtest", action="store_true", help="estimate how often the rules would be wrong on this history"
    )
    group("--gate", action="store_true", help="exit with 1 if a rule raises an alert; needs a backtest")
    group(
        "--confirm",
        nargs=2,
        metavar=("BASE", "HEAD"),
        help="compare these two commands again, interleaved; an alert that they do not confirm is withdrawn",
    )


HISTORY_MARK = """\
Mark a step as expected: from this commit on, the test has changed on purpose, and no alert is raised."""


def history_mark_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude history mark`."""
    add = parser.add_argument
    add("test", metavar="TEST", help="name of the test in the store")
    add("commit", metavar="COMMIT", help="the first commit with the change, or a prefix of it")
    add("--why", required=True, metavar="TEXT", help="the reason, shown with the step")
    add("--metric", metavar="NAME", help="mark only this metric (default: all)")
    add_place(parser)


COMPARE = """\
Compare two sets of stored results: the ratio, with its interval, of every test that both have.

A and B each select results: commit:0064ab, tag:v1, date:2026-11-01 (the newest up to that day),
machine:NAME, or several of these between commas; a word alone is looked up as each of these, in this order.
"""


def compare_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude compare`."""
    add = parser.add_argument
    add("base", metavar="A", help="the baseline")
    add("other", metavar="B", help="the results compared with it")
    add("--test", metavar="NAME", help="compare only this test")
    add(
        "--metric",
        metavar="NAME",
        default="elapsed",
        help="metric to compare (default elapsed); all: every metric",
    )
    add_place(parser)
    add("--json", action="store_true", help="print JSON")


BISECT = """\
Find the commit that changes a metric, between an older commit GOOD and a newer one BAD.

Commits are built outside of the repository, which is not changed. Trials of commits and of GOOD and BAD run in random
blocks; which commit is next is decided by what its trials are expected to tell per second, with its build. It ends
when one commit has the probability --confidence (docs/howto/bisect.md).
"""


def bisect_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude bisect`."""
    add = parser.add_argument
    add("good", nargs="?", metavar="GOOD", help="the older commit, a tag or a branch")
    add("bad", nargs="?", metavar="BAD", help="the newer one")
    add(
        "command",
        nargs="*",
        metavar="-- COMMAND",
        help="the measured command; it runs in the built source tree",
    )
    add("--build", metavar="LINE", help="line for /bin/sh that builds a source tree, in its top directory")
    add(
        "--repository", default=".", metavar="DIR", help="the git repository (default: the working directory)"
    )
    add(
        "--ancestry",
        action="store_true",
        help="all commits between them, in topological order (default: along first parents)",
    )
    add(
        "--metric",
        type=kinds.named_metric,
        default="elapsed",
        metavar="NAME[[:UNIT]=REGEX]",
        help="the metric (default elapsed); or a number in the program's output: the first group of REGEX",
    )
    add(
        "--at-least",
        type=kinds.share,
        default=0.03,
        metavar="SHARE",
        help="smallest change of interest (default 3%%); a smaller one counts as none",
    )
    add(
        "--confidence",
        type=kinds.percent_between,
        default=0.95,
        metavar="PERCENT",
        help="probability at which it ends (default 95)",
    )
    add(
        "--budget",
        type=kinds.time_to(LONGEST_BUDGET_S),
        metavar="TIME",
        help="end after so much building and measuring",
    )
    add("--seed", type=kinds.seed, metavar="N", help="of the random order (default: chosen)")
    group = parser.add_argument_group("builds and trials").add_argument
    group(
        "--build-timeout",
        type=kinds.time_to(LONGEST_BUDGET_S),
        metavar="TIME",
        help="end a build that takes longer: it is skipped",
    )
    group(
        "--timeout",
        type=kinds.time_to(LONGEST_BUDGET_S),
        metavar="TIME",
        help="end a trial that takes longer: its commit is skipped",
    )
    group(
        "--builds",
        type=kinds.place,
        metavar="DIR",
        help="keep builds here, for other bisections too (default: in the results)",
    )
    group(
        "--cache",
        type=kinds.size,
        default=10 * 10**9,
        metavar="SIZE",
        help="size of all builds that are kept (default 10G)",
    )
    group = parser.add_argument_group("results").add_argument
    add_output(group, "DIR", "results directory (default etude-results/bisect-UTCTIME)")
    group("--resume", type=kinds.place, metavar="DIR", help="continue a bisection, or show a finished one")
    group("--page", type=kinds.place, metavar="FILE", help="write one self-contained HTML page")
    group("--json", action="store_true", help="print JSON (docs/reference/formats.md)")
    group("-q", "--quiet", action="store_true", help="show no progress")
