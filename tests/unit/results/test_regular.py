"""Files that are not what they seem in a directory of results: pipes, and holes that took no room."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etude.errors import InputError
from etude.present.bundle import gather
from etude.results import monitor
from etude.results.blocks import read_blocks
from etude.results.bundle import member_of, verify, write_bundle
from etude.results.columns import read_columns
from etude.results.reader import load_results
from etude.results.readers import read_table
from etude.results.regular import MAX_HOLE_BYTES, open_regular, read_regular
from etude.results.res import read_res
from support.builders import measurement, results_directory

HUGE_BYTES = 200 << 30
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "document": ("experiment.json", load_results),
    "rows": ("a/results.jsonl", load_results),
    "columns": ("a/results.jsonl", read_columns),
    "one file's columns": ("a/results.jsonl", lambda path: read_columns(path / "a" / "results.jsonl")),
    "monitor": ("monitor-1.jsonl", lambda path: monitor.load(path, 1)),
    "blocks": ("a/blocks.jsonl", lambda path: read_blocks(path / "a" / "blocks.jsonl")),
    "res": ("a.res", lambda path: read_res(path / "a.res")),
    "table": ("a.csv", lambda path: read_table(path / "a.csv")),
}
PACKED = ("system.log", "monitor-1.jsonl", "one.res", "a/blocks.jsonl", "a/hooks.log", "a/logs/0001-0.log")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    directory = results_directory(tmp_path / "r", {"a": [measurement("a", trial=n) for n in (1, 2)]})
    (directory / "a" / "logs").mkdir()
    return directory


def hole(path: Path, size: int = HUGE_BYTES) -> None:
    """Make a file of a hole, what it holds before it."""
    path.touch()
    os.truncate(path, size)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_of_results_that_is_a_hole_is_named(made: Path, reader: str) -> None:
    name, read = READERS[reader]
    hole(made / name)
    with pytest.raises(InputError, match=f"{made / name}: .*sparse"):
        read(made)


@pytest.mark.parametrize("name", PACKED)
def test_a_hole_is_not_packed(made: Path, name: str) -> None:
    hole(made / name)
    with pytest.raises(InputError, match=f"{made / name}: .*sparse"):
        write_bundle(made.with_name("b.tar"), "b", gather([made]).members, 0)
    assert not made.with_name("b.tar").exists()


@pytest.mark.parametrize("packed", [False, True], ids=["directory", "archive"])
def test_a_bundle_with_a_hole_is_not_verified(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("b.tar" if packed else "b")
    write_bundle(path, "b", [member_of("bundle.json", "{}"), member_of("x", "1")], 0)
    hole(path if packed else path / "x")
    if packed:
        with pytest.raises(InputError, match=f"{path}: .*sparse"):
            verify(path)
    else:
        assert [line.partition(":")[0] for line in verify(path)] == ["x", "x"]


def test_what_takes_room_or_is_small_is_read(tmp_path: Path) -> None:
    hole(tmp_path / "small", 1 << 20)
    assert read_regular(tmp_path / "small") == bytes(1 << 20)
    size = MAX_HOLE_BYTES + (1 << 20)
    if shutil.disk_usage(tmp_path).free < 2 * size:
        pytest.skip("no room")
    with open(tmp_path / "large", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
    assert len(read_regular(tmp_path / "large")) == size


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(__file__)
    for path, number in ((tmp_path / "pipe", errno.EINVAL), (Path("/dev/zero"), errno.EINVAL)):
        with pytest.raises(OSError, match=str(path)) as refused:
            open_regular(path)
        assert refused.value.errno == number
    open_regular(tmp_path / "link").close()
    with pytest.raises(OSError, match="link") as refused:
        open_regular(tmp_path / "link", follow=False)
    assert refused.value.errno == errno.ELOOP
