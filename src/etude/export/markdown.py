"""Markdown for a pull request: what the comparisons say, a table of the judged metric, all else folded away."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from etude.export.document import Compared, Document, Exported, Point, omit_point, one_line
from etude.stats.means import MARKS
from etude.units.formatting import quantity

_LONGEST = 65_536
"""Characters that a comment on GitHub may have."""


def write(document: Document) -> Exported:
    """The other metrics and the warnings are folded; a text too long for a comment loses its details, and says so."""
    judged = [point for point in document.points if point.metric == document.primary]
    left_out = [omit_point(point) for point in judged if point.figures is None]
    top = [
        *_verdict(document.compared),
        *_table(document, judged),
        *[f"- {_plain(str(lost))}" for lost in left_out],
    ]
    details = [
        *_folded("Comparisons", [f"- {_plain(s)}" for c in document.compared for s in c.sentences]),
        *_folded("Warnings", [f"- {_plain(note)}" for note in document.notes]),
        *_folded("All metrics", _table(document, document.points, metric=True)),
        *_folded("Machines and sources", _runs(document)),
    ]
    text = "\n".join([*top, "", *details]).strip() + "\n"
    if len(text) > _LONGEST:
        text = "\n".join([*top, "", "The details are left out: a comment would be too long."]) + "\n"
    return Exported(text, tuple(left_out))


def _verdict(compared: tuple[Compared, ...]) -> Iterator[str]:
    """A line for each comparison, the worse ones first."""
    for c in sorted(compared, key=lambda c: c.worse is not True):
        differs = c.differs and (c.low > 1.0 or c.high < 1.0)
        better = differs and c.worse is False
        alike = "different" if differs else "no difference shown"
        sign = "❌ worse" if c.worse else "✅ better" if better else alike
        by = f"{c.ratio:.3f} × ({c.low:.3f} to {c.high:.3f})"
        yield f"- **{sign}**: {_plain(c.other)} against {_plain(c.base)}, {_plain(c.metric)} {by}"
    if compared:
        yield ""


def _table(document: Document, points: list[Point] | tuple[Point, ...], *, metric: bool = False) -> list[str]:
    names = ["test", *(["metric"] if metric else []), "mean", "interval", "median", "trials"]
    if not metric:
        names[1] = f"{_plain(document.primary)}: mean"
    lines = [f"| {' | '.join(names)} |", "| --- |" + " ---: |" * (len(names) - 1)]
    for point in points:
        figures = point.figures
        if figures is None or figures.mean is None:
            continue
        like = figures.mean
        ends = [figures.low, figures.high]
        between = " … ".join(quantity(end, point.unit, like) for end in ends if end is not None) or "–"
        median = "–" if figures.median is None else quantity(figures.median, point.unit, like)
        cells = [
            quantity(like, point.unit, like) + MARKS.get(figures.which, ""),
            between,
            median,
            str(figures.count or "–"),
        ]
        name = _plain(document.name(point))
        lines.append(f"| {' | '.join([name, *([_plain(point.metric)] if metric else []), *cells])} |")
    return lines


def _folded(title: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", ""]


def _runs(document: Document) -> list[str]:
    found = []
    for run in document.runs:
        machine = run.machine
        facts = [f"{name} {value}" for name, value in machine.facts] if machine else []
        words = [run.commit or "", run.measured.isoformat(timespec="seconds") if run.measured else ""]
        words += [machine.name if machine else "", ", ".join(facts), ", ".join(run.tags)]
        found.append(f"- {_plain(run.source)}: {_plain('; '.join(word for word in words if word))}")
    return found


def _plain(text: str) -> str:
    """The text as plain text: no markup, no end of a cell, nobody mentioned, no issue referred to."""
    escaped = re.sub(r"([\\`*_{}\[\]|~#])", r"\\\1", one_line(text))
    return html.escape(escaped, quote=False).replace("@", "@\u200b")
