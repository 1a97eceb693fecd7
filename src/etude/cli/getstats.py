"""The program `getstats`: Auto-pilot's tables and predicates, with the options that its papers show."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from etude.analysis.getstats.options import USAGE, parse_getstats
from etude.cli.entry import complain, run_program
from etude.cli.help import fitted, help_width
from etude.errors import EtudeError
from etude.version import __version__


def entry() -> None:
    """The program itself."""
    run_program("getstats", main)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `getstats` with these words; returns its exit code (docs/reference/exit-codes.md)."""
    try:
        options = parse_getstats(sys.argv[1:] if argv is None else argv)
        if options.help or options.version:
            said = fitted(USAGE, help_width()) if options.help else f"getstats (Étude) {__version__}\n"
            print(said, end="")
            return 0
        from etude.cli.analyse.getstats_run import run

        return run(options)
    except EtudeError as error:
        return complain("getstats", str(error), error.exit_code)


if __name__ == "__main__":
    entry()
