"""Pipes where a user names a file: one's own work as for any program, those of others hold nobody up."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from etude import trail
from etude.analysis.getstats.options import parse_getstats
from etude.analysis.getstats.sources import is_ours
from etude.errors import EtudeError
from etude.figures import save
from etude.iolab import lab
from etude.machine.remote.hosts import read_hosts
from etude.osutil import trust
from etude.osutil.trust import APPEND, WRITE, open_user_file, write_user_file
from etude.peak.harnesses.spec import read_harness
from etude.present.export import write_text
from etude.present.page.content import write
from etude.results.bundle import verify
from etude.results.readers import read_table
from etude.script.checkpoint import is_state
from etude.script.source import read_lines
from etude.surface.spec import read_spec
from etude.toml_config import document

pytestmark = pytest.mark.timeout(10)

USES: dict[str, Callable[[Path], Any]] = {
    "script": read_lines,
    "bundle": verify,
    "options": lambda path: parse_getstats(["--load", str(path)]),
    "log": lambda path: trail.begin(str(path)),
    "report": lambda path: write(path, "x"),
    "export": lambda path: write_text(path, "x"),
    "figure": lambda path: save.write(str(path), b"x"),
    "table": lambda path: lab.write_text(path, "x"),
}


@pytest.fixture
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A FIFO of another user's than who this seems to be."""
    os.mkfifo(tmp_path / "pipe")
    user = os.geteuid() + 1
    monkeypatch.setattr(trust, "trusted_users", lambda: frozenset({user}))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    return tmp_path / "pipe"


@pytest.mark.parametrize("use", USES)
def test_a_pipe_of_another_user_is_refused(another: Path, use: str) -> None:
    with pytest.raises(EtudeError, match=str(another)):
        USES[use](another)


@pytest.mark.parametrize("flags", [os.O_RDONLY, WRITE, APPEND])
def test_a_pipe_that_takes_the_place_of_a_file_is_refused(
    another: Path, monkeypatch: pytest.MonkeyPatch, flags: int
) -> None:
    other_end = os.open(another, os.O_RDWR)
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(trust.os, "stat", lambda path: os.lstat(__file__))
    with pytest.raises(OSError, match="pipe") as refused:
        open_user_file(another, flags)
    assert refused.value.errno == errno.EACCES
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(other_end)


@pytest.fixture
def shells_pipe() -> Iterator[Path]:
    """A pipe with a script in it, by the name that `<(…)` has."""
    reading, writing = os.pipe()
    os.write(writing, b"EXEC true\n")
    os.close(writing)
    yield Path(f"/dev/fd/{reading}")
    os.close(reading)


def test_a_pipe_of_the_shells_is_read_as_a_script_once(shells_pipe: Path) -> None:
    assert not is_state(shells_pipe), "nor does this take what is in it"
    assert [line.text for line in read_lines(shells_pipe).lines] == ["EXEC true"]


def test_a_fifo_of_ones_own_that_is_written_waits_for_its_reader(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write_user_file, args=(pipe, b"x"))
    writer.start()
    assert pipe.read_bytes() == b"x"
    writer.join()


READ: dict[str, Callable[[Path], Any]] = {
    "script": read_lines,
    "options": USES["options"],
    "toml": document,
    "included": lambda path: read_lines(write_including(path)),
    "hosts": read_hosts,
    "harness": read_harness,
    "surface": read_spec,
    "values": lambda path: is_ours(path) or read_table(path),
}


def write_including(path: Path) -> Path:
    """A script that includes this file."""
    script = path.with_name("script.ap")
    script.write_text(f"INCLUDE {path.name}\n")
    return script


@pytest.mark.parametrize("user", ["root", "other"])
@pytest.mark.parametrize("read", READ)
def test_a_fifo_that_is_read_is_refused_without_waiting_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str, user: str
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if user == "other":
        monkeypatch.setattr(os, "geteuid", lambda: os.stat(pipe).st_uid or 1)
        monkeypatch.setattr(trust, "trusted_users", lambda: frozenset({os.stat(pipe).st_uid}))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(EtudeError, match=str(pipe)):
        READ[read](pipe)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_is_written_anew_or_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_user_file(path, b"long")
    write_user_file(path, b"1")
    with open(open_user_file(path, APPEND), "ab") as file:
        assert os.get_blocking(file.fileno())
        file.write(b"2")
    assert path.read_bytes() == b"12"
    with pytest.raises(FileNotFoundError):
        open_user_file(tmp_path / "absent")
