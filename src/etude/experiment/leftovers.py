"""Processes that a killed run of a results directory left behind: ended before anything is measured beside them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from etude.errors import MachineRefuses
from etude.testbed import leftovers
from etude.testbed.boot.record import boot_id

VARIABLE = "ETUDE_RUN"
"""In the environment of all that a session starts: which results directory it is for. Its value is of one length, since
the size of the environment moves the stack of a program."""
GRACE_S = 2.0


@contextmanager
def mark_children(path: Path) -> Iterator[None]:
    """Processes that are started meanwhile can be found by `end_leftovers`, whatever becomes of this process."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = _value(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def end_leftovers(path: Path, sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """End what earlier sessions of this directory left running here, and remove their cgroups; call it while holding
    the directory's lock.

    Returns:
        A name each.

    Raises:
        MachineRefuses: one does not end, or belongs to another user.
    """
    dead = {pid for session in sessions if (pid := _dead(session)) is not None}

    def members() -> list[int]:
        found = {*leftovers.marked(VARIABLE, _value(path)), *leftovers.in_groups_of(dead)}
        return [pid for pid in sorted(found) if not leftovers.zombie(pid)]

    found = {pid: leftovers.name(pid) for pid in members()}
    if found:
        leftovers.stop(members, GRACE_S)
    if left := members():
        names = ", ".join(map(leftovers.name, left))
        raise MachineRefuses(
            f"{path}: {names}: started by an earlier run of this directory, still running, and cannot be ended; "
            "end it, then resume"
        )
    leftovers.remove_groups(dead)
    return list(found.values())


def _dead(session: Mapping[str, Any]) -> int | None:
    """The process id of a session's Étude if it ran in this boot and its cgroups can be nobody else's by now."""
    pid = session.get("pid")
    if not isinstance(pid, int) or session.get("boot_id") != boot_id():
        return None
    return None if leftovers.PROC.joinpath(str(pid)).exists() and pid != os.getpid() else pid


def _value(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
