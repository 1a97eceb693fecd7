"""What makes numbers noisy on this machine. It looks, and changes nothing."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from etude.machine import checks
from etude.machine.finding import Finding, Machine
from etude.machine.reading import read_counters

Check = Callable[[Machine], Finding]

CHECKS: tuple[Check, ...] = (
    checks.busy_processes,
    checks.load,
    checks.pressure,
    checks.steal,
    checks.governor,
    checks.turbo,
    checks.throttling,
    checks.power_supply,
    checks.smt,
    checks.isolated_cpus,
    checks.virtualisation,
    checks.swap,
    checks.huge_pages,
    checks.address_layout,
    checks.clock_source,
    checks.counters,
    checks.watchdog,
    checks.cgroups,
    checks.free_space,
)

BETWEEN_READINGS_S = 0.2


def pause() -> None:
    time.sleep(BETWEEN_READINGS_S)


def examine(
    root: Path = Path("/"),
    directory: Path = Path("."),
    pause: Callable[[], object] = pause,
    privileged: bool | None = None,
) -> list[Finding]:
    """One finding a check, in the order in which they are worth reading.

    `pause` passes the time between the two readings of counters: a test changes them meanwhile.
    """
    before = read_counters(root)
    pause()
    machine = Machine(
        root=root,
        directory=directory,
        before=before,
        after=read_counters(root),
        privileged=os.geteuid() == 0 if privileged is None else privileged,
    )
    return [check(machine) for check in CHECKS]
