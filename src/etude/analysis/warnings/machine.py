"""Warnings from snapshots: changes of the machine during an experiment, a busy machine, several machines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from etude.analysis.snapshot_differences import compare_states
from etude.analysis.subject import was_simulated
from etude.analysis.warnings import facts
from etude.analysis.warnings.facts import StateChange
from etude.analysis.warnings.warning import DataWarning, warning
from etude.results.session_groups import restarted_into

OF_AN_ENTRY = ("system.kernel_release", "system.kernel_version", "system.command_line")
"""Members that a requested entry of the boot loader decides."""
BUSY = 0.75
"""Load average per CPU above which a machine counts as busy. Repeated measurements, one at a time, leave a load of 1 on
all CPUs together."""


def machine_warnings(experiment: Mapping[str, Any]) -> list[DataWarning]:
    """Differences between the snapshots of experiment.json: before, at the start of each later session, after.

    A machine is compared with itself; several machines give one warning, with the differences between the first and
    the others. Members that either snapshot lacks are skipped. A document that is no experiment.json gives no
    warnings.
    """
    alike: dict[tuple[StateChange, ...], list[tuple[int, int]]] = {}
    for between, old, new in _steps(experiment):
        if changes := tuple(old.changes_to(new)):
            alike.setdefault(changes, []).append(between)
    states = _states(experiment)
    found = [
        warning("machine-changed", "", "", facts.MachineChanged(tuple(places), changes, len(states)))
        for changes, places in alike.items()
    ]
    return [*found, *_several(states), *busy_machine(experiment)]


def busy_machine(experiment: Mapping[str, Any]) -> Iterator[DataWarning]:
    """Warning that a machine was busy at the start of a session: the busiest one. None for simulations."""
    if was_simulated(experiment):
        return
    states = _states(experiment)
    found = []
    for number, state in enumerate(states, start=1):
        load = _member(state.snapshot, "load", "load_1")
        cpus = _member(state.snapshot, "cpu", "online")
        if isinstance(load, int | float) and isinstance(cpus, int) and load > BUSY * cpus:
            found.append((load / cpus, load, cpus, number))
    if found:
        _, load, cpus, number = max(found)
        yield warning("busy", "", "", facts.Busy(load, cpus, None if len(states) == 1 else number))


def _several(states: Sequence[_State]) -> Iterator[DataWarning]:
    """Warning that there are several machines."""
    firsts: dict[object, _State] = {}
    for state in states:
        if state.host:
            firsts.setdefault(state.host, state)
    if len(firsts) < 2:
        return
    first, *others = firsts.values()
    changes = tuple(dict.fromkeys(change for other in others for change in first.changes_to(other)))
    hosts = tuple(state.host for state in firsts.values())
    yield warning("several-machines", "", "", facts.SeveralMachines(hosts, changes))


class _State:
    """The machine at one moment."""

    def __init__(
        self,
        snapshot: object,
        host: object = None,
        boot: object = None,
        restarted: str | None = None,
        places: Collection[object] = (),
    ) -> None:
        """`restarted`: the boot entry into which the previous session restarted the machine, or None. `places`: mount
        points of the file systems under test."""
        self.restarted = restarted
        mounted = (*places, _member(snapshot, "directory", "mount_point"))
        self.places = {place for place in mounted if isinstance(place, str)}
        self.snapshot = snapshot if isinstance(snapshot, Mapping) else {}
        named = host or _member(snapshot, "system", "hostname")
        self.host = named if isinstance(named, str) else ""
        self.boot = boot or _member(snapshot, "system", "boot_id")

    def changes_to(self, new: _State) -> Iterator[StateChange]:
        same = not (self.host and new.host and self.host != new.host)
        if same and self.boot and new.boot and self.boot != new.boot and new.restarted is None:
            yield StateChange("")
        for d in compare_states(self.snapshot, new.snapshot).differs:
            asked_for = d.what in OF_AN_ENTRY and bool(new.restarted)
            elsewhere = (d.what.startswith("mounts.") and _owner(d.what) not in self.places) or (
                d.what.startswith("disks.loop") and _owner(d.what) not in self._disks() | new._disks()
            )
            if not asked_for and not d.once and not elsewhere and d.what != "system.hostname":
                yield StateChange(d.what, str(d.then), str(d.now))

    def _disks(self) -> set[str]:
        """The disks that the file systems under test are mounted from."""
        devices = (_member(self.snapshot, "mounts", place, "device") for place in self.places)
        return {device.removeprefix("/dev/") for device in devices if isinstance(device, str)}


def _states(experiment: Mapping[str, Any]) -> list[_State]:
    """States of the machine at the start of each session."""
    machine = experiment.get("machine")
    machine = machine if isinstance(machine, Mapping) else {}
    sittings = experiment.get("sittings")
    sittings = [s for s in sittings if isinstance(s, Mapping)] if isinstance(sittings, Sequence) else []
    tests = experiment.get("tests")
    entries = [t for t in tests if isinstance(t, Mapping)] if isinstance(tests, Sequence) else []
    places = [_member(test, "file_system", "mount_point") for test in entries]
    return [
        _State(
            machine.get("before") if place == 0 else s.get("machine"),
            s.get("host"),
            s.get("boot_id"),
            restarted_into(sittings[place - 1]) if place else None,
            places,
        )
        for place, s in enumerate(sittings)
    ] or [_State(machine.get("before"), places=places)]


def _steps(experiment: Mapping[str, Any]) -> Iterator[tuple[tuple[int, int], _State, _State]]:
    """Consecutive states of one machine with their sessions; the last pair is the start and end of one session."""
    states = _states(experiment)
    last: dict[object, tuple[int, _State]] = {}
    for number, new in enumerate(states, start=1):
        if new.host in last:
            then, old = last[new.host]
            yield (then, number), old, new
        last[new.host] = number, new
    machine = experiment.get("machine")
    after = _State(machine.get("after") if isinstance(machine, Mapping) else None)
    if not (after.host and states[-1].host and after.host != states[-1].host):
        yield (len(states), len(states)), states[-1], after


def _owner(what: str) -> str:
    """`/mnt` of `mounts./mnt.options`, `loop0` of `disks.loop0.backing_file`."""
    return what.partition(".")[2].rpartition(".")[0]


def _member(snapshot: object, *path: str) -> object:
    for key in path:
        snapshot = snapshot.get(key) if isinstance(snapshot, Mapping) else None
    return snapshot
