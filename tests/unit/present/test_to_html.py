"""The page as text: what cannot get into it, what must be in it, and what it may load."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import MachineRefuses
from etude.present import to_html as html
from etude.present.page import content_of, gather
from etude.present.to_html import data_block, policy, to_html
from support import pages

MOST_BYTES = 5_000_000


class Elements(HTMLParser):
    """Tags with their attributes, and the text of each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = pages.hostile(tmp_path_factory.mktemp("hostile") / "r")
    return to_html(content_of(gather([str(directory)])))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = pages.plain(tmp_path_factory.mktemp("plain") / "r")
    return to_html(content_of(gather([str(directory)])))


def test_control_characters_and_marks_of_direction_of_names_are_written_out(tmp_path: Path) -> None:
    names = ("a\x00\x1b[31m", "b\u202e\u200b")
    page = to_html(
        content_of(gather([str(pages.results(tmp_path / "r", {name: [0.1, 0.2, 0.3] for name in names}))]))
    )
    assert not {"\x00", "\x1b", "\u202e", "\u200b"} & set(page)
    assert "\\u202e" in page


def test_markup_in_names_and_outputs_makes_no_element_and_no_handler(hostile: str, plain: str) -> None:
    ours, theirs = Elements(plain), Elements(hostile)
    known = {tag for tag, _ in ours.tags}
    assert {tag for tag, _ in theirs.tags} <= known | {"input"}  # the filter of a table with more rows
    assert not [tag for tag, _ in theirs.tags if tag == "img"]
    assert len(theirs.scripts) == len(ours.scripts)
    assert not [name for _, attributes in theirs.tags for name in attributes if name.startswith("on")]
    assert "&lt;script&gt;window.broken=1&lt;/script&gt;" in hostile


def test_nothing_is_loaded_from_anywhere(hostile: str) -> None:
    loads = [
        (tag, name, value)
        for tag, attributes in Elements(hostile).tags
        for name, value in attributes.items()
        if name in ("src", "srcset", "poster", "data", "action")
        or (name == "href" and not (value or "").startswith("#"))
    ]
    assert loads == []


def test_the_policy_names_each_script_by_its_digest_and_allows_no_other(hostile: str) -> None:
    elements = Elements(hostile)
    (allowed,) = [
        attributes["content"] or ""
        for tag, attributes in elements.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert allowed.startswith("default-src 'none'")
    assert "unsafe-eval" not in allowed
    rules = dict(rule.strip().split(" ", 1) for rule in allowed.split(";"))
    assert "unsafe-inline" not in rules["script-src"]
    run = [text for attributes, text in elements.scripts if attributes.get("type") != "application/json"]
    digests = [b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in run]
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]


def test_the_policy_stands_before_what_it_is_about(hostile: str) -> None:
    assert hostile.index("Content-Security-Policy") < hostile.index("<style") < hostile.index("<script")


@given(st.text())
def test_no_text_ends_the_element_that_the_data_stand_in(text: str) -> None:
    block = data_block({"results": text.encode("utf-8", "replace").decode()})
    assert not set("<>&\u2028\u2029") & set(block)
    assert json.loads(block) == {"results": text.encode("utf-8", "replace").decode()}


def test_the_measurements_are_in_the_page_bit_for_bit(plain: str, tmp_path: Path) -> None:
    directory = pages.plain(tmp_path / "r")
    ((_, text),) = [each for each in Elements(plain).scripts if each[0].get("type") == "application/json"]
    (result,) = json.loads(text)["results"]
    for number, test in enumerate(result["tests"]):
        lines = (directory / f"test-{number}" / "results.jsonl").read_text().splitlines()
        assert test["columns"]["elapsed"]["values"] == [json.loads(x)["metrics"]["elapsed"][0] for x in lines]
    assert result["experiment"]["name"] == "sorting"
    assert result["tests"][0]["flags"] == {"9": ["outliers"]}


def test_a_page_is_small_enough_to_be_sent(plain: str) -> None:
    assert len(plain.encode()) < 1_600_000 < MOST_BYTES


def test_every_control_and_chart_has_a_name_and_every_heading_its_order(plain: str) -> None:
    elements = Elements(plain)
    for tag, attributes in elements.tags:
        if "data-chart" in attributes:
            assert attributes["aria-label"]
            assert attributes["tabindex"] == "0"
        if tag == "html":
            assert attributes["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in elements.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    names = [attributes["id"] for _, attributes in elements.tags if "id" in attributes]
    assert len(names) == len(set(names))
    targets = [a["href"] for tag, a in elements.tags if tag == "a"]
    assert {target[1:] for target in targets if target} <= set(names)


def test_each_script_of_a_policy_is_quoted() -> None:
    assert policy(["", "x"]).count("'sha256-") == 2


def test_without_bokeh_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(html.importlib.util, "find_spec", lambda name: None)
    content = content_of(gather([str(pages.plain(tmp_path / "r"))]))
    with pytest.raises(MachineRefuses, match="pip install bokeh"):
        to_html(content)


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of two colours `#rrggbb`."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_in_both_themes() -> None:
    style = html._asset("page.css")
    themes = [
        dict(re.findall(r"--(\w+): (#[0-9a-f]{6})\b", block))
        for block in re.findall(r"\{([^{}]*--paper[^{}]*)\}", style)
    ]
    assert len(themes) >= 3
    for theme in themes:
        paper = {"#fff": "#ffffff"}.get(theme.get("paper", "#fff"), theme.get("paper", "#ffffff"))
        for name in ("ink", "quiet", "link", "flagged", "good", "bad", "kept"):
            if name in theme:
                assert contrast(theme[name], paper) >= 4.5, (name, theme)
                assert contrast(theme[name], theme.get("panel", paper)) >= 4.5, (name, theme)
