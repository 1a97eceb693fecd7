"""Sections and reports as Markdown, for a pull request: sentences, tables and warnings, without figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from etude.escaping import delimited, one_line
from etude.present.section import Cell, Content, Section, Table, cell_text, page_table
from etude.present.sentences.comparison import with_full_stop

MOST_ROWS = 40
"""Most rows of a table: a pull request is read, not searched."""
MOST_WARNINGS = 20

_SPECIAL = re.compile(r"[\\`*_\[\]|$~]")
_BARE_LINK = re.compile(r"(://|\bwww)(?=[\w.])")
_MENTION = re.compile(r"([@#])(?=[\w-])")


def to_markdown(content: Content) -> str:
    """The report as GitHub reads it. Every text is escaped: none makes a link, a picture, a mention or a tag."""
    return "\n".join(_lines(content)) + "\n"


def escaped(text: str) -> str:
    """Text that is shown as it is, in a paragraph, a list or a table."""
    text = one_line(text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _SPECIAL.sub(r"\\\g<0>", text)
    text = _BARE_LINK.sub("\\1\u200b", text)
    text = _MENTION.sub("\\1\u200b", text)
    text = re.sub(r"^[-+=#]", r"\\\g<0>", text)
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", text)


def table_markdown(table: Table) -> Iterator[str]:
    """The lines of a table; of a long one the first rows, and how many more there are."""
    yield f"| {' | '.join(map(escaped, table.headings))} |"
    yield f"| {' | '.join('---:' if numeric else '---' for numeric in table.numeric)} |"
    for row in table.rows[:MOST_ROWS]:
        yield f"| {' | '.join(_cell(cell) for cell in row)} |"
    if len(table.rows) > MOST_ROWS:
        yield from ("", f"and {len(table.rows) - MOST_ROWS} more rows")


def _cell(cell: Cell) -> str:
    text = cell_text(cell)
    return escaped(delimited(text) if text else "")


def _lines(c: Content) -> Iterator[str]:
    yield f"## {escaped(c.title)}"
    yield ""
    if c.banner:
        yield from (f"> **{escaped(c.banner)}**", "")
    for line in c.headline:
        yield f"**{escaped(line)}**  "
    yield ""
    for answer in c.answers:
        if len(answer.sentences) == 1:
            yield f"- **{escaped(answer.question)}** {escaped(answer.sentences[0])}"
            continue
        yield f"- **{escaped(answer.question)}**"
        yield from (f"  - {escaped(sentence)}" for sentence in answer.sentences)
    for part in c.parts:
        yield from _part(part)
    if c.expectations:
        yield from ("", "### Expectations", "")
        headings = ("test", "purpose", "expected", "result", "met?")
        yield from table_markdown(page_table("expectations", "Expectations", headings, _expected(c), 5))
    for heading, table in (("Comparisons", c.comparisons), ("Tests", c.tests)):
        if table.rows:
            yield from ("", f"### {heading}", "")
            yield from table_markdown(table)
    for table in (*c.summaries, *c.differences):
        if table.rows:
            yield from ("", f"### {escaped(table.caption)}", "")
            yield from table_markdown(table)
    if not c.only_parts:
        yield from ("", "### Warnings", "")
        yield from _warnings(c)
    for part in c.beside:
        yield from _part(part)
    yield from (
        "",
        f"Made {escaped(c.made)} by Étude {escaped(c.version)} from {escaped(', '.join(c.labels))}.",
    )


def _part(part: Section) -> Iterator[str]:
    yield from ("", f"### {escaped(part.heading)}", "")
    for each in part.paragraphs:
        yield f"- **{escaped(each.heading)}**"
        yield from (f"  - {escaped(line)}" for line in each.lines)
    for table in part.tables:
        yield from ("", f"**{escaped(table.caption)}**", "")
        yield from table_markdown(table)


def _expected(c: Content) -> list[tuple[str, ...]]:
    return [
        (e.test, e.purpose, e.expect, e.result, f"{e.met} ({e.why})" if e.why else e.met)
        for e in c.expectations
    ]


def _warnings(c: Content) -> Iterator[str]:
    if not c.warnings:
        yield (
            "None. With few trials that means little."
            if c.tests.rows
            else "Without trials nothing can be warned of."
        )
    for w in c.warnings[:MOST_WARNINGS]:
        test = f"**{escaped(w.test)}**: " if w.test else ""
        advice = f" What helps: {escaped(with_full_stop(w.advice))}" if w.advice else ""
        yield f"- `{w.kind}` {test}{escaped(with_full_stop(w.text))}{advice}"
    if len(c.warnings) > MOST_WARNINGS:
        yield f"- and {len(c.warnings) - MOST_WARNINGS} more"
