"""A machine to be made quiet, and a place for what it was."""

import os
from pathlib import Path

import pytest

from support.quiet_kernel import Kernel, laid_out


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the ledger is. It is not synced: thousands of them are written here, on a disk that others use."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setenv("ETUDE_QUIET_DIRECTORY", str(tmp_path / "ledger"))
    return tmp_path / "ledger"


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    (tmp_path / "root").mkdir()
    return laid_out(tmp_path / "root")
