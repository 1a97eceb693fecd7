"""A file is replaced whole or stays as it was; a lock is had once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from etude.osutil.files import replace_file, sync_directory, try_lock


def modes(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_file_is_replaced_whole_with_the_mode_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        replace_file(path, b"one")
        assert (path.read_bytes(), modes(path)) == (b"one", 0o640)
        replace_file(path, b"two", mode=0o604, sync=False)
        assert (path.read_bytes(), modes(path)) == (b"two", 0o604)
    finally:
        os.umask(before)
    sync_directory(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_what_cannot_be_replaced_stays_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "directory" / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "directory", b"x")
    assert [each.name for each in tmp_path.iterdir()] == ["directory"]


def test_no_link_that_waits_beside_it_is_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("theirs")
    (tmp_path / ".file.new").symlink_to(tmp_path / "victim")
    replace_file(tmp_path / "file", b"ours")
    assert (tmp_path / "victim").read_text() == "theirs"
    assert not (tmp_path / "file").is_symlink()


def test_a_lock_is_had_once_and_shared_ones_together(tmp_path: Path) -> None:
    one, two, three = (os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY) for _ in range(3))
    try:
        assert try_lock(one)
        assert not try_lock(two)
        assert not try_lock(two, shared=True)
        os.close(one)
        assert try_lock(two, shared=True)
        assert try_lock(three, shared=True)
    finally:
        for number in (two, three):
            os.close(number)
