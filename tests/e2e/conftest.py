"""Everything here starts the real thing; `real` is importable beside the tests."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tracing() -> Iterator[None]:
    """The kernel's tracepoints, which bpftrace looks up: a machine may have come up without them.

    Only for tests that run alone: a session that ended earlier would take them from another's.
    """
    place = Path("/sys/kernel/tracing")
    wanted = os.geteuid() == 0 and place.is_dir() and not any(place.iterdir())
    mounted = (
        wanted and not subprocess.run(["mount", "-t", "tracefs", "nodev", str(place)], check=False).returncode
    )
    yield
    if mounted:
        subprocess.run(["umount", str(place)], check=False)
