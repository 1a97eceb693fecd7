"""From snapshots: what changed about the machine during an experiment, whether it was busy, how many there were."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from etude.analysis.differences import compare_states
from etude.analysis.snapshots import value_text
from etude.analysis.subject import was_simulated
from etude.analysis.warnings.warning import DataWarning, warning
from etude.results.session_groups import restarted_into
from etude.units.formatting import counted

OF_AN_ENTRY = ("system.kernel_release", "system.kernel_version", "system.command_line")
"""What an entry of the boot loader, which was asked for, decides."""
MOST = 4
"""So many changes are named."""
BUSY = 0.75
"""A load average for each CPU above which a machine counts as busy: what is measured one at a time, again and again,
leaves one of 1 on all CPUs together."""


def machine_warnings(experiment: Mapping[str, Any]) -> list[DataWarning]:
    """Differences between the snapshots of experiment.json: before, at the start of each later session, after.

    A machine is held against itself; several machines are told of once, with what differs between the first of them
    and the others. Members that either snapshot does not know are passed over. Nothing is found in what is no
    experiment.json.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for where, old, new in _steps(experiment):
        if changes := tuple(old.changes_to(new)):
            alike.setdefault(changes, []).append(where)
    found = []
    for changes, places in alike.items():
        more = f" and {len(changes) - MOST} more" if len(changes) > MOST else ""
        when = f"{places[0]}, and {counted(len(places) - 1, 'more time')}" if len(places) > 1 else places[0]
        text = f"the machine changed {when}: {'; '.join(changes[:MOST])}{more}"
        found.append(warning("machine-changed", "", "", text, _ADVICE))
    return [*found, *_several(_states(experiment)), *busy_machine(experiment)]


def busy_machine(experiment: Mapping[str, Any]) -> Iterator[DataWarning]:
    """That a machine was busy at the start of a session: the busiest start counts. What is simulated does not care."""
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
        began = "it" if len(states) == 1 else f"session {number}"
        text = (
            f"the machine was busy when {began} began: a load average of {load:g} on {counted(cpus, 'CPU')}"
        )
        yield warning("busy", "", "", text, "rerun on an idle machine", load=load, cpus=cpus)


def _several(states: Sequence[_State]) -> Iterator[DataWarning]:
    """That there are several machines."""
    firsts: dict[object, _State] = {}
    for state in states:
        if state.host:
            firsts.setdefault(state.host, state)
    if len(firsts) < 2:
        return
    first, *others = firsts.values()
    changes = list(dict.fromkeys(change for other in others for change in first.changes_to(other)))
    more = f" and {len(changes) - MOST} more" if len(changes) > MOST else ""
    differ = (
        f"which differ: {'; '.join(changes[:MOST])}{more}"
        if changes
        else "which are alike as far as is recorded"
    )
    names = ", ".join(value_text(host) for host in list(firsts)[:MOST])
    rest = f" and {len(firsts) - MOST} more" if len(firsts) > MOST else ""
    text = f"measured on {len(firsts)} machines ({names}{rest}), {differ}"
    yield warning("several-machines", "", "", text, "what is compared is compared within each")


_ADVICE = "do not compare what was measured before with what was measured after"


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
        """`restarted`: the entry that the session before restarted the machine into, if it did. `places`: mount
        points of the file systems under test."""
        self.restarted = restarted
        mounted = (*places, _member(snapshot, "directory", "mount_point"))
        self.places = {place for place in mounted if isinstance(place, str)}
        self.snapshot = snapshot if isinstance(snapshot, Mapping) else {}
        named = host or _member(snapshot, "system", "hostname")
        self.host = named if isinstance(named, str) else ""
        self.boot = boot or _member(snapshot, "system", "boot_id")

    def changes_to(self, new: _State) -> Iterator[str]:
        same = not (self.host and new.host and self.host != new.host)
        if same and self.boot and new.boot and self.boot != new.boot and new.restarted is None:
            yield "it was rebooted"
        for d in compare_states(self.snapshot, new.snapshot).differs:
            asked_for = d.what in OF_AN_ENTRY and bool(new.restarted)
            elsewhere = (d.what.startswith("mounts.") and _owner(d.what) not in self.places) or (
                d.what.startswith("disks.loop") and _owner(d.what) not in self._disks() | new._disks()
            )
            if not asked_for and not d.once and not elsewhere and d.what != "system.hostname":
                yield f"{d.what} {d.then} → {d.now}"

    def _disks(self) -> set[str]:
        """The disks that the file systems under test are mounted from."""
        devices = (_member(self.snapshot, "mounts", place, "device") for place in self.places)
        return {device.removeprefix("/dev/") for device in devices if isinstance(device, str)}


def _states(experiment: Mapping[str, Any]) -> list[_State]:
    """At the start of each session."""
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


def _steps(experiment: Mapping[str, Any]) -> Iterator[tuple[str, _State, _State]]:
    """Consecutive states of one machine, and between what they lie."""
    states = _states(experiment)
    last: dict[object, tuple[int, _State]] = {}
    for number, new in enumerate(states, start=1):
        if new.host in last:
            then, old = last[new.host]
            yield f"between sessions {then} and {number}", old, new
        last[new.host] = number, new
    machine = experiment.get("machine")
    after = _State(machine.get("after") if isinstance(machine, Mapping) else None)
    if not (after.host and states[-1].host and after.host != states[-1].host):
        during = "while it measured" if len(states) == 1 else f"during session {len(states)}"
        yield during, states[-1], after


def _owner(what: str) -> str:
    """`/mnt` of `mounts./mnt.options`, `loop0` of `disks.loop0.backing_file`."""
    return what.partition(".")[2].rpartition(".")[0]


def _member(snapshot: object, *path: str) -> object:
    for key in path:
        snapshot = snapshot.get(key) if isinstance(snapshot, Mapping) else None
    return snapshot
