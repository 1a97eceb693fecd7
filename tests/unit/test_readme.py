"""The README is short, and the list of documentation is complete."""

from __future__ import annotations

import re
from collections import Counter

from support.places import ROOT

DOCS = ROOT / "docs"
MOST_WORDS, MOST_LINES = 800, 8


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= MOST_WORDS
    outputs = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert [output for output in outputs if output.count("\n") > MOST_LINES] == []


def test_the_first_output_shows_what_the_bullets_below_it_explain() -> None:
    text = (ROOT / "README.md").read_text()
    output = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0]
    for explained in (r" 0\.\d+ × ", r"\(95 %: [\d.]+–[\d.]+\)", r"A/A noise ± "):
        assert re.search(explained, output)


def test_every_block_of_the_readme_is_run_or_is_an_output() -> None:
    fences = re.findall(r"^```(.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert set(fences[::2]) == {"sh", "text"}


def test_each_page_of_the_documentation_is_listed_once() -> None:
    listed = Counter(re.findall(r"\]\(([^)]+)\)", (DOCS / "README.md").read_text()))
    pages = {
        str(path.relative_to(DOCS))
        for pattern in ("tutorials/*", "howto/*", "reference/*.md", "explanation/*", "internals/*")
        for path in DOCS.glob(pattern)
    }
    assert pages | {"decisions/README.md", "man"} == set(listed)
    assert [page for page, count in listed.items() if count > 1] == []
