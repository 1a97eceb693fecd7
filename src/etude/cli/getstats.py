"""The program `getstats`: Auto-pilot's tables and predicates, with the options that its papers show."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from etude.cli.entry import complain, run_program
from etude.cli.help import fitted, help_width
from etude.errors import EtudeError, UsageError
from etude.report.getstats.options import USAGE, GetstatsOptions, parse_getstats
from etude.version import __version__

if TYPE_CHECKING:
    from etude.report.getstats.sources import Source


def entry() -> None:
    """The program itself."""
    run_program("getstats", main)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `getstats` with these words; returns its exit code (docs/exit-codes.md)."""
    try:
        options = parse_getstats(sys.argv[1:] if argv is None else argv)
        if options.help or options.version:
            said = fitted(USAGE, help_width()) if options.help else f"getstats (Étude) {__version__}\n"
            print(said, end="")
            return 0
        return _run(options)
    except EtudeError as error:
        return complain("getstats", str(error), error.exit_code)


def _run(options: GetstatsOptions) -> int:
    if not options.files:
        raise UsageError(
            "no file; name results files (.res), results directories or tables: see getstats --help"
        )
    sources = _sources(options)
    if options.predicate is not None or options.dump or options.csv or not options.standard:
        _complain_of_emptied(sources, options)  # a table says it itself
    if options.predicate is not None:
        return _judge(sources, options, options.predicate)
    for line in _printed(sources, options):
        print(line)
    print(_dump(sources, options) if options.dump or not options.standard else _tables(sources, options))
    return 0


def _sources(options: GetstatsOptions) -> list[Source]:
    """What is shown, past all transforms."""
    if options.from_summary:
        from etude.report.getstats.summaries import read_summaries

        return [source for path in options.files for source in read_summaries(path, options.settings)]
    if options.relational:
        from etude.report.getstats.relations import transformed_sources

        return transformed_sources(options.files, options)
    from etude.report.getstats.relations import read_sources

    return [source for path in options.files for source in read_sources(path)]


def _printed(sources: Sequence[Source], options: GetstatsOptions) -> list[str]:
    """What transforms print."""
    if not options.relational:
        return []
    from etude.report.getstats.relations import printed, warned

    return printed(sources) + (warned(sources) if not options.standard and not options.csv else [])


def _complain_of_emptied(sources: Sequence[Source], options: GetstatsOptions) -> None:
    if options.relational:
        from etude.report.getstats.relations import emptied

        for line in emptied(sources):
            complain("getstats", line, 0)


def _judge(sources: Sequence[Source], options: GetstatsOptions, text: str) -> int:
    """0 if the predicate holds for every judged column of every file, else 1."""
    from etude.stats.expression import ExpressionError
    from etude.stats.predicate import Predicate

    holds = True
    try:
        predicate = Predicate(text, options.confidence)
        for source in sources:
            judgement = predicate.judge(source.judged(options.columns))
            holds = holds and judgement.holds
            if options.verbose:
                print(f"{source.label}: {'yes' if judgement.holds else 'no'}: {judgement.why}")
    except ExpressionError as error:
        raise UsageError(f"--predicate, column {error.column}: {error.message}") from None
    return 0 if holds else 1


def _dump(sources: Sequence[Source], options: GetstatsOptions) -> str:
    from etude.report.getstats.tables import aligned, comma_separated

    parts = []
    for source in sources:
        raw = source.raw()
        lines = [comma_separated(raw)] if options.csv else [source.label, *aligned(raw)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _tables(sources: Sequence[Source], options: GetstatsOptions) -> str:
    from etude.report.getstats.tables import as_csv, table

    files = [source.shown(options.columns) for source in sources]
    if options.twosamplet:
        from etude.report.getstats.ttest import comparison

        if len(files) < 2:
            raise UsageError("--twosamplet compares later files with the first one; name two or more")
        return comparison(files, options)
    return (as_csv if options.csv else table)(files, options.confidence, options.settings)


if __name__ == "__main__":
    entry()
