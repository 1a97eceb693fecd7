"""Imports point down: no module needs itself, however the import is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from support.places import ROOT

SOURCE = ROOT / "src"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((SOURCE / "etude").rglob("*.py"))
}


def imported(tree: ast.AST, known: frozenset[str]) -> Iterator[str]:
    """Modules of ours that a module imports: at its top, in functions, and for type checking only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in names)


def circle(sources: dict[str, str]) -> list[str]:
    """Modules of which each imports the next, and the last the first; none where there is no such circle."""
    known = frozenset(sources)
    needs = {name: set(imported(ast.parse(text), known)) for name, text in sources.items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_imports_go_round_in_a_circle() -> None:
    assert circle({name: path.read_text("utf-8") for name, path in MODULES.items()}) == []


@pytest.mark.parametrize(
    "back",
    [
        "from a import x",
        "def f():\n    from a import x",
        "if TYPE_CHECKING:\n    import a",
    ],
    ids=["at the top", "in a function", "for types"],
)
def test_a_circle_is_found(back: str) -> None:
    assert set(circle({"a": "import b", "b": back})) == {"a", "b"}
    assert circle({"a": "import b", "b": "import os"}) == []


def test_all_modules_are_looked_at() -> None:
    assert len(MODULES) > 300
    assert isinstance(MODULES["etude.units.parsing"], Path)
