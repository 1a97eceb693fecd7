"""Cache states before trials, and restarts of the machine with the data that must survive them."""

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
"""File beside a test's results: the names of the files of its data set."""


def data_set(paths: Sequence[str], directory: Path) -> DataSet | None:
    """The data set of a test whose results are in `directory`; None if it names no files."""
    return DataSet(tuple(map(os.path.abspath, paths)), directory / LISTING) if paths else None


def cool_trial(way: str, paths: Sequence[str], directory: Path, *, booted: bool, warms: bool) -> Cooled:
    """Prepare the caches before one trial. `warms`: for the warm-up run of `warm`; `booted`: the machine was restarted.

    Raises:
        MachineRefuses: same as `cool`.
    """
    if warms:
        return Cooled(way, None, "this run warms the caches")
    if way in REBOOTS and not booted:
        return Cooled(way, None, "the machine was not restarted: this boot is the one before")
    return cool(way, data_set(paths, directory), booted=booted)


def list_data_set(way: str, paths: Sequence[str], directory: Path) -> None:
    """List the data set before a restart: listing it afterwards would warm the caches."""
    data = data_set(paths, directory)
    if way in REBOOTS and data is not None:
        with suppress(MachineRefuses):  # not mounted now: the list made after the last trial is still valid
            data.list()


def restart_machine(entry: str, words: Sequence[str], state: Path, results: Path) -> None:
    """Record how to resume after the boot; the handler of `Restarting` restarts the machine.

    Raises:
        Restarting: always; or MachineRefuses: the machine could not resume.
    """
    restart.check(entry or None)
    record.register(list(words), state, results, entry=entry or None)
    raise Restarting(entry)


def settle_record() -> Mapping[str, Any] | None:
    """Record of the wait before this session, from `etude boot-resume`; None if it did not start the session."""
    with suppress(ValueError):
        found = json.loads(os.environ.get(SETTLED_VARIABLE, "null"))
        return found if isinstance(found, dict) else None
    return None
