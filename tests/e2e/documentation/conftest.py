"""The site, built once for all tests of it."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import DOCS, ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    to = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "-b", "html"]
    with to.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several processes of tests one builds it
        if not (to / "searchindex.js").exists():
            done = subprocess.run([*command, DOCS, to], cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    return to
