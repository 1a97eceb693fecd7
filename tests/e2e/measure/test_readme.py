"""Each block of the README runs as it is printed, in order, in a directory that has nothing in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import ROOT

pytestmark = pytest.mark.beside

INSTALL, *BLOCKS = re.findall(
    r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
)


def run(block: str, place: Path) -> subprocess.CompletedProcess[str]:
    """What a shell makes of a block; it ends with the first command that fails."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    words = ["bash", "-e", "-c", block]
    return subprocess.run(
        words, cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_the_blocks_of_the_readme_run_in_order_in_any_directory(tmp_path: Path) -> None:
    assert len(BLOCKS) > 6
    for block in BLOCKS:
        done = run(block, tmp_path)
        if "etude capture" in block and done.returncode == 5:
            pytest.skip(f"programs cannot be recorded here: {done.stderr.strip()}")
        # A busy machine may not let a search reach its confidence, which the README says.
        allowed = (0, 1) if "etude peak" in block else (0,)
        assert done.returncode in allowed, (block, done.stdout[-2000:], done.stderr[-2000:])
    assert {"sums.html", "sums.svg", "sums.tar.gz", "fs", "tar.capture"} <= {
        p.name for p in tmp_path.iterdir()
    }


def test_the_readme_installs_in_its_own_directory() -> None:
    if not (ROOT / ".venv" / "setup.stamp").exists():
        pytest.skip("make setup was not run here")
    done = run(INSTALL, ROOT)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
