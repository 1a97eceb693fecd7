"""Commands run to their end: what they said, why they failed, and what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from etude.osutil.commands import Done, run_to_end


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (Done(1, b"first\nlast\n", b""), "last"),
        (Done(1, b"said\n", b"error: one\nerror: two\n\n"), "error: two"),
        (Done(3, b"", b" \n"), "exit status 3"),
        (Done(1, b"", b"\xff no text"), "� no text"),
    ],
)
def test_why_a_command_failed_is_the_last_line_that_it_said(done: Done, why: str) -> None:
    assert done.why == why


def test_output_and_errors_are_kept_apart() -> None:
    done = run_to_end(["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert (done.status, done.output, done.errors) == (7, b"out\n", b"err\n")
    assert run_to_end(["sh", "-c", "kill -9 $$"]).status == -signal.SIGKILL


def test_input_is_bytes_a_file_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(b"from a file")
    with open(tmp_path / "given", "rb") as file:
        assert run_to_end(["cat"], given=file.fileno()).output == b"from a file"
    assert run_to_end(["cat"], given=b"\0bytes").output == b"\0bytes"
    assert run_to_end(["cat"]).output == b""


def test_output_can_go_to_a_file(tmp_path: Path) -> None:
    with open(tmp_path / "out", "wb") as out:
        assert run_to_end(["echo", "here"], into=out.fileno()).output == b""
    assert (tmp_path / "out").read_bytes() == b"here\n"


def test_what_it_leaves_behind_does_not_hold_it_up() -> None:
    began = time.monotonic()
    done = run_to_end(["sh", "-c", "sleep 30 & echo $!"], apart=True)
    assert time.monotonic() - began < 20.0
    os.kill(int(done.output), signal.SIGKILL)


def test_one_that_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_to_end(["sleep", "60"], patience_s=0.05)
