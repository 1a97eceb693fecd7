"""What `etude load` prints: windows for programs in a pipe, a summary for people on a terminal, either where asked."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from etude.program import engine_path

pytestmark = pytest.mark.beside


def words(place: Path, *more: str) -> list[str]:
    """A load of a third of a second."""
    offer = ["--preset", "web", "--sized-for", "1", "--rate", "50", "--seconds", "0.3", "--window", "0.1"]
    return [engine_path(), "load", "--directory", str(place), *offer, *more]


def on_terminal(command: list[str]) -> str:
    """All that a command writes to a terminal."""
    ours, its = pty.openpty()
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its) as running:
        os.close(its)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:  # EIO: nobody holds the other end any more
            pass
        os.close(ours)
        assert running.wait() == 0, shown
    return shown.decode()


def fields(text: str) -> list[str]:
    """The first word of each line that has one at its beginning."""
    return [line.split()[0] for line in text.splitlines() if line[:1].strip()]


SUMMARY = ["load", "files", "offered", "completed", "errors", "response", "lateness", "generator"]


def test_a_pipe_gets_json_and_a_terminal_gets_text(tmp_path: Path) -> None:
    piped = subprocess.run(words(tmp_path), capture_output=True, text=True, check=True)
    *windows, end = [json.loads(line) for line in piped.stdout.splitlines()]
    assert (len(windows), "summary" in end, piped.stderr) == (3, True, "")
    shown = on_terminal(words(tmp_path))
    moving, _, summary = shown.rpartition("\r\x1b[K")
    assert moving.count("offered") == 3, "a line that moves has each window"
    assert [name for name in fields(summary) if name != "Note:"] == SUMMARY


def test_either_is_printed_where_it_is_asked_for(tmp_path: Path) -> None:
    piped = subprocess.run(words(tmp_path, "--text"), capture_output=True, text=True, check=True)
    assert [name for name in fields(piped.stdout) if name != "Note:"] == SUMMARY
    assert piped.stderr == ""
    lines = [json.loads(line) for line in on_terminal(words(tmp_path, "--json")).splitlines()]
    assert "summary" in lines[-1]
