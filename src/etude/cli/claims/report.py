"""`etude claims report`: one page of claims, or the artifact appendix."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from etude.claims.stored_claims import read_stored
from etude.escaping import write_document
from etude.present.appendix import appendix
from etude.present.page.content import write
from etude.present.sections.claims_page import claims_page


def run(options: argparse.Namespace) -> int:
    """Read, write; says where the page is."""
    directory = Path(options.directory)
    stored = read_stored(directory)
    if options.appendix is not None:
        document = appendix(stored, options.appendix)
        if options.output in (None, "-"):
            write_document(sys.stdout, document)
            return 0
        target = Path(options.output)
    else:
        document = claims_page(stored)
        target = Path(options.output or directory / "report.html")
        if options.output == "-":
            write_document(sys.stdout, document)
            return 0
    write(target, document)
    print(f"Report: {target}")
    return 0
