"""examples/leak/leak.sh alone: what it takes, what it gives back, and what it refuses."""

import os
from pathlib import Path

import pytest

from support.laboratory import EXAMPLES, Lab

pytestmark = pytest.mark.beside

SCRIPT = str(EXAMPLES / "leak" / "leak.sh")


@pytest.fixture
def memory(lab: Lab) -> Lab:
    """A lab whose `stat` says of every directory that it is a tmpfs."""
    lab.program("stat", "echo tmpfs")
    return lab


def taken(lab: Lab) -> dict[str, int]:
    """Files that are held, with their sizes."""
    return {file.name: file.stat().st_size for file in held(lab).glob("*")}


def held(lab: Lab) -> Path:
    return lab.path / f"etude-leak-{os.getuid()}"


def leak(lab: Lab, word: str, check: int = 0, **changes: str) -> str:
    return lab.run(
        SCRIPT, word, check=check, **{"LEAK_DIR": str(lab.path), "LEAK_MIB": "1", **changes}
    ).stderr


def test_keep_takes_as_much_as_was_asked_for_and_free_takes_nothing(memory: Lab) -> None:
    leak(memory, "keep", APEPOCH="1")
    leak(memory, "keep", APEPOCH="2", LEAK_MIB="3")
    leak(memory, "free", APEPOCH="3")
    assert sorted(taken(memory).values()) == [1 << 20, 3 << 20]
    assert held(memory).stat().st_mode & 0o077 == 0
    leak(memory, "clean-up")
    assert not held(memory).exists()
    leak(memory, "clean-up")


@pytest.mark.parametrize("size", ["", "0", "-1", "1.5", "x", "$(id)", "1234567"])
def test_a_size_that_is_none_is_refused(memory: Lab, size: str) -> None:
    if size:
        assert f"'{size}'" in leak(memory, "keep", check=1, LEAK_MIB=size)
    assert not held(memory).exists() or not size


def test_a_place_whose_files_are_no_memory_is_refused(lab: Lab) -> None:
    lab.program("stat", "echo ext2/ext3")
    assert "is no tmpfs" in leak(lab, "keep", check=1)
    assert "is no tmpfs" in leak(lab, "keep", check=1, LEAK_DIR=str(lab.path / "none"))


def test_where_there_is_no_room_it_says_what_to_do_and_keeps_nothing(memory: Lab) -> None:
    memory.program("head", "echo some; exit 1")
    assert "LEAK_MIB=2, may fit" in leak(memory, "keep", check=1)
    assert taken(memory) == {}


def test_a_name_that_somebody_else_has_taken_is_not_touched(memory: Lab) -> None:
    (memory.path / "elsewhere").mkdir()
    (memory.path / "elsewhere" / "file").write_text("mine")
    held(memory).symlink_to("elsewhere")
    for word in ("keep", "free", "clean-up"):
        assert str(held(memory)) in leak(memory, word, check=1)
    assert (memory.path / "elsewhere" / "file").read_text() == "mine"
    assert [file.name for file in (memory.path / "elsewhere").iterdir()] == ["file"]


@pytest.mark.parametrize("word", ["", "KEEP", "drop"])
def test_an_unknown_word_is_refused(memory: Lab, word: str) -> None:
    assert "keep, free or clean-up" in leak(memory, word, check=1)


def test_the_twins_differ_in_one_word_only() -> None:
    lines = [(EXAMPLES / "leak" / name).read_text().splitlines()[1:] for name in ("leak.ap", "clean.ap")]
    differing = [pair for pair in zip(*lines, strict=True) if pair[0] != pair[1]]
    assert [pair[0].split()[0] for pair in differing] == ["TEST", "EXPECT", "EXEC"]
