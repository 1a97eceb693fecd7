"""Options of the verbs of claims."""

from __future__ import annotations

import argparse

from etude.cli.shared_options import add_budget, add_output

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
    add_budget(add)
    add_output(add, "DIR", "results directory; one of the same bundle is resumed")
    add("--json", action="store_true", help="print JSON")


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
