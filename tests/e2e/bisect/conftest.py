"""A history with a step of 20 %, and bisections of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.bisections import Bisect
from support.c_history import QUIET, CHistory, c_history
from support.untouched import snapshot


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CHistory]:
    """32 commits, the step at index 20; byte for byte the same after all tests of a module."""
    made = c_history(tmp_path_factory.mktemp("history") / "repository", commits=32, step_percent=20.0)
    before = snapshot(made.repository)
    yield made
    assert snapshot(made.repository) == before


@pytest.fixture
def bisect(tmp_path: Path) -> Bisect:
    here = tmp_path / "here"
    here.mkdir()
    return Bisect(here)
