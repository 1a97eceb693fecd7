"""`python -m etude` is the program `etude`."""

from __future__ import annotations

import subprocess
import sys

from etude import __version__


def test_the_package_runs_as_a_module() -> None:
    words = [sys.executable, "-m", "etude", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"etude {__version__}\n")
