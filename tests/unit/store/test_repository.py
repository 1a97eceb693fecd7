"""Of which commit a result is."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from etude.errors import InputError, MachineRefuses
from etude.store.repository import commit_of

pytestmark = pytest.mark.needs_program("git")


def git(place: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=trunk"]
    return subprocess.run(
        ["git", "-C", str(place), *who, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits, the first with a tag."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(tmp_path, "init", "-q")
    for number in (1, 2):
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2026-01-0{number}T12:00:00+02:00")
        (tmp_path / "file").write_text(str(number))
        git(tmp_path, "add", "file")
        git(tmp_path, "commit", "-q", "-m", "x")
        if number == 1:
            git(tmp_path, "tag", "v1")
    return tmp_path


def test_it_is_what_is_checked_out(repository: Path) -> None:
    found = commit_of(str(repository))
    assert found.commit == git(repository, "rev-parse", "HEAD")
    assert found.committed == datetime(2026, 1, 2, 10, tzinfo=UTC)
    assert (found.branch, found.tags) == ("trunk", ())


def test_another_commit_has_its_time_and_tags_and_no_branch(repository: Path) -> None:
    found = commit_of(str(repository), "v1")
    assert found.commit == git(repository, "rev-parse", "HEAD~1")
    assert (found.committed.day, found.branch, found.tags) == (1, None, ("v1",))


def test_files_that_are_not_committed_are_refused_or_said(repository: Path) -> None:
    (repository / "file").write_text("changed")
    with pytest.raises(InputError, match="--dirty"):
        commit_of(str(repository))
    assert commit_of(str(repository), dirty=True).tags == ("dirty",)
    assert commit_of(str(repository), "HEAD").tags == (), "who names a commit knows what was measured"


@pytest.mark.parametrize("commit", ["nothing", "--all", "HEAD:file", "a..b"])
def test_no_commit_is_said_as_git_says_it(repository: Path, commit: str) -> None:
    with pytest.raises(InputError, match="git reports") as refused:
        commit_of(str(repository), commit)
    assert "\n" not in str(refused.value)


def test_no_repository_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=str(tmp_path / "none")):
        commit_of(str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"/proc: .*git"):
        commit_of("/proc")


def test_a_missing_git_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("etude.osutil.trust.STANDARD_PATH", ())
    with pytest.raises(MachineRefuses, match="needs git"):
        commit_of(str(tmp_path))
