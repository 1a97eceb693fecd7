"""`etude claims report`: one page of claims, or the artifact appendix."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from etude.claims.stored_claims import read_stored
from etude.cli.analyse.report import report_format
from etude.escaping import write_document
from etude.present.appendix import appendix
from etude.present.page.content import write
from etude.present.sections.claims_page import claims_markdown, claims_page


def run(options: argparse.Namespace) -> int:
    """Read, write; says where the page is."""
    directory = Path(options.directory)
    stored = read_stored(directory)
    if options.appendix is not None:
        document = appendix(stored, options.appendix)
    else:
        report_format(options.output, options.format)
        document = {"html": claims_page, "markdown": claims_markdown}[options.format](stored)
    is_page = options.appendix is None and options.format == "html"
    target = options.output or (str(directory / "report.html") if is_page else "-")
    if target == "-":
        write_document(sys.stdout, document)
        return 0
    write(Path(target), document)
    print(f"Report: {target}")
    return 0
