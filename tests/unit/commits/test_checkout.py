"""Source trees in repositories of their own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from etude.commits.checkout import check_out
from etude.commits.commit_range import commit_range
from etude.commits.git import open_repository
from etude.errors import InputError
from support.c_history import CHistory, git
from support.untouched import snapshot

pytestmark = pytest.mark.needs_program("git")


def test_a_tree_has_the_files_of_its_commit_and_the_repository_is_as_before(
    history: CHistory, tmp_path: Path
) -> None:
    before = snapshot(history.repository)
    sha = history.commits[10]
    check_out(open_repository(history.repository), sha, tmp_path / "tree")
    assert snapshot(history.repository) == before
    archive = tmp_path / "archive"
    archive.mkdir()
    tar = subprocess.run(
        ["git", "-C", history.repository, "archive", sha], check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", archive], input=tar, check=True)
    files = {path.name: path.read_bytes() for path in (tmp_path / "tree").iterdir() if path.is_file()}
    assert files == {path.name: path.read_bytes() for path in archive.iterdir()}


def test_a_tree_has_the_history_and_tags(history: CHistory, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    sha = history.commits[3]
    check_out(open_repository(history.repository), sha, tree)
    assert git(tree, "rev-parse", "HEAD") == sha
    assert git(tree, "describe", "--tags", "--dirty") == f"v1-3-g{sha[:7]}"
    assert len(git(tree, "rev-list", "HEAD").split()) == 4
    assert git(tree, "for-each-ref", "refs/heads", "refs/remotes") == ""
    assert git(tree, "config", "remote.origin.url") == str(history.repository)
    before = snapshot(history.repository)
    git(tree, "gc", "--quiet", "--prune=now")
    assert git(tree, "fsck", "--no-dangling") == ""
    assert snapshot(history.repository) == before


@pytest.mark.parametrize("name", ['"quo"ted\\', "#x", "a:b", "two\nlines", "blank é \x1b[31m", "-x"])
def test_any_path_is_borrowed_from(repository: Path, tmp_path: Path, name: str) -> None:
    place = tmp_path / "above" / name
    place.parent.mkdir()
    shutil.move(repository, place)
    found = commit_range(place, "v1", "main")
    check_out(found.repository, found.bad.sha, tmp_path / "tree")
    assert (tmp_path / "tree" / "n").read_text() == "4\n"


def test_settings_and_hooks_are_not_taken_over(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = repository / ".git" / "hooks"
    hooks.mkdir()
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(repository / ".git"))
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/made\n")
        (hooks / name).chmod(0o755)
    git(repository, "config", "core.autocrlf", "true")
    git(repository, "config", "filter.x.smudge", f"touch {tmp_path}/made; cat")
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("* filter=x\n")
    check_out(open_repository(repository), git(repository, "rev-parse", "HEAD"), tmp_path / "tree")
    assert (tmp_path / "tree" / "n").read_bytes() == b"4\n"
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "tree" / ".git" / "hooks").exists()


def test_borrowed_objects_may_be_borrowed_themselves(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--shared", str(repository), "second")
    found = open_repository(tmp_path / "second")
    check_out(found, git(repository, "rev-parse", "HEAD"), tmp_path / "tree")
    assert (tmp_path / "tree" / "n").read_text() == "4\n"


def test_a_tree_of_a_shallow_clone_has_its_end(history: CHistory, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=3", f"file://{history.repository}", "shallow")
    check_out(open_repository(tmp_path / "shallow"), history.commits[-1], tmp_path / "tree")
    assert len(git(tmp_path / "tree", "rev-list", "HEAD").split()) == 3


def test_names_of_objects_may_be_sha256(tmp_path: Path) -> None:
    place = tmp_path / "repository"
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "-b", "main", str(place))
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for number in range(2):
        (place / "n").write_text(str(number))
        git(place, "add", "n")
        git(place, *who, "commit", "--quiet", "-m", "x")
    found = commit_range(place, "HEAD~1", "HEAD")
    check_out(found.repository, found.bad.sha, tmp_path / "tree")
    assert (len(found.bad.sha), (tmp_path / "tree" / "n").read_text()) == (64, "1")


@pytest.mark.parametrize("kind", ["HEAD:n", "HEAD^{tree}"])
def test_a_missing_object_is_an_error(repository: Path, tmp_path: Path, kind: str) -> None:
    git(repository, "repack", "-a", "-d", "-q")
    (pack,) = (repository / ".git" / "objects" / "pack").glob("*.pack")
    missing = git(repository, "rev-parse", kind)
    moved = pack.rename(tmp_path / "all.pack")
    pack.with_suffix(".idx").unlink()
    git(repository, "unpack-objects", "-q", given=moved.read_bytes())
    (repository / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    with pytest.raises(InputError) as error:
        check_out(open_repository(repository), git(repository, "rev-parse", "HEAD"), tmp_path / "tree")
    assert missing in str(error.value)
    assert str(error.value).isprintable()
