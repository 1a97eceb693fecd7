"""Getstats' tables and predicates: what its options ask for, read and printed."""

from __future__ import annotations

from collections.abc import Sequence

from etude.analysis.getstats.options import GetstatsOptions
from etude.analysis.getstats.relations import emptied, printed, read_sources, transformed_sources, warned
from etude.analysis.getstats.sources import Source
from etude.analysis.getstats.summaries import read_summaries
from etude.analysis.getstats.tables import as_csv, comma_separated, comparison, table
from etude.cli.entry import complain
from etude.errors import UsageError
from etude.stats.columns import aligned
from etude.stats.expression import ExpressionError
from etude.stats.predicate import Predicate


def run(options: GetstatsOptions) -> int:
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
    if options.from_summary:
        return [source for path in options.files for source in read_summaries(path, options.settings)]
    if options.relational:
        return transformed_sources(options.files, options)
    return [source for path in options.files for source in read_sources(path)]


def _printed(sources: Sequence[Source], options: GetstatsOptions) -> list[str]:
    if not options.relational:
        return []
    return printed(sources) + (warned(sources) if not options.standard and not options.csv else [])


def _complain_of_emptied(sources: Sequence[Source], options: GetstatsOptions) -> None:
    if options.relational:
        for line in emptied(sources):
            complain("getstats", line, 0)


def _judge(sources: Sequence[Source], options: GetstatsOptions, text: str) -> int:
    """0 if the predicate holds for every judged column of every file, else 1."""
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
    parts = []
    for source in sources:
        raw = source.raw()
        lines = [comma_separated(raw)] if options.csv else [source.label, *aligned(raw)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _tables(sources: Sequence[Source], options: GetstatsOptions) -> str:
    files = [source.shown(options.columns) for source in sources]
    if options.twosamplet:
        if len(files) < 2:
            raise UsageError("--twosamplet compares later files with the first one; name two or more")
        return comparison(files, options)
    return (as_csv if options.csv else table)(files, options.confidence, options.settings)
