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
    r"\bkept trials?\b": "included trial",
    r"\bhalf[- ]widths?\b": "margin of error",
    r"\bfalls? into two groups\b": "bimodal",
    r"\banother level\b": "level shift",
    r"\bnever settles\b": "no steady state",
    r"\bcannot be meant\b": "is invalid",
    r"\bgo(es)? on with\b": "resume with",
    r"\b(is|are|be) gone on with\b": "resumed",
    r"\bstolen\b": "steal time",
    r"\b(bears|borne)\b": "sustains",
    r"\bneighbours (are alike|resemble)\b": "autocorrelated",
    r"\b(does|do|did) not tell\b": "report",
    r"\btells? nothing\b": "show nothing about",
    r"\btold apart\b": "distinguished, significant",
    r"\bsaid nothing\b": "printed nothing",
    r"\bas (was )?asked\b(?! for)": "as requested",
    r"\b(is|are|was|were|be) (wished|wanted)\b": "requested",
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


PAGES = [
    *ROOT.glob("docs/*.md"),
    *(page for page in ROOT.glob("docs/*/*.md") if page.parent.name != "decisions"),
    *ROOT.glob("docs/man/*.1"),
    ROOT / "README.md",
]


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_have_the_words_of_the_field(page: Path) -> None:
    assert old_words(page.read_text("utf-8")) == []


MAPS = (
    "howto/surfaces.md",
    "howto/peak.md",
    "reference/harness.md",
    "explanation/peak-search.md",
    "reference/scaling.md",
    "howto/pool.md",
    "tutorials/surface.md",
)


@pytest.mark.parametrize("page", MAPS)
def test_a_map_has_configurations(page: str) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    prose = KEYS.sub("", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    assert re.findall(r"\bcells?\b", prose, re.IGNORECASE) == []


def texts(tree: ast.AST) -> Iterator[str]:
    """Texts of several words: messages, help, sentences; without docstrings, patterns and what f-strings fill in."""
    passed: set[int] = set()
    for node in ast.walk(tree):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or (isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"):
            passed |= {id(inner) for inner in ast.walk(node)}
        elif isinstance(node, ast.JoinedStr) and id(node) not in passed:
            passed |= {id(part) for part in node.values}
            joined = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
            )
            if " " in joined.strip():
                yield joined
        elif isinstance(node, ast.Constant) and id(node) not in passed and " " in str(node.value).strip():
            yield str(node.value)


@pytest.mark.parametrize(
    "package",
    sorted(path.name for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()),
)
def test_messages_have_the_words_of_the_field(package: str) -> None:
    place = SOURCE / package
    found = [
        f"{path.relative_to(SOURCE)}: {word}: {text}"
        for path in sorted(place.rglob("*.py") if place.is_dir() else [place])
        for text in texts(ast.parse(path.read_text("utf-8")))
        for word in old_words(text)
    ]
    assert found == []


MESSAGES = '''
def f(server):
    """What a kept trial has."""
    raise InputError(f"the load that {server} bears", "half width of the mean")
'''
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
    assert [old_words(text) for text in texts(ast.parse(MESSAGES))] == [["bears"], ["half width"]]
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
