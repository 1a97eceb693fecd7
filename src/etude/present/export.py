"""A verdict for others: a table and its sentences as Markdown and in notebooks, its figures as CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from etude.analysis.cross_session import CrossSession
from etude.analysis.verdict import Verdict
from etude.errors import cannot_write
from etude.osutil.trust import write_user_file
from etude.present.section import Table
from etude.present.sections.bench import verdict_table
from etude.present.sentences.verdict import answer_lines, note_lines, status_line
from etude.present.to_html import html_lines, html_table
from etude.present.to_json import json_text, summary_figures, verdict_document
from etude.present.to_markdown import table_markdown
from etude.results.delimited import text_cell

_COLUMNS = (
    "count",
    "mean",
    "low",
    "high",
    "median",
    "median_low",
    "median_high",
    "minimum",
    "maximum",
    "deviation",
)


def write(verdict: Verdict, form: str, path: Path) -> None:
    """Write a verdict to a file.

    Raises:
        MachineRefuses: it cannot be written.
    """
    content = {"csv": to_csv, "json": to_json, "markdown": to_markdown}[form](verdict)
    write_text(path, content if content.endswith("\n") else content + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises MachineRefuses where that cannot be."""
    try:
        write_user_file(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise cannot_write(path, error) from error


def to_json(verdict: Verdict, across: Sequence[CrossSession] = (), machines: Sequence[str] = ()) -> str:
    """The verdict as one JSON document."""
    return json_text(verdict_document(verdict, across, machines))


def to_csv(verdict: Verdict) -> str:
    """One line per test and metric."""
    names = sorted({name for test in verdict.tests for name in test.parameters})
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["test", *map(text_cell, names), "metric", "unit", *_COLUMNS])
    for test in verdict.tests:
        for m in test.metrics:
            figures = summary_figures(m.summary) if m.summary else {}
            parameters = [test.parameters.get(name, "") for name in names]
            words = map(text_cell, [test.test, *parameters, m.metric, m.unit])
            writer.writerow([*words, *(figures.get(c, "") for c in _COLUMNS)])
    return out.getvalue()


def to_markdown(verdict: Verdict) -> str:
    """A table of the primary metric, and the sentences."""
    notes = [
        *filter(None, [status_line(verdict)]),
        *note_lines(verdict),
        *answer_lines(verdict),
    ]
    return "\n".join([*table_markdown(_table(verdict)), "", *[f"- {note}" for note in notes], ""])


def _table(verdict: Verdict) -> Table:
    return verdict_table(verdict, verdict.primary)


def as_html(verdict: Verdict) -> str:
    """The table of the primary metric, and the sentences below it."""
    notes = [f"Note: {line}" for line in note_lines(verdict)]
    lines = [*filter(None, [status_line(verdict)]), *answer_lines(verdict), *notes]
    return html_table(_table(verdict)) + html_lines(lines)
