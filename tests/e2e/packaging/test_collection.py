"""Each worker of a part collects the same tests; where they differ, none of them runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.beside
ROOT = Path(__file__).resolve().parents[3]


def collected(seed: str) -> list[str]:
    """The names of all tests, by an interpreter of its own."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"]
    environment = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_names_of_tests_depend_neither_on_the_time_nor_on_hashes() -> None:
    first = collected("1")
    assert len(first) > 10_000
    assert first == collected("2")
