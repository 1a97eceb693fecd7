"""Names and words are the field's: no module, class or public function is called by a bare participle or function word,
and nothing that users read has a word of our own for what has one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.places import ROOT

SOURCE = ROOT / "src" / "etude"
BARE = frozenset(
    [
        "alone",
        "again",
        "already",
        "apart",
        "around",
        "asked",
        "begun",
        "believed",
        "beside",
        "between",
        "chosen",
        "counted",
        "elsewhere",
        "ended",
        "enough",
        "few",
        "foretold",
        "found",
        "further",
        "given",
        "gone",
        "held",
        "kept",
        "known",
        "laid",
        "learnt",
        "left",
        "lost",
        "made",
        "meant",
        "met",
        "needed",
        "noted",
        "over",
        "placed",
        "planned",
        "played",
        "refused",
        "said",
        "seen",
        "shown",
        "stored",
        "such",
        "taken",
        "there",
        "together",
        "told",
        "usual",
        "wanted",
        "what",
        "where",
        "which",
        "wished",
        "within",
        "without",
        "words",
        "written",
    ]
)
"""What says nothing of what it names."""
OLD_WORDS = {
    r"\bsittings?\b": "session",
    r"\bset[- ]aside\b": "excluded",
    r"\bbench (time|hours)\b": "benchmarking time",
    r"\bMind:": "Note:",
    r"\bnoise floor\b": "A/A noise",
}
"""Patterns of words that are not used in what users read, with those that are."""
KEYS = re.compile(r"`[^`]*`|[\w-]*sittings?[\w-]*(?==)|--[\w-]+|\.[\w.]+|[\w.-]*-sittings[\w.-]*")
"""In documentation: names of options, files and members, which stay readable for ever."""


def bare_names(tree: ast.Module) -> Iterator[str]:
    """The public functions and classes of a module whose name is bare."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower() in BARE:
            yield node.name


@pytest.mark.parametrize(
    "package", sorted({path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")})
)
def test_no_name_is_a_bare_participle(package: str) -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] == package
        for name in [
            *bare_names(ast.parse(path.read_text("utf-8"))),
            *([path.stem] if path.stem in BARE else []),
        ]
    ]
    assert found == sorted(ALLOWED & set(found))


ALLOWED = {"units/formatting.py: counted", "cli/measure/again.py: again"}
"""`counted(3, "trial")` reads as what it returns; `again` is an option's name."""


def old_words(text: str) -> list[str]:
    """Words of a page that have another by now."""
    prose = KEYS.sub("", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    return [found[0] for pattern in OLD_WORDS for found in re.finditer(pattern, prose, re.IGNORECASE)]


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"], ids=lambda page: page.name
)
def test_pages_have_the_words_of_the_field(page: Path) -> None:
    assert old_words(page.read_text("utf-8")) == []


PAGE = """In one sitting, 3 s of bench time.

```
a sitting
```
`sitting` is a member, as in --between-sessions.
"""
NAMES = """
def told(): ...
def tell_all(): ...
class Kept: ...
"""


def test_an_old_word_is_found() -> None:
    assert old_words(PAGE) == ["sitting", "bench time"]
    assert list(bare_names(ast.parse(NAMES))) == ["told", "Kept"]


FRAGMENT = re.compile(
    r"(?:Of|What|Whether|So|Such|Where|When|As|By|In|To|From|With|Until|Besides|Beside|Also|Or|And|Only|Than|Which|Who|Why)\b"
)
"""First words of a docstring that says neither what a thing is nor what it does."""


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Docstrings and notes of attributes."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value.value.strip()


def test_a_docstring_begins_with_what_it_is_about() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {text.splitlines()[0]}"
        for path in sorted(SOURCE.rglob("*.py"))
        for text in docstrings(ast.parse(path.read_text("utf-8")))
        if FRAGMENT.match(text)
    ]
    assert found == []
