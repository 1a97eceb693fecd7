"""`etude report`: one self-contained HTML page of results."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from etude.cli.options.analyse import REPORT_FORMATS
from etude.cli.report_parts import parts_of
from etude.report.judging import Judging
from etude.report.page import content_of, gather
from etude.report.page.write import rendered, write


def run(options: argparse.Namespace) -> int:
    """Read, judge, write; says where the page is."""
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
    endings = {ending: form for form, ending in REPORT_FORMATS.items()} | {
        "htm": "html",
        "markdown": "markdown",
    }
    return endings.get(output.rpartition(".")[2].lower()) if output else None


def _beside(path: str) -> Path:
    place = Path(path)
    return (place if place.is_dir() else Path()) / "report.html"
