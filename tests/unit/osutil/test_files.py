"""Temporary directories go away, at the latest with the next one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from etude.osutil.files import PREFIX, scratch_directory


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_directory_is_private_and_goes_away(temporary: Path) -> None:
    with scratch_directory() as path:
        (path / "file").touch()
        assert path.stat().st_mode & 0o777 == 0o700
    assert list(temporary.iterdir()) == []


def test_one_of_a_killed_process_is_removed_by_the_next(temporary: Path) -> None:
    killed = "import os, etude.osutil.files as s\nwith s.scratch_directory(): os.kill(os.getpid(), 9)"
    around = {**os.environ, "TMPDIR": str(temporary)}
    assert subprocess.run([sys.executable, "-c", killed], env=around, check=False).returncode == -9
    [left] = temporary.iterdir()
    with scratch_directory():
        assert not left.exists()


def test_one_in_use_and_what_a_link_leads_to_stay(temporary: Path) -> None:
    (temporary / "elsewhere").mkdir()
    (temporary / f"{PREFIX}link").symlink_to(temporary / "elsewhere")
    with scratch_directory() as first, scratch_directory():
        assert first.is_dir()
    assert (temporary / "elsewhere").is_dir()
