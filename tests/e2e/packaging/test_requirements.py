"""What is required, what is pinned and what is explained are one list."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

pytestmark = [pytest.mark.quick, pytest.mark.beside]

Tool = Callable[[str], ModuleType]


def required(repository: Path, tool: Tool) -> list[Requirement]:
    return [Requirement(line) for line in tool("requirements").requirements(repository / "pyproject.toml")]


def pinned(repository: Path) -> dict[str, str]:
    lines = (repository / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.removesuffix(" \\").split("==") for line in lines if "==" in line)


def test_every_requirement_is_pinned_to_a_version_that_it_allows(repository: Path, tool: Tool) -> None:
    pins = pinned(repository)
    for requirement in required(repository, tool):
        assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_every_requirement_is_explained(repository: Path, tool: Tool) -> None:
    text = (repository / "docs/internals/dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    explained = set(rows)
    assert len(rows) == len(explained), [name for name in explained if rows.count(name) > 1]
    wanted = {requirement.name for requirement in required(repository, tool)}
    for manifest in repository.glob("engine/**/Cargo.toml"):
        wanted |= crates(manifest.read_text(encoding="utf-8"))
    assert wanted - explained == set()


def crates(manifest: str) -> set[str]:
    """Crates of others that a manifest names; ours are given by their path."""
    document = tomllib.loads(manifest)
    tables = [document.get(kind, {}) for kind in ("dependencies", "dev-dependencies", "build-dependencies")]
    return {
        name
        for table in tables
        for name, wish in table.items()
        if not (isinstance(wish, dict) and ("path" in wish or wish.get("workspace")))
    }
