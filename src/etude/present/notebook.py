"""Verdicts and results as notebooks show them: one line, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from html import escape

from etude.analysis.verdict import TestVerdict, Verdict
from etude.present import text
from etude.present.sentences.warnings import group_text
from etude.present.status_line import status_line
from etude.present.verdict_text import answer_lines, verdict_lines
from etude.units.formatting import counted, quantity

_HEADINGS = ("mean", "95 %", "median", "trials")


class ShownVerdict(Verdict):
    """A verdict that shows itself: `print` has it as text, a notebook as a table."""

    def __str__(self) -> str:
        return "\n".join(verdict_lines(self))

    def __repr__(self) -> str:
        return notebook_line(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def notebook_table(verdict: Verdict) -> ShownVerdict:
    """The same verdict, which shows itself."""
    return ShownVerdict(**{each.name: getattr(verdict, each.name) for each in fields(verdict)})


def notebook_line(verdict: Verdict) -> str:
    """What stands for a verdict among other values: its tests and where it lies."""
    tests = counted(len(verdict.tests), "test")
    ratios = [f"{c.other} / {c.base} = {text.ratio_text(c.ratio)}" for c in verdict.comparisons[:1]]
    return f"<Verdict of {verdict.directory}: {', '.join([tests, *ratios])}>"


def as_html(verdict: Verdict) -> str:
    """A table of the judged metric, and the sentences below it."""
    rows = [_cells(test, verdict.primary) for test in verdict.tests]
    lines = [*filter(None, [status_line(verdict)]), *answer_lines(verdict)]
    notes = [f"Note: {group_text(group)}" for group in verdict.warnings]
    return table((verdict.primary, *_HEADINGS), rows) + "".join(
        f"<p>{escape(line)}</p>" for line in (*lines, *notes)
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table of escaped texts."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(test: TestVerdict, primary: str) -> tuple[str, ...]:
    found = test.metric(primary)
    if found is None or found.summary is None:
        return (test.test, "–", "–", "–", str(test.kept))
    s, like = found.summary, found.summary.mean
    interval = s.mean_interval
    mean, median = (quantity(value, found.unit, like) for value in (s.mean, s.median))
    ends = [quantity(x, found.unit, like) for x in (interval.low, interval.high)] if interval else ["–"]
    return (test.test, mean, " … ".join(ends), median, str(test.kept))
