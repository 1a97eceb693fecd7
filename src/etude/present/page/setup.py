"""Description of what results were measured on: the machine, and of each test its file system, device and set-up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

from etude.present.page.gather import SEARCHES, Gathered
from etude.present.section import Table, number, page_table
from etude.present.sentences.notes import listed_names
from etude.results.results import machine_member
from etude.units.formatting import counted, quantity

MOST_GROUPS = 8
"""Groups of tests with the same set-up that are named."""
HOOKS = ("setup", "prepare", "conclude", "cleanup")
SCRIPT_HOOKS = ("PRESETUP", "SETUP", "CLEANUP", "POSTCLEANUP")
_PARTITION = re.compile(r"p?\d+$")


@dataclass(frozen=True)
class Setup:
    """The ground of one test; empty texts where it is not recorded."""

    file_system: str
    device: str
    workers: int
    cache: str
    """Preparation of the cache before each trial."""
    hooks: str
    """Commands that prepare trials, with the names of the hooks."""


def setups_of(experiment: Mapping[str, Any] | None) -> dict[str, Setup]:
    """The set-up of each test; none of searches, whose tests are loads and configurations."""
    plan = (experiment or {}).get("plan") or {}
    if plan.get("kind") in SEARCHES:
        return {}
    planned = {test.get("name"): test for test in plan.get("tests") or ()}
    blocks = dict(_script_hooks(plan.get("text")))
    found = {}
    for entry in (experiment or {}).get("tests") or ():
        if entry.get("role", "test") != "test":
            continue
        name = str(entry.get("name"))
        test = planned.get(name) or {}
        place = entry.get("file_system") or machine_member(experiment, "directory") or {}
        cache = str(entry.get("cache") or test.get("cool") or "none")
        lines = [f"{hook}: {_words(test[hook])}" for hook in HOOKS if test.get(hook)] or blocks.get(name, ())
        found[name] = Setup(
            " at ".join(filter(None, (place.get("type"), place.get("mount_point")))),
            _device(experiment, str(place.get("device") or "")),
            int(entry.get("workers") or 1),
            "" if cache == "none" else cache,
            "; ".join(lines),
        )
    return found


def setup_lines(experiment: Mapping[str, Any] | None) -> Iterator[str]:
    """A sentence for each group of tests on the same ground."""
    groups: dict[tuple[object, ...], list[str]] = {}
    found = setups_of(experiment)
    for name, each in found.items():
        groups.setdefault(astuple(each)[:-1], []).append(name)
    for names in list(groups.values())[:MOST_GROUPS]:
        each = found[names[0]]
        place = " on ".join(filter(None, (each.file_system, each.device))) or "file system not recorded"
        several = len(names) > 1
        workers = f"{counted(each.workers, 'worker')}{' each' if several else ''}"
        cache = f"cache {each.cache}" if each.cache else ""
        who = "Every test" if several and len(groups) == 1 else listed_names(names, MOST_GROUPS)
        yield f"{who}: {', '.join(filter(None, (place, workers, cache)))}."
    if len(groups) > MOST_GROUPS:
        yield f"The other {len(groups) - MOST_GROUPS} set-ups are in the table under Machine."


def setups_table(found: Gathered) -> Table:
    """A row a test."""
    several = len(found.verdicts) > 1
    rows = [
        (
            *((name, verdict.subject.label) if several else (name,)),
            each.file_system or "not recorded",
            each.device or "not recorded",
            each.hooks or "–",
            each.cache or "–",
            number(str(each.workers), each.workers),
        )
        for verdict in found.verdicts
        for name, each in setups_of(found.mask.data(verdict.subject.experiment or {})).items()
    ]
    headings = (
        "test",
        *(("results",) if several else ()),
        "file system",
        "device",
        "set-up",
        "cache",
        "workers",
    )
    return page_table("setups", "What each test ran on", headings, rows, len(headings) - 1)


def _script_hooks(text: object) -> Iterator[tuple[str, Sequence[str]]]:
    """Lines of a script that prepare a test, by its name as the script writes it."""
    test, lines = "", list[str]()
    for line in (line for lines in (text.values() if isinstance(text, Mapping) else ()) for line in lines):
        word, _, rest = str(line).strip().partition(" ")
        if word == "TEST":
            test, lines = rest.split()[0] if rest.split() else "", []
        elif word in SCRIPT_HOOKS:
            lines.append(f"{word} {rest.strip()}")
        elif word == "DONE" and test:
            yield test, tuple(lines)
            test = ""


def _words(command: object) -> str:
    return (
        command
        if isinstance(command, str)
        else " ".join(map(str, command if isinstance(command, list) else ()))
    )


def _device(experiment: Mapping[str, Any] | None, path: str) -> str:
    """The device with its model and size, where the machine's record has its disk."""
    disks = machine_member(experiment, "disks") or {}
    name = path.removeprefix("/dev/")
    disk = disks.get(name) or disks.get(_PARTITION.sub("", name)) or {}
    size = disk.get("size_bytes")
    told = (disk.get("model"), quantity(size, "B") if isinstance(size, int) else None)
    known = ", ".join(str(each).strip() for each in told if each)
    return f"{path} ({known})" if path and known else path


def simulation_of(experiment: Mapping[str, Any] | None) -> str:
    """The simulated system, such as `mm1:700`; empty for a measurement."""
    plan = (experiment or {}).get("plan") or {}
    text = plan.get("text")
    harness = str(plan.get("harness") or (text if isinstance(text, str) else "")).split()
    return " ".join(harness[1:]) if plan.get("kind") in SEARCHES and harness[:1] == ["simulate"] else ""


def machine_sentence(experiment: Mapping[str, Any] | None) -> str:
    """The machine in one line: processor, memory, system. Of a simulation: that there was none."""
    if simulated := simulation_of(experiment):
        return f"Simulated ({simulated}): response times were computed, and no machine served them."
    member = partial(machine_member, experiment)
    cpus, memory = member("cpu", "online"), member("memory", "total_bytes")
    directory = () if setups_of(experiment) else (member("directory", "type"), member("directory", "device"))
    parts = [
        member("cpu", "model"),
        counted(cpus, "CPU") if isinstance(cpus, int) else None,
        f"{quantity(memory, 'B')} of memory" if isinstance(memory, int) else None,
        member("system", "distribution"),
        f"kernel {member('system', 'kernel_release')}" if member("system", "kernel_release") else None,
        f"{directory[0]} on {directory[1]}" if directory and all(directory) else None,
        "a virtual machine" if member("virtualisation", "hypervisor_flag") else None,
        f"host {member('system', 'hostname')}" if member("system", "hostname") else None,
    ]
    known = [str(part) for part in parts if part]
    return f"{', '.join(known)}." if known else "The machine was not recorded in these results."
