"""Imports point down: no module needs itself or a layer above its own, however the import is written."""

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

LAYERS = (
    "__main__",
    "cli",
    "api export",
    "present",
    "claims why",
    "iolab",
    "figures",
    "analysis",
    "surface",
    "peak",
    "bisect history iotrace script",
    "cluster",
    "experiment",
    "commits probes store",
    "machine",
    "results",
    "engine engine_columns",
    "program toml_config trail",
    "masking osutil",
    "codec escaping limits stats",
    "patterns units",
    "errors version",
)
"""Packages and modules of `etude`, from the top down: each may import what stands below it."""
UPWARD = {
    (
        "cluster.worker",
        "peak.distributed",
    ): "the program of all jobs starts what the job's directory describes",
    ("cluster.worker", "script.distributed"): "as above",
    ("cluster.worker", "surface.worker"): "as above",
    ("script.stop", "analysis.getstats.options"): "a stop program that is getstats is evaluated in process",
    (
        "surface.distributed_map",
        "analysis.warnings.machine",
    ): "a map over a pool says at its end that machines differ",
    ("surface.distributed_map", "present.sentences.warnings"): "as above",
    ("figures.timeline", "present.sentences.warnings"): "the notes below a figure are its text",
    ("iolab", "present.sentences.io_lab"): "etude.io.explain is called from Python, and is sentences",
}
"""Imports of a layer above, with their reason."""


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


def upward(sources: dict[str, str]) -> set[tuple[str, str]]:
    """Imports of modules in a layer above, or beside in the same one; KeyError for a module of no layer."""
    rank = {name: place for place, names in enumerate(LAYERS) for name in names.split()}
    known = frozenset(sources)
    found = set()
    for name, text in sources.items():
        _, own, *_ = f"{name}.__main__".split(".")
        for other in imported(ast.parse(text), known):
            _, package, *_ = f"{other}.__main__".split(".")
            if package != own and rank[package] <= rank[own] and other != "etude":
                found.add((name.removeprefix("etude."), other.removeprefix("etude.")))
    return found


def test_no_layer_imports_one_above_it() -> None:
    assert upward({name: path.read_text("utf-8") for name, path in MODULES.items()}) == set(UPWARD)


MAX_LOCAL_IMPORTS = 120
"""Imports of ours inside functions: each is there for the time that a start takes."""


def local_imports(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Imports of modules of ours inside functions."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("etude"):
                    yield node


def test_few_imports_are_inside_functions() -> None:
    found = [
        {id(node) for node in local_imports(ast.parse(path.read_text("utf-8")))} for path in MODULES.values()
    ]
    assert sum(map(len, found)) <= MAX_LOCAL_IMPORTS
    tree = ast.parse("def f():\n    from etude.results import a\n    import os\n")
    assert len(list(local_imports(tree))) == 1


def test_the_command_line_makes_no_tables() -> None:
    """They are made in `present`, from results."""
    makers = {"Table", "Column", "page_table", "number"}
    using = [
        name
        for name, path in MODULES.items()
        if name.startswith("etude.cli.")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module == "etude.present.section"
        and makers & {alias.name for alias in node.names}
    ]
    assert using == []


def test_a_table_meets_a_screen_in_one_place() -> None:
    laying_out = {
        name
        for name, path in MODULES.items()
        if name.startswith(("etude.cli.", "etude.present."))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "table"
    }
    assert laying_out == {"etude.present.terminal"}


def test_an_import_of_a_layer_above_is_found() -> None:
    sources = {
        "etude.stats.a": "def f():\n    from etude.results import b",
        "etude.results.b": "",
        "etude.results": "",
    }
    assert upward(sources) == {("stats.a", "results.b")}
    assert upward({"etude.results.b": "from etude.stats import a", "etude.stats.a": ""}) == set()


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
