"""Data first, words last: the analysis makes findings, and `present` makes the sentences on them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from support.places import ROOT

ANALYSIS = ROOT / "src" / "etude" / "analysis"
WORDS = 4
"""Texts of so many words or more are sentences; names and labels are shorter."""
_WORD = re.compile(r"(?<![\w\\-])[A-Za-z][A-Za-z'-]*(?!\w)")

ALLOWED = {
    "cross_session": (3, "the end of an error that is raised: what to run instead"),
    "gate": (4, "errors that are raised by two functions"),
    "getstats/options": (1, "the help of a program of its own"),
    "getstats/relations": (2, "getstats prints what Auto-pilot's prints"),
    "getstats/sources": (4, "as above"),
    "getstats/summaries": (3, "as above"),
    "getstats/tables": (5, "as above"),
    "interference": (2, "names of quantities"),
    "pipeline": (4, "what the transforms of getstats print, and errors that several of them raise"),
    "tail": (2, "reasons beside those that stats gives"),
    "transforms": (24, "the help of options"),
    "verdict": (2, "a value that JSON documents have"),
    "verdict_options": (24, "the help of an option: what each threshold means"),
    "warnings/warning": (34, "the registry of warnings: what each kind means"),
}
"""Modules with sentences: how many at most, and why."""


def sentences(text: str) -> Iterator[str]:
    """Texts of `WORDS` words or more, outside docstrings, patterns, and what is raised."""
    tree = ast.parse(text)
    passed: set[int] = set()
    for node in ast.walk(tree):
        is_pattern = isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_pattern or is_docstring or isinstance(node, ast.Raise):
            passed |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in passed:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            passed |= set(map(id, node.values))
            found = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = node.value
        else:
            continue
        if len(_WORD.findall(found)) >= WORDS:
            yield found


def test_the_analysis_makes_no_sentences() -> None:
    found = {
        path.relative_to(ANALYSIS).with_suffix("").as_posix(): list(sentences(path.read_text("utf-8")))
        for path in sorted(ANALYSIS.rglob("*.py"))
    }
    assert len(found) > 30
    beyond = {name: texts for name, texts in found.items() if len(texts) > ALLOWED.get(name, (0, ""))[0]}
    assert beyond == {}
    assert [name for name in ALLOWED if not found.get(name)] == [], "an exception that is not needed any more"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(n):\n    return f'{n} trials have no value'", 1),
        ("ADVICE = 'make more trials of it'", 1),
        ("NAME = 'CPU pressure'", 0),
        ("def f():\n    '''The value of a metric.'''\n    raise ValueError(f'no value of {f} is known')", 0),
        ("FORM = re.compile('a value of a metric')", 0),
    ],
    ids=["f-string", "constant", "name", "error", "pattern"],
)
def test_a_sentence_is_found(source: str, count: int) -> None:
    assert len(list(sentences(source))) == count
