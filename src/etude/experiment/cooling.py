"""Caches around trials: the state that a test asks for, and restarts of the machine with what has to survive them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from etude.errors import MachineRefuses, Restarting
from etude.machine.boot import record, restart
from etude.machine.boot.resume import SETTLED_VARIABLE
from etude.machine.cool.dataset import DataSet
from etude.machine.cool.methods import REBOOTS, Cooled, cool

LISTING = "dataset"
"""Beside a test's results: the names of the files of its data set."""


def data_set(paths: Sequence[str], directory: Path) -> DataSet | None:
    """The data set of a test whose results are in `directory`; None where none is named."""
    return DataSet(tuple(map(os.path.abspath, paths)), directory / LISTING) if paths else None


def cool_trial(way: str, paths: Sequence[str], directory: Path, *, booted: bool, warms: bool) -> Cooled:
    """Cool before one trial. `warms`: it is the run of `warm` that is excluded; `booted`: the machine did restart.

    Raises:
        MachineRefuses: as `cool`.
    """
    if warms:
        return Cooled(way, None, "this run warms the caches")
    if way in REBOOTS and not booted:
        return Cooled(way, None, "the machine was not restarted: this boot is the one before")
    return cool(way, data_set(paths, directory), booted=booted)


def note_data(way: str, paths: Sequence[str], directory: Path) -> None:
    """What the data set holds has to be known before a restart: looking it up behind it would warm the caches."""
    data = data_set(paths, directory)
    if way in REBOOTS and data is not None:
        with suppress(MachineRefuses):  # not mounted now: what was noted after the last trial still holds
            data.list()


def restart_machine(entry: str, words: Sequence[str], state: Path, results: Path) -> None:
    """Note how to go on after the boot; whoever catches `Restarting` restarts the machine.

    Raises:
        Restarting: always, but MachineRefuses where the machine could not go on.
    """
    restart.check(entry or None)
    record.register(list(words), state, results, entry=entry or None)
    raise Restarting(entry)


def settled_cache() -> Mapping[str, Any] | None:
    """What `etude boot-resume` says of the wait before this session; None where it did not begin it."""
    with suppress(ValueError):
        found = json.loads(os.environ.get(SETTLED_VARIABLE, "null"))
        return found if isinstance(found, dict) else None
    return None
