"""Options of the verbs about results over time: the store, history and compare."""

from __future__ import annotations

import argparse
from functools import partial

from etude.cli import parser as kinds

STORE_ADD = """\
Add results to the store, with the commit that they are of.

DIR is a results directory, or a file that `etude stats` reads. The same one is not added twice; of one that has grown
since, the larger replaces the smaller. Each is added whole or not at all (docs/store.md).
"""


def store_add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude store add`."""
    add = parser.add_argument
    repeated = partial(add, action="append", default=[])
    add("directories", nargs="+", metavar="DIR", help="a results directory, or a file that etude stats reads")
    add("--repository", metavar="DIR", help="ask git there for the commit, its time, branch and tags")
    add(
        "--dirty",
        action="store_true",
        help="also where files there are not committed: the result has the tag dirty",
    )
    add("--commit", metavar="COMMIT", help="of which they are; with --repository one of it, else any word")
    add(
        "--committed",
        type=kinds.moment,
        metavar="TIME",
        help="when that commit was made, such as 2026-11-23T08:00Z (without --repository)",
    )
    add("--branch", metavar="NAME", help="of which they are")
    repeated("--tag", metavar="WORD", help="a word to find them by; repeat for several")
    add(
        "--machine",
        metavar="NAME",
        help="what the machine is called (default: its host's name); needed for files that do not say",
    )
    add_place(parser)


STORE = """\
What is stored: results, tests; a result taken out; the store checked. `etude store add` adds to it.

A store is a file of SQLite or a database of PostgreSQL (docs/store.md): --store, else $ETUDE_STORE, else
etude-store.sqlite in the working directory.
"""


STORE_WAYS = ("list", "tests", "forget", "check")


def add_place(parser: argparse.ArgumentParser) -> None:
    """Declare `--store`."""
    parser.add_argument(
        "--store",
        metavar="PLACE",
        help="a file of SQLite, or postgresql://USER@HOST/DATABASE (default: $ETUDE_STORE, or etude-store.sqlite here)",
    )


def store_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude store`."""
    add = parser.add_argument
    add(
        "what",
        choices=STORE_WAYS,
        metavar="|".join(STORE_WAYS),
        help="list results, list tests, take results out, look for damage",
    )
    add("results", nargs="*", metavar="RESULT", help="of forget: their numbers, as list shows them")
    add("--json", action="store_true", help="list and tests as JSON (docs/formats.md)")
    add_place(parser)


HISTORY = """\
Stored results of one test over time: steps, their first results, and what of the machine changed there.

Each machine has a history of its own. A rules file (--rules) turns steps into alerts; --backtest shows how often these
would have been false or missing, and --gate ends with 1 where there is one (docs/history.md).
"""


def history_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude history`."""
    add = parser.add_argument
    add("test", metavar="TEST", help="its name in the store (etude store tests)")
    add("--metric", metavar="NAME", help="another than elapsed")
    add("--machine", metavar="NAME", help="results of this machine only")
    add("--branch", metavar="NAME", help="results of commits of this branch only")
    add_place(parser)
    add("--figure", metavar="FILE", help="draw it: .pdf, .eps, .svg or .png")
    add("--page", metavar="FILE", help="write one self-contained HTML page")
    add("--json", action="store_true", help="print it as JSON")
    group = parser.add_argument_group("alerts").add_argument
    group("--rules", metavar="FILE", help="rules that raise alerts (TOML)")
    group("--backtest", action="store_true", help="how often the rules would be wrong on this history")
    group("--gate", action="store_true", help="end with 1 where a rule raises an alert; needs a backtest")
    group(
        "--confirm",
        nargs=2,
        metavar=("BASE", "HEAD"),
        help="compare these two commands afresh, interleaved: an alert that they do not bear out is withdrawn",
    )


HISTORY_MARK = """\
Say that a test is expected to be another from a commit on: its step raises no alert."""


def history_mark_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude history mark`."""
    add = parser.add_argument
    add("test", metavar="TEST", help="its name in the store")
    add("commit", metavar="COMMIT", help="the first one with the change, or its beginning")
    add("--why", required=True, metavar="TEXT", help="what whoever meets the step should know")
    add("--metric", metavar="NAME", help="this metric only (default: all)")
    add_place(parser)


COMPARE = """\
Two sides of the store compared: the ratio with its interval of every test and metric that both have.

A and B each say which results are meant: commit:0064ab, tag:v1, date:2026-11-01 (the newest up to that day),
machine:NAME, or several of these between commas; a word alone is looked up as each of these, in this order.
"""


def compare_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude compare`."""
    add = parser.add_argument
    add("base", metavar="A", help="what is compared with")
    add("other", metavar="B", help="what is compared")
    add("--test", metavar="NAME", help="this test only")
    add(
        "--metric",
        metavar="NAME",
        default="elapsed",
        help="of this metric (default elapsed); all: of every one",
    )
    add_place(parser)
    add("--json", action="store_true", help="print it as JSON")
