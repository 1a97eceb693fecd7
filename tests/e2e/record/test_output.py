"""The file of a trace, or the directory of a capture, while the recorded program runs."""

import os
import subprocess
from pathlib import Path

import pytest

from etude.program import engine_path
from support.recordings import environment, record, small_disk

pytestmark = [pytest.mark.quick, pytest.mark.beside]


@pytest.mark.parametrize(
    "what", ["rm t", "mv t other", "rm t; echo mine > t", "cd ..; rm -r place", "mv ../place ../moved"]
)
def test_a_trace_that_the_program_removes_is_an_error(what: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    done = record("sh", "-c", f"{what}; exit 3", at=place / "t", cwd=place)
    assert (done.status, len(done.said), done.program_stderr) == (5, 1, b"")
    assert str(place / "t") in done.said[0]


@pytest.mark.parametrize("what", ["rm -r it", "rm it/*", "mv it other", "rm -r it; mkdir it"])
def test_a_capture_that_the_program_removes_is_an_error(what: str, tmp_path: Path) -> None:
    command = [engine_path(), "capture", "-q", "-o", "it", "--", "sh", "-c", what]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(tmp_path / "sites"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (5, 1), done.stderr
    assert not (tmp_path / "it").exists()


@pytest.mark.needs_root
@pytest.mark.serial
def test_a_disk_that_is_full_before_the_program_starts_is_not_ptrace(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "64k") as place:
        with (place / "full").open("wb", buffering=0) as full:
            while True:
                try:
                    full.write(bytes(4096))
                except OSError:
                    break
        done = record("touch", tmp_path / "made", at=place / "t")
        assert (done.status, len(done.said), done.program_stderr) == (5, 1, b"")
        assert "ptrace" not in done.said[0]
        assert os.listdir(place) == ["full"]
    assert not (tmp_path / "made").exists()
