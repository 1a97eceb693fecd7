"""What changes a state of files, and what does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from etude.commits.tree_state import build_state, changed_paths, packed, tree_state, unpacked


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for name in ("a/x", "a/b/y", ".git/HEAD", ".git/index"):
        (tmp_path / name).write_text("1")
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / "a" / "link").symlink_to("nowhere")
    return tmp_path


def test_changes_are_named(tree: Path) -> None:
    before = tree_state(tree)
    assert set(before) == {".git", ".git/HEAD", ".git/index", "a", "a/b", "a/b/y", "a/link", "a/x"}
    (tree / "a" / "x").write_text("2")
    (tree / "a" / "b" / "y").chmod(0o600)
    (tree / "a" / "link").unlink()
    (tree / "new").touch()
    after = tree_state(tree)
    assert changed_paths(before, after) == ("a/b/y", "a/link", "a/x", "new")
    assert changed_paths(before, after, new=False) == ("a/b/y", "a/link", "a/x")
    assert changed_paths(before, before) == ()


def test_a_directory_is_left_out(tree: Path) -> None:
    assert set(tree_state(tree, skip=tree / "a")) == {".git", ".git/HEAD", ".git/index"}


def test_files_of_git_but_head_are_no_part_of_a_build(tree: Path) -> None:
    state, size_bytes = build_state(tree)
    assert set(state) == {".git/HEAD", "a", "a/b", "a/b/y", "a/link", "a/x"}
    assert size_bytes >= 4 * 512


def test_a_state_is_the_same_from_a_file(tree: Path) -> None:
    os.rename(tree / "a" / "x", os.fsencode(tree / "a") + b"/\xff\n")
    state = tree_state(tree)
    assert unpacked(packed(state)) == state


@pytest.mark.parametrize("content", [b"", b"x", packed({})[:-1], packed([1]), packed({"a": [1]})])
def test_a_damaged_file_is_an_error(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        unpacked(content)
