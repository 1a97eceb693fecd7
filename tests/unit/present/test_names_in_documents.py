"""Names in documents: different ones look different in Markdown, LaTeX and a page, and a blank one is seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from etude.present import to_latex as latex
from etude.present import to_markdown as markdown
from etude.present.long_names import LONGEST_NAME, shortened
from etude.present.page import content_of, gather
from etude.present.section import Command, Content, Sentence, page_table
from etude.present.sentences.verdict import answer_lines
from etude.present.to_html import html_table, to_html
from support import pages

NAMES = ("x y", "x  y", "x\ny", "x\ty", "x\u3000y", "x\u202ey", "xy", " xy", "xy ", " ", "  ", "\n", "")
LETTERS = st.text(st.sampled_from(["a", " ", "\n", "\u00a0", "\u202e", "\u2028"]), min_size=1)


def as_read(cell: str) -> str:
    """A cell without the blanks that a reader's program takes away."""
    return re.sub("[ \n\t]+", " ", unescape(cell)).strip(" ")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = {name: [0.01 + 0.0001 * (n + place) for n in range(6)] for place, name in enumerate(NAMES)}
    return pages.results(tmp_path_factory.mktemp("blanks") / "r", samples)


def cells(form: str, table: object) -> list[str]:
    if form == "markdown":
        shown = MarkdownIt("gfm-like", {"linkify": False}).render("\n".join(markdown.table_markdown(table)))
        return re.findall("<td>(.*?)</td>", shown, re.DOTALL)
    if form == "latex":
        lines = "\n".join(latex._table(table, "")).partition(r"\midrule")[2].splitlines()
        return [line.removesuffix(r" \\") for line in lines if line.endswith(r"\\")]
    return re.findall("<td>(.*?)</td>", html_table(table), re.DOTALL)


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
@given(st.lists(LETTERS, min_size=1, max_size=6, unique=True))
def test_cells_that_differ_are_seen_to_differ(form: str, names: list[str]) -> None:
    found = list(map(as_read, cells(form, page_table("k", "", ("test",), [(name,) for name in names]))))
    assert len(set(found)) == len(names)
    assert all(found)
    assert not any(r"\u00a0" in cell for cell in found if not any("\u00a0" in name for name in names))
    assert not any("\u202e" in cell or "\u2028" in cell for cell in found)


def test_a_page_shows_each_name_by_itself(made: Path) -> None:
    table = to_html(content_of(gather([str(made)]))).partition('id="tests"')[2].partition("</table>")[0]
    found = [as_read(cell) for cell in re.findall(r"<th scope=row[^>]*>(.*?)</th>", table, re.DOTALL)]
    assert len(found) == len(NAMES)
    assert len(set(found)) == len(NAMES)
    assert all(found)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = {
        name: [0.01 + 0.001 * place + 0.0001 * ((n * 7) % 5) for n in range(12)]
        for place, name in enumerate(("q" * 2000 + "a", "q" * 2000 + "b"))
    }
    return pages.results(tmp_path_factory.mktemp("long") / "r", samples)


@pytest.mark.parametrize("form", [markdown.to_markdown, latex.to_latex])
def test_a_long_name_stands_whole_once(long: Path, form: Callable[[Content], str]) -> None:
    text = form(content_of(gather([str(long)])))
    assert [text.count("q" * 2000 + letter) for letter in "ab"] == [1, 1]
    assert text.count("q" * 2000) == 2


def test_a_long_name_is_short_in_each_sentence_of_a_verdict(long: Path) -> None:
    found = gather([str(long)])
    (verdict,) = found.verdicts
    lines = answer_lines(verdict) + [line for a in content_of(found).answers for line in a.sentences]
    assert verdict.comparisons
    assert max(map(len, lines)) < 1000
    assert not any("q" * LONGEST_NAME in line for line in lines)


def test_a_command_keeps_a_long_name() -> None:
    name = "q" * 200
    sentence, command = shortened((Sentence(f"{name} runs"), Command("again", f"etude bench {name}")), [name])
    assert len(sentence.text) < 100
    assert name in command.command
