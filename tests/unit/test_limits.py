"""A limit of the system that keeps a process from starting is named, with its value."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from etude import engine
from etude.cli import entry
from etude.errors import MachineRefuses
from etude.experiment.test import Test
from etude.experiment.trial import _ending
from etude.limits import limit_reached, threads_start
from etude.results.writer import write_error
from support.builders import measurement

FILES = str(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def test_limits_are_told_from_other_errors() -> None:
    assert "ulimit -u" in (limit_reached(errno.EAGAIN) or "")
    assert f"ulimit -n is {FILES}" in (limit_reached("a barrier: Too many open files (os error 24)") or "")
    assert "fs.file-max" in (limit_reached(errno.ENFILE) or "")
    assert (
        limit_reached("No such file or directory (os error 2)")
        is limit_reached("x")
        is limit_reached(None)
        is None
    )


def test_a_worker_that_met_a_limit_names_it() -> None:
    met = measurement(error="no process could be started: Resource temporarily unavailable (os error 11)")
    assert "ulimit -u" in _ending(Test("a", ("a",)), met)
    assert "ulimit -u" in met.ending_here()


@pytest.mark.parametrize(("code", "named"), [(errno.EAGAIN, "ulimit -u"), (errno.EMFILE, "ulimit -n")])
def test_an_engine_that_met_a_limit_names_it(code: int, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("os.posix_spawnp", refuse)
    with pytest.raises(MachineRefuses, match=named) as raised:
        engine.Engine(program="/bin/true")
    assert "reinstall" not in str(raised.value)


def test_results_that_met_a_limit_name_it(tmp_path: Path) -> None:
    assert f"ulimit -n is {FILES}" in str(write_error(tmp_path, OSError(errno.EMFILE, "")))
    assert "-o" in str(write_error(tmp_path, OSError(errno.EACCES, "")))


def test_threads_that_cannot_be_started_are_no_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert threads_start(3)
    assert entry._interrupted("etude") == 130

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    capsys.readouterr()
    monkeypatch.setattr("_thread.start_new_thread", refuse)
    assert entry._interrupted("etude") == 5
    assert "ulimit -u" in capsys.readouterr().err
