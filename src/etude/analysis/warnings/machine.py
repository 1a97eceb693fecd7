"""Warnings about the machine: changes during an experiment, a busy machine, several machines, other processes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from etude.analysis.snapshot_differences import compare_states
from etude.analysis.subject import Subject, was_simulated
from etude.analysis.verdict_options import Thresholds
from etude.analysis.warnings import facts
from etude.analysis.warnings.facts import OtherLoad, StateChange
from etude.analysis.warnings.warning import DataWarning, warning
from etude.results.blocks import read_blocks
from etude.results.results import restarted_into
from etude.results.series import Series

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
        devices = (_member(self.snapshot, "mounts", place, "device") for place in self.places)
        return {device.removeprefix("/dev/") for device in devices if isinstance(device, str)}


def _states(experiment: Mapping[str, Any]) -> list[_State]:
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


BLOCK = "others"
NAMED = 3
_SHARE = re.compile(r"(.+) = ([0-9]+\.[0-9]+) s \([0-9]+ process(?:es)?\)")
_REST, _OURS = "(rest)", "(etude)"


@dataclass(frozen=True)
class OtherProcesses:
    """The processes that the probe saw during the included trials of a test."""

    trials: int
    cpu_s: Mapping[str, float]
    """Per trial, by name of the processes, most first; the many small ones together as `(rest)`. Étude's own, which
    work before and after the measured command, are left out."""

    @property
    def total_s(self) -> float:
        """CPU time of all of them per trial."""
        return sum(self.cpu_s.values())


def other_processes(subject: Subject, series: Series) -> OtherProcesses | None:
    """The findings of the probe `others` during a test; None where it did not run.

    Raises:
        InputError: the test's blocks cannot be read.
    """
    entries = (subject.experiment or {}).get("tests") or ()
    entry = next((entry for entry in entries if entry["name"] == series.test), None)
    if entry is None or subject.directory is None or not subject.directory.is_dir():
        return None  # another program's, or a `.res`
    kept = set(series.trials[series.kept].tolist())
    blocks, _ = read_blocks(subject.directory / entry["directory"] / "blocks.jsonl")
    found = [each for each in blocks if each.block.name == BLOCK and each.trial in kept]
    if not found:
        return None
    total: dict[str, float] = {}
    for line in (line for each in found for line in each.block.lines):
        if (match := _SHARE.fullmatch(line)) and match[1] != _OURS:
            total[match[1]] = total.get(match[1], 0.0) + float(match[2])
    trials = len({each.trial for each in found})
    most_first = sorted(total, key=lambda name: -total[name])
    return OtherProcesses(trials, {name: total[name] / trials for name in most_first})


def others_warnings(subject: Subject, series: Series, thresholds: Thresholds) -> list[DataWarning]:
    """Warning about the processes that used the CPUs during a test, if their share of the elapsed time matters."""
    found = other_processes(subject, series)
    elapsed = series.sample("elapsed")
    if found is None or not elapsed.size or not found.total_s:
        return []
    share = found.total_s / max(float(elapsed.mean()), 1e-9)
    if share < thresholds.others:
        return []
    names = [name for name in found.cpu_s if name != _REST][:NAMED]
    most = tuple((name, found.cpu_s[name]) for name in names)
    load = OtherLoad(found.total_s, share, found.trials, most, len(found.cpu_s) - len(names))
    return [warning("others", series.test, "", load)]
