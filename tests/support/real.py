"""Running the real `etude`, in a directory of its own: the program beside this Python, or its verbs in this process."""

from __future__ import annotations

import gc
import io
import json
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from etude.cli.main import main

ETUDE = str(Path(sys.executable).parent / "etude")


def etude(
    *arguments: str, cwd: Path, check: int | None = 0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run etude; its exit code must be `check` unless that is None."""
    done = subprocess.run(
        [ETUDE, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False, **options
    )
    assert check is None or done.returncode == check, (done.returncode, done.stdout, done.stderr)
    return done


def called(*arguments: str, cwd: Path, check: int | None = 0) -> subprocess.CompletedProcess[str]:
    """As `etude`, without a process of its own, where none is the subject: with what this one has loaded already.

    A verb that becomes another program, as the engine's do, is refused.
    """
    said, errors = io.StringIO(), io.StringIO()
    with (
        chdir(cwd),
        redirect_stdout(said),
        redirect_stderr(errors),
        mock.patch.object(os, "execve", _refused),
    ):
        try:
            code: object = main(list(arguments))
        except SystemExit as ended:
            code = ended.code
        finally:
            gc.enable()
    assert isinstance(code, int)
    done = subprocess.CompletedProcess(arguments, code, said.getvalue(), errors.getvalue())
    assert check is None or code == check, done
    return done


def _refused(*words: object) -> None:
    raise AssertionError(f"this process would become {words[0]}")


def one_line(text: str) -> str:
    """The single line that an error is."""
    lines = text.strip().splitlines()
    errors = [line for line in lines if line.startswith("etude: ")]
    assert len(errors) == 1, text
    assert lines[-1] == errors[0], text
    assert "Traceback" not in text
    return errors[0]


def lines(directory: Path, test: str) -> list[dict[str, Any]]:
    """The measurements of one test as they stand on disk."""
    path = directory / test / "results.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def experiment(directory: Path) -> dict[str, Any]:
    """experiment.json."""
    document: dict[str, Any] = json.loads((directory / "experiment.json").read_text())
    return document


def children(pid: int) -> list[int]:
    """The children of a process."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(word) for word in text.split()]


def alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_with(marker: str) -> list[int]:
    """Processes whose command line holds a marker."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                text = Path(f"/proc/{entry}/cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if marker in text and alive(int(entry)):
                found.append(int(entry))
    return found
