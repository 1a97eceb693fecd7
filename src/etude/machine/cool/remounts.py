"""Temporarily unmounted file systems: recorded on disk first, so that any later start mounts them again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from etude.machine.resources.ledger import Ledger, held_ledger
from etude.osutil.commands import tool
from etude.osutil.mounts import Mount, mounts

DIRECTORY = Path("/run/etude")
"""Directory of the record; like mounts, it does not survive a boot."""
NAME = "remounts"
PATIENCE_S = 600.0
"""Maximum wait for the unmount and mount of another run, s: it may have much to write back."""


@contextmanager
def noted_remounts(mount: Mount, options: str, backing: str) -> Iterator[Ledger]:
    """Records this mount as unmounted within the block. `backing`: the file of a loop device that its last close
    detaches.

    Mounts that killed runs have left unmounted are mounted first.

    Raises:
        MachineRefuses: it cannot be recorded, or is still not mounted at the end.
    """
    with held_ledger(DIRECTORY, PATIENCE_S, name=NAME, undoing=UNDO) as ledger:
        ledger.undo()
        step = ledger.record_undo(
            "mount_again",
            source=mount.source,
            target=mount.target,
            kind=mount.kind,
            options=options,
            backing=backing,
        )
        try:
            yield ledger
        finally:
            ledger.undo([step])


def restore_mounts() -> list[str]:
    """Mount what killed runs have left unmounted; returns the mount points.

    Raises:
        MachineRefuses: one cannot be mounted; it is kept for the next time.
    """
    if os.geteuid() or not (DIRECTORY / f"{NAME}.json").exists():
        return []
    with held_ledger(DIRECTORY, PATIENCE_S, name=NAME, undoing=UNDO) as ledger:
        away = [str(step["target"]) for step in ledger.steps if not _is_mounted(**step)]
        ledger.undo()
    return away


def mount_again(source: str, target: str, kind: str, options: str, backing: str) -> None:
    """Mount it, unless it is mounted there."""
    if _is_mounted(target=target):
        return
    if backing and not _is_over(source, backing):
        source, options = backing, f"{options},loop"
    tool("mount", "-t", kind, "-o", options, "--", source, target)


def _is_mounted(target: Any, **_: Any) -> bool:
    return any(mount.target == target for mount in mounts())


def _is_over(device: str, backing: str) -> bool:
    """True if the loop device still has that backing file."""
    try:
        file = Path("/sys/block", os.path.basename(device), "loop/backing_file")
        return file.read_text(errors="surrogateescape").rstrip("\n") == backing
    except OSError:
        return False


UNDO = {"mount_again": mount_again}
