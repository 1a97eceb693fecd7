"""A part of its own stands in the page, in Markdown and in LaTeX, and nothing in it is taken for markup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from etude.figures.data import Axis, Curve, Figure, Panel, Point
from etude.present.page import content_of, gather
from etude.present.section import Paragraphs, Picture, Section, number, page_table
from etude.present.to_html import to_html
from etude.present.to_latex import to_latex
from etude.present.to_markdown import to_markdown
from support import pages

FIGURE = Figure(Axis("x"), (Panel(Axis("y"), (Curve("a", (Point(1, 2), Point(2, 3))),)),))
PART = Section(
    "peak-0",
    f"Peak {pages.SCRIPT}",
    (
        Paragraphs("Answer", (f"It is 5/s {pages.IMAGE}.", "And more.")),
        Picture(f'What it "shows" {pages.SCRIPT}', FIGURE),
        page_table(
            "peak-0-trials",
            "Trials",
            ("load", "note"),
            tuple((number(str(n), n), pages.SPECIALS) for n in range(5)),
            0,
        ),
    ),
)


def test_columns_without_a_value_are_left_out_of_a_page() -> None:
    rows = (("a", "–", "x", number("–", None), ""), ("b", "", "y", number("1", 1.0), ""))
    table = page_table("k", "Caption", ("name", "none", "word", "one", "note"), rows, 3)
    assert table.headings == ("name", "word", "one")
    assert table.numeric == (False, False, True)
    assert page_table("k", "Caption", ("name", "none"), ()).headings == ("name", "none")


def test_what_stands_above_the_only_section_is_not_said_again(tmp_path: Path) -> None:
    found = gather([str(pages.plain(tmp_path / "r"))])
    part = replace(PART, questions={"large": ("And more.",)})
    for parts, left in (([part], 1), ([part, replace(part, key="peak-1")], 2)):
        first, *_ = content_of(found, parts=parts).parts
        assert [len(each.lines) for each in first.paragraphs] == [left]
    alone = replace(part, questions={"large": part.paragraphs[0].lines})
    assert content_of(found, parts=[alone]).parts[0].paragraphs == ()


def test_it_stands_in_the_page_with_its_picture_inside(tmp_path: Path) -> None:
    content = content_of(gather([str(pages.plain(tmp_path / "r"))]), parts=[PART])
    page = to_html(content)
    assert '<section id="peak-0"' in page
    assert '<a href="#peak-0">' in page
    assert 'src="data:image/svg+xml;base64,' in page
    assert 'id="rows-peak-0-trials"' in page
    assert pages.SCRIPT not in page
    assert pages.IMAGE not in page


def test_a_page_without_parts_has_none(tmp_path: Path) -> None:
    page = to_html(content_of(gather([str(pages.plain(tmp_path / "r"))])))
    assert "peak-0" not in page
    assert 'class="pictures"' not in page


def test_markdown_and_latex_have_its_sentences_and_tables(tmp_path: Path) -> None:
    content = content_of(gather([str(pages.plain(tmp_path / "r"))]), parts=[PART])
    text = to_markdown(content)
    assert "### Peak &lt;script&gt;" in text
    assert "  - And more." in text
    assert "| load | note |" in text
    assert r"\label{tab:peak-0-trials}" in to_latex(content)


def test_latex_has_the_verdict_once_and_its_notice_on_every_table(tmp_path: Path) -> None:
    content = content_of(gather([str(pages.plain(tmp_path / "r"))]), parts=[PART])
    content = replace(content, banner="notice", headline=("first", "second"))
    captions = [line for line in to_latex(content).splitlines() if line.startswith(r"\caption")]
    assert len(captions) > 1
    assert all(each.startswith(r"\caption{notice ") for each in captions)
    assert [each.count("first second") for each in captions] == [1] + [0] * (len(captions) - 1)
