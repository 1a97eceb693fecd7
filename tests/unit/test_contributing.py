"""CONTRIBUTING.md names files and registries that are there."""

from __future__ import annotations

import re

import pytest

from support.places import ROOT
from unit.test_layers import LAYERS

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
BASES = (ROOT, ROOT / "src" / "etude", ROOT / "engine")
PLACES = sorted(set(re.findall(r"`([\w./-]+(?:\.(?:py|rs|md|toml|txt|tsv)|/))`", PAGE)))
REGISTRIES = re.findall(r"`(_?[A-Z][A-Z_]{3,})` in `([\w./]+\.py)`", PAGE)
MADE = ("build/", "more.tsv")
"""What a run of the tests makes."""


@pytest.mark.parametrize("place", [place for place in PLACES if not place.startswith(MADE)])
def test_a_file_that_is_named_is_there(place: str) -> None:
    found = [base / place for base in BASES if (base / place).exists()]
    # In a row of a table, names are relative to the package of the row.
    assert found or list((ROOT / "src" / "etude").rglob(place))


@pytest.mark.parametrize(("name", "place"), REGISTRIES)
def test_a_registry_that_is_named_is_there(name: str, place: str) -> None:
    assert re.search(rf"^{name}\b", (ROOT / "src" / "etude" / place).read_text("utf-8"), re.MULTILINE)


def test_recipes_name_registries() -> None:
    assert len(REGISTRIES) >= 6
    assert len(PLACES) > 30


def test_the_map_has_the_layers_in_their_order() -> None:
    mapped = PAGE.partition("## The map")[2].partition("The Rust program")[0]
    rows = re.findall(r"^\| (`.+?) \|", mapped, re.MULTILINE)[1:]
    named = [re.split(r"[/.]", name)[0] for row in rows for name in re.findall(r"`(.+?)`", row)]
    depth = {name: number for number, layer in enumerate(LAYERS) for name in layer.split()}
    assert [depth[name] for name in named] == sorted(depth[name] for name in named)
    folders = {path.name for path in (ROOT / "src" / "etude").iterdir() if (path / "__init__.py").exists()}
    assert folders <= set(named)
