"""The last that an experiment does before a restart: all is on disk, and how to go on is noted."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable

from etude.errors import EtudeError, MachineRefuses

PATIENCE_S = 300.0
"""A machine that is still up after this does not restart."""


def restart_now(entry: str, complain: Callable[[EtudeError], int]) -> int:
    """Restart the machine and wait for the end that it brings; the exit code, where it comes first."""
    from etude.machine.boot import record, restart

    into = f" into {entry}" if entry else ""
    print(
        f"etude: restarting the machine{into}; the experiment resumes after the boot",
        file=sys.stderr,
        flush=True,
    )
    try:
        restart.restart(entry or None)
    except EtudeError as error:
        go_on = shlex.join(["etude", *record.load().words])
        record.forget()
        return complain(MachineRefuses(f"{error}; correct that, then resume with: {go_on}"))
    time.sleep(PATIENCE_S)
    return complain(
        MachineRefuses(f"the machine did not restart within {PATIENCE_S:g} s; restart it by hand")
    )
