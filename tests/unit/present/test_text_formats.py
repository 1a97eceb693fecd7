"""Reports as Markdown and LaTeX: nothing in a name or an output becomes markup."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from etude.present import to_latex as latex
from etude.present import to_markdown as markdown
from etude.present.page import content_of, gather
from etude.present.page.answers import QUESTIONS
from support import pages

PLAIN_TAGS = {
    "p",
    "h2",
    "h3",
    "strong",
    "ul",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "code",
    "br",
    "em",
}


def tags(text: str) -> set[str]:
    return set(re.findall(r"<(\w+)", MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(text)))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pages.hostile(tmp_path_factory.mktemp("hostile") / "r")


def test_markdown_of_hostile_names_holds_no_link_no_picture_no_tag(hostile: Path) -> None:
    text = markdown.to_markdown(content_of(gather([str(hostile)])))
    assert tags(text) <= PLAIN_TAGS
    assert not re.search(r"(?<![\\\w])@team", text)
    assert "#12" not in text
    assert "http://example" not in text


def test_a_row_of_a_markdown_table_stays_one(hostile: Path) -> None:
    text = markdown.to_markdown(content_of(gather([str(hostile)])))
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert tables
    for table in tables:
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(columns) == 1


@given(st.text())
def test_escaped_markdown_is_read_back_as_it_was(text: str) -> None:
    shown = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(f"x {markdown.escaped(text)}")
    assert set(re.findall(r"<(\w+)", shown)) <= {"p"}


@pytest.mark.parametrize("text", ["- a", "+ a", "1. a", "12) a", "# a", "> a", "=== a", "* a"])
def test_no_text_begins_a_list_or_a_heading(text: str) -> None:
    assert tags(markdown.escaped(text)) == {"p"}


def unescaped_specials(text: str) -> str:
    """What of a text LaTeX would not set as it is, once our own commands are taken away."""
    for command in sorted(set(latex._ESCAPES.values()), key=len, reverse=True):
        if len(command) > 1:
            text = text.replace(command, "")
    return "".join(c for c in text if c in "\\{}$&#_%~^")


@given(st.text())
def test_escaped_latex_holds_nothing_that_latex_would_take_for_its_own(text: str) -> None:
    made = latex.escaped(text)
    assert unescaped_specials(made) == ""
    assert "\n" not in made
    assert "--" not in latex.escaped(text.replace("–", "").replace("—", ""))


def test_latex_of_hostile_names_has_its_columns_and_its_ends(hostile: Path) -> None:
    text = latex.to_latex(content_of(gather([str(hostile)])))
    code = [line for line in text.splitlines() if not line.startswith("%")]
    for name in ("table", "tabular"):
        assert sum(rf"\begin{{{name}}}" in line for line in code) == sum(
            rf"\end{{{name}}}" in line for line in code
        )
    widths = [len(match) for match in re.findall(r"\\begin\{tabular\}\{(\w+)\}", text)]
    counts = [len(re.findall(r"(?<!\\)&", line)) + 1 for line in code if line.endswith(r"\\")]
    assert set(counts) == set(widths)
    assert r"\toprule" in text
    assert r"\input" not in text
    assert not any(line.startswith("[") for line in code)


def test_control_characters_and_newlines_do_not_get_through() -> None:
    slash = latex.escaped("\\")
    assert latex.escaped("a\nb\x1b[31m\x00c") == f"a{slash}nb{slash}x1b{{[}}31m{slash}x00c"
    assert markdown.escaped("a\nb\x1b\u202ec") == r"a\\nb\\x1b\\u202ec"


def test_a_markdown_report_answers_the_questions(tmp_path: Path) -> None:
    text = markdown.to_markdown(content_of(gather([str(pages.plain(tmp_path / "r"))])))
    heading, first, _ = text.split("\n\n", 2)
    assert heading == "## sorting"
    assert re.match(r"\*\*No significant difference between B and A: ratio 1\.09", first)
    for question in QUESTIONS.values():
        assert f"**{question}**" in text
