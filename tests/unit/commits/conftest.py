"""A repository of four commits with a tag, and one of a C program's history."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.c_history import QUIET, CHistory, c_history, git


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> CHistory:
    """Read by all tests, changed by none."""
    return c_history(tmp_path_factory.mktemp("history") / "r", commits=24)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Commits `Number 1` to `Number 4`, each with its number in the file `n`; the first has the tag v1."""
    place = tmp_path / "repository"
    place.mkdir()
    git(place, "init", "--quiet", "--template=", "-b", "main")
    commits = "".join(
        f"commit refs/heads/main\ncommitter A <a@example.org> {1_767_225_600 + number} +0000\n"
        f"data 8\nNumber {number}\nM 100644 inline n\ndata 2\n{number}\n\n"
        for number in range(1, 5)
    )
    git(place, "fast-import", "--quiet", given=commits.encode())
    git(place, "reset", "--hard", "--quiet", "main")
    git(place, "tag", "v1", "HEAD~3")
    return place
