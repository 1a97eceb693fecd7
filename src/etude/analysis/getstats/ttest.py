"""`getstats --twosamplet`: the tables and tests of two samples, in the layout of figure 3 of the Auto-pilot paper.

Student's t with one pooled deviation, as published figures have it. `etude stats` compares with more care: pairs,
Welch's test, and what drift between two files means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from etude.analysis.getstats.options import GetstatsOptions
from etude.analysis.getstats.tables import File, figures_of, warnings_and_tables
from etude.stats.moments import Moments, Sample
from etude.stats.predicate import Figures
from etude.stats.twosample import Difference, student
from etude.stats.variances import VarianceTest, t_test_by_variance

HEADINGS = ("Null Hyp.", "Alt. Hyp.", "P-value", "Result")


def comparison(files: Sequence[File], options: GetstatsOptions) -> str:
    """Warnings, the files' tables, and each later file (u1) compared with the first one (u2), column by column.

    A column that the first file lacks, or whose values cannot be compared, has one line with the reason.
    """
    warnings, tables = warnings_and_tables(files, options.confidence, options.settings)
    parts = ["\n".join([label, *to_the_left(rows)]) for label, rows in tables]
    baseline = files[0]
    for file in files[1:]:
        heading = f"Comparing {file.label} (Sample 1) to {baseline.label} (Sample 2)."
        blocks = ["\n".join(block) for block in _blocks(file, baseline, options)]
        parts.append("\n".join([heading, "\n\n".join(blocks)]))
    return "\n".join([*warnings, "\n\n".join(parts)])


def to_the_left(lines: Sequence[Sequence[str]]) -> list[str]:
    """Rows of left-aligned cells, each followed by one blank, also the last."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "".join(f"{cell.ljust(width)} " for cell, width in zip(row, widths, strict=True)) for row in lines
    ]


def _blocks(file: File, baseline: File, options: GetstatsOptions) -> Iterator[list[str]]:
    """The lines for each column."""
    found, first = figures_of(file, options.confidence), figures_of(baseline, options.confidence)
    for name in found:
        if name not in first:
            yield [f"{name}: - ({baseline.label} has none)"]
            continue
        try:
            difference, variances = _compare(
                _sample(file, name, found), _sample(baseline, name, first), options
            )
        except ValueError as error:
            yield [f"{name}: - ({error})"]
            continue
        yield _block(name, f"{file.label} - {baseline.label}", difference, variances, options)


def _compare(
    first: Sample, second: Sample, options: GetstatsOptions
) -> tuple[Difference, VarianceTest | None]:
    if options.choice is None:
        return student(first, second, confidence=options.confidence), None
    return t_test_by_variance(first, second, confidence=options.confidence, by=options.choice)


def _sample(file: File, name: str, found: Mapping[str, Figures]) -> Sample:
    if name in file.samples and name not in file.summaries:
        return file.samples[name]
    return Moments(found[name].count, found[name].mean, found[name].stddev)


def _block(
    name: str, what: str, d: Difference, variances: VarianceTest | None, options: GetstatsOptions
) -> list[str]:
    digits = options.settings.precision
    percent = f"{100.0 * options.confidence:.10g}%"
    lines = [f"{name}: {percent}CI for {what} = ({d.low:.{digits}f}, {d.high:.{digits}f})"]
    if variances is not None:
        statistic = "F" if variances.method == "F" else "W"
        lines.append(
            f"{variances.method} test of equal variances: {statistic} = {variances.statistic:.{digits}f}, "
            f"P-value {variances.p:.{digits}f}: {d.method}'s t, {d.degrees:.1f} degrees of freedom"
        )
    rows = [(h.null, h.alternative, f"{h.p:.{digits}f}", h.result) for h in d.hypotheses]
    return [*lines, *to_the_left([HEADINGS, *rows])]
