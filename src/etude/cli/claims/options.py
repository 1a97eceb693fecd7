"""Options of the verbs about claims: new, check, run, verify and report."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from etude.cli import parser as kinds
from etude.cli.shared_options import add_output

CLAIMS_NEW = """\
Write a claims file from stored results: each comparison, peak, map and EXPECT becomes a claim that they support.

RESULTS is a results directory of etude bench, run, peak or surface. Adapt the texts and the bounds to what you claim
(docs/reference/claims.md).
"""


def claims_new_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude claims new`."""
    parser.add_argument("results", nargs="+", metavar="RESULTS", help="a results directory")
    add_output(
        parser.add_argument, "FILE", "the claims file, which must not exist (default: standard output)"
    )


CLAIMS_CHECK = """\
Check claims without running anything: files, programs and needs, and with a pilot the trials, time and disk they need.

Each thing that is missing is one line. The exit code is 1 if anything is missing (docs/howto/claims.md).
"""


def claims_check_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude claims check`."""
    _add_claims(parser)
    parser.add_argument(
        "--pilot",
        metavar="DIR",
        help="results of etude claims run, of any scale, from which costs are estimated",
    )


CLAIMS_RUN = """\
Run the experiments of claims until each claim is supported or refuted, or its trials or the budget are spent.

Results are looked at after 10, 15, … trials; the probability that any claim is decided wrongly is at most 5 % for the
whole file. The exit code is 0 if all are supported, 1 if one is refuted, else 8 (docs/howto/claims.md).
"""


def claims_run_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude claims run`."""
    _add_claims(parser)
    add = parser.add_argument
    _add_budget(add)
    add_output(add, "DIR", "results directory; an unfinished one of the same claims is resumed")
    add("--json", action="store_true", help="print JSON (docs/reference/claims-schema.json)")
    add("-q", "--quiet", action="store_true", help="no progress")


def _add_claims(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="a claims file")
    add("ids", nargs="*", metavar="ID", help="ids of claims (default: all)")
    add("--scale", default="full", metavar="NAME", help="scale of the experiments (default full)")


CLAIMS_VERIFY = """\
Run the claims of a bundle again on this machine, and show both results side by side.

The bundle's checksums are checked first. What differs between the machines is shown before anything runs. The exit code
is that of `etude claims run`: 0 all supported here, 1 one refuted, 8 undecided (docs/howto/claims-verify.md).
"""


def claims_verify_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude claims verify`."""
    add = parser.add_argument
    add("bundle", metavar="BUNDLE", help="a bundle of results of etude claims run")
    add("--scale", metavar="NAME", help="run in this scale, such as quick (default: that of the bundle)")
    _add_budget(add)
    add_output(add, "DIR", "results directory; one of the same bundle is resumed")
    add("--page", metavar="FILE", help="also write a page: both results of each claim, and what differs")
    add("--json", action="store_true", help="print JSON")
    add("-q", "--quiet", action="store_true", help="no progress")


CLAIMS_REPORT = """\
Make one page of claims, the verdicts first, or the artifact appendix that committees ask for.

DIR is a results directory of `etude claims run` or `etude claims verify`.
"""


def claims_report_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude claims report`."""
    add = parser.add_argument
    add("directory", metavar="DIR", help="results of claims")
    add_output(
        add,
        "FILE",
        "output file; - is standard output (default: report.html in DIR; all but the page: standard output)",
    )
    add(
        "--format",
        choices=("html", "markdown"),
        default="html",
        help="html (default), or markdown: the verdicts alone, for a pull request",
    )
    add("--appendix", choices=("md", "latex"), help="write the artifact appendix in this format instead")


def _add_budget(add: Callable[..., object]) -> None:
    add(
        "--budget",
        type=kinds.time_to(math.inf),
        default=math.inf,
        metavar="DURATION",
        help="begin no look that is expected to end later, such as 1h; those that decide most come first",
    )
