"""The file system that a test of a script works on: TESTDIR's, else the one that its set-up has mounted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from etude.machine.snapshot.mounts import file_system, mounted


def file_system_under_test(
    environment: Mapping[str, str], before: Collection[str], root: Path = Path("/")
) -> dict[str, Any] | None:
    """As `directory` of a snapshot; None where neither TESTDIR is set nor anything was mounted.

    `environment`: of the EXEC that is about to run. `before`: the mount points when the experiment began. Of several
    new mounts the last counts.
    """
    directory = environment.get("TESTDIR")
    if not directory:
        new = [point for point in mounted(root) if point not in before]
        directory = new[-1] if new else None
    return file_system(root, directory) if directory else None
