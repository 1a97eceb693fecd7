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


FILES = {"requirements": "constraints.txt", "release_tools": "packaging/release-tools.txt"}
"""What pins the requirements that a function of packaging/requirements.py reads."""


def required(repository: Path, tool: Tool, which: str = "requirements") -> list[Requirement]:
    wanted = getattr(tool("requirements"), which)(repository / "pyproject.toml")
    return [Requirement(line) for line in wanted]


def pinned(file: Path) -> dict[str, list[str]]:
    """Version, and digests, of each package."""
    whole = file.read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line.split() for line in whole.splitlines() if "==" in line]
    return {pin.partition("==")[0]: [pin.partition("==")[2], *digests] for pin, *digests in lines}


@pytest.mark.parametrize("which", FILES)
def test_every_requirement_is_pinned_to_a_version_that_it_allows(
    repository: Path, tool: Tool, which: str
) -> None:
    pins = pinned(repository / FILES[which])
    wanted = required(repository, tool, which)
    assert wanted
    for requirement in wanted:
        assert requirement.specifier.contains(pins[requirement.name][0]), requirement


@pytest.mark.parametrize("file", FILES.values())
def test_every_pin_has_digests(repository: Path, file: str) -> None:
    for name, (_, *digests) in pinned(repository / file).items():
        assert digests, name
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", digest) for digest in digests), name


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
