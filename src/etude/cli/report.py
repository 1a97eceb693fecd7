"""One page of stored results that can be passed on: the verdict first, then tables, charts, warnings and the data.

FILE is what `etude stats` reads: a results directory, or what another program wrote. Of several the first is the
baseline. The HTML page needs no network and no other file (docs/report.md).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from etude.cli import parser as kinds

FORMATS = {"html": "html", "markdown": "md", "latex": "tex"}
"""And the ending of each one's file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude report`."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="results; the first is the baseline")
    add(
        "-o",
        "--output",
        type=kinds.place,
        metavar="FILE",
        help="where to; - is standard output (default: HTML to report.html in the first results directory, or here; "
        "the others to standard output)",
    )
    add(
        "--format",
        choices=tuple(FORMATS),
        help="html (default), markdown for pull requests, latex for papers; else by the name of -o",
    )
    add("--title", metavar="TEXT", help="of the page (default: the experiment's name)")
    add("--metric", metavar="NAME", help="judge this metric instead of the primary one")
    add("--reference", metavar="TEST", help="compare all other tests with this one")
    add(
        "--same-within",
        type=kinds.share,
        metavar="SHARE",
        help="also judge whether tests are the same within this margin, such as 2%%",
    )
    add(
        "--between-sittings",
        type=kinds.share,
        metavar="PERCENT",
        help="how far sittings of one test lie apart on this machine, for comparing several results",
    )
    add(
        "--confidence",
        type=kinds.percent_between,
        default=0.95,
        metavar="PERCENT",
        help="of all intervals (default 95)",
    )


def run(options: argparse.Namespace) -> int:
    """Read, judge, write; says where the page is."""
    from etude.cli.report_parts import parts_of
    from etude.report.judging import Judging
    from etude.report.page import content_of, gather
    from etude.report.page.write import rendered, write

    form = options.format or _by_name(options.output) or "html"
    judging = Judging(
        confidence=options.confidence,
        reference=options.reference,
        same_within=options.same_within,
        full=True,
    )
    found = gather(options.files, judging, options.metric, options.between_sittings)
    document = rendered(content_of(found, options.title, parts=parts_of(options.files)), form)
    target = options.output or ("-" if form != "html" else str(_beside(options.files[0])))
    if target == "-":
        sys.stdout.write(document)
        return 0
    write(Path(target), document)
    print(f"Report: {target}")
    return 0


def _by_name(output: str | None) -> str | None:
    """The format that a file's name stands for."""
    endings = {ending: form for form, ending in FORMATS.items()} | {"htm": "html", "markdown": "markdown"}
    return endings.get(output.rpartition(".")[2].lower()) if output else None


def _beside(path: str) -> Path:
    place = Path(path)
    return (place if place.is_dir() else Path()) / "report.html"
