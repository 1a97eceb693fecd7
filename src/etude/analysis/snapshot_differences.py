"""Differences between the machines and settings of two results: lasting, always changing, and unknown ones.

Members of a snapshot have dotted names such as `memory.total_bytes`.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

from etude.machine import snapshot
from etude.masking import Mask, mask_of_all
from etude.version import __version__

COLLECTIONS = (
    "mounts.",
    "disks.",
    "environment.variables.",
    "programs.",
    "toolchain.",
    "quiet.",
)
"""Groups of members in which a missing member is absent; in other groups it was not recorded."""
NOT_THERE = "not there"
NOT_RECORDED = "not recorded"
ANOTHER = "(another secret)"
MOST_NAMED = 3
PLACE = ("type", "device", "options", "scheduler", "size_bytes", "free_bytes", "free_inodes")
"""Members of the directory that its mount reports, too."""
PLAN_MOVES = ("plan.seed",)
PLAN_ASIDE = ("plan.kind", "plan.name", "plan.text", "plan.script")


@dataclass(frozen=True)
class Difference:
    """Difference of one member, such as `system.kernel_release`; None: not recorded."""

    what: str
    then: str | None
    now: str | None
    typed: str = ""
    """Name of the member on the command line, such as an option; empty if there is none."""
    once: bool = field(default=False, kw_only=True)
    """True if only one of both has it, such as a mount made by a hook."""

    def __str__(self) -> str:
        then, now = (value if value is not None else NOT_RECORDED for value in (self.then, self.now))
        return f"{self.typed or self.what}: {then} → {now}"


@dataclass(frozen=True)
class Differences:
    """All differences of two results."""

    differs: tuple[Difference, ...]
    """Differences of machine, settings, programs and plan."""
    moved: tuple[Difference, ...]
    """Members that change by themselves: load, free space, times, the seed."""
    unknown: tuple[Difference, ...]
    """Members that one of both did not record."""


def compare(then: Mapping[str, Any], now: Mapping[str, Any]) -> Differences:
    """Differences of two experiment.json before their first trials; secrets are only reported as different.

    Raises:
        InputError: a pattern for masking cannot be read.
    """
    mask = mask_of_all([("then", then), ("now", now)])
    old, new = state_of(then), state_of(now)
    found = compare_states(old, new, mask=mask)
    plan = _plan(then, now, mask)
    return Differences(
        (*found.differs, *plan.differs), (*found.moved, *plan.moved), (*found.unknown, *plan.unknown)
    )


def state_of(document: Mapping[str, Any], when: str = "before") -> dict[str, Any]:
    """A snapshot (`before` or `after`) of an experiment.json, with its versions and quiet settings."""
    machine = _map(document.get("machine"))
    known = dict(_map(machine.get(when)))
    return known | {"version": dict(_map(document.get("versions"))), "quiet": _quiet(document)}


def state_now(known: Mapping[str, Any], place: str | None = None) -> dict[str, Any]:
    """The machine as it is, looking at the programs and the directory that a result names, or in another one."""
    programs, directory = known.get("programs"), known.get("directory")
    if place is None and isinstance(directory, Mapping):
        place = directory.get("path")
    where = Path(place) if isinstance(place, str) and os.path.isdir(place) else None
    names = programs if isinstance(programs, Mapping) else {}
    commands = [snapshot.Command((name,), directory=place) for name in names]
    versions = {"etude": __version__, "python": sys.version.split()[0]}
    return snapshot.take(directory=where, commands=commands) | {"version": versions}


def _quiet(document: Mapping[str, Any]) -> dict[str, str]:
    """Settings that scripts made quiet, by operation, which no snapshot has; processes are not distinguished."""
    entries = document.get("quiet")
    found: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else ():
        for name, items in _map(_map(entry).get("operations")).items():
            values = {
                str(pair[1]) for pair in _map(items).values() if isinstance(pair, list) and len(pair) == 2
            }
            found[name] = ", ".join(sorted(values))
    return found


def compare_states(
    then: Mapping[str, Any], now: Mapping[str, Any], *, mask: Mask | None = None
) -> Differences:
    """Differences of two snapshots; secrets that the mask finds are only reported as different."""
    mask = mask or Mask()
    old, new = dict(members(then)), dict(members(now))
    differs: list[Difference] = []
    moved: list[Difference] = []
    unknown: list[Difference] = []
    for what in _names(old, new, then, now):
        one, other = old.get(what), new.get(what)
        if _alike(one, other):
            continue
        collection = next((name for name in COLLECTIONS if what.startswith(name)), None)
        told = collection is not None and _has(then, collection) and _has(now, collection)
        if told and collection in ("programs.", "toolchain."):
            told = what in old and what in new  # a program missing from one was not searched there
        absent = NOT_THERE if told else None
        is_file = collection in ("programs.", "toolchain.")
        one, other = _without_secrets(mask, what, one, other)
        old_text, new_text = (str(one), str(other)) if is_file else both_shown(one, other)
        difference = Difference(
            what,
            absent if one is None else old_text,
            absent if other is None else new_text,
            once=told and (one is None or other is None),
        )
        if MOVING.match(what):
            moved += [] if difference.once else [difference]
        elif difference.then is None or difference.now is None:
            unknown.append(difference)
        else:
            differs.append(difference)
    return Differences(tuple(_joined(_whole(differs))), tuple(moved), tuple(_parts(unknown)))


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _has(snapshot: Mapping[str, Any], collection: str) -> bool:
    value: Any = snapshot
    for name in collection.rstrip(".").split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return isinstance(value, Mapping)


def _names(
    old: Mapping[str, Any], new: Mapping[str, Any], then: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[str]:
    places = [_map(snapshot.get("directory")).get("mount_point") for snapshot in (then, now)]
    same = places[0] is not None and places[0] == places[1]
    mounted = same and all(places[0] in _map(snapshot.get("mounts")) for snapshot in (then, now))
    for what in dict.fromkeys((*old, *new)):
        part, _, member = what.partition(".")
        if part == "directory" and mounted and member in PLACE:
            continue
        yield what


def _alike(one: Any, other: Any) -> bool:
    """True if two values are equal; 1 and 1.0 are, True and 1 are not."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _whole(differs: Sequence[Difference]) -> Iterator[Difference]:
    """Differences, with a mount or disk of only one snapshot as one difference, not one per member."""
    told: set[tuple[str, bool, bool]] = set()
    for d in differs:
        part = next((name for name in ("mounts.", "disks.") if d.what.startswith(name)), None)
        if part is None or not d.once:
            yield d
            continue
        owner = d.what.rpartition(".")[0]
        key = (owner, d.then == NOT_THERE, d.now == NOT_THERE)
        if key not in told:
            told.add(key)
            yield Difference(
                owner,
                NOT_THERE if d.then == NOT_THERE else "there",
                NOT_THERE if d.now == NOT_THERE else "there",
                once=True,
            )


def _joined(differs: Iterator[Difference]) -> list[Difference]:
    """Differences, with names of programs that stand for the same files before and after joined into one."""
    by_files: dict[tuple[str | None, str | None], list[str]] = {}
    found: list[Difference] = []
    for d in differs:
        part, _, name = d.what.partition(".")
        if part not in ("programs", "toolchain"):
            found.append(d)
            continue
        key = (d.then, d.now)
        if key not in by_files:
            by_files[key] = []
            found.append(d)
        by_files[key].append(name)
    return [
        Difference(f"program {', '.join(dict.fromkeys(by_files[d.then, d.now]))}", d.then, d.now)
        if d.what.startswith(("programs.", "toolchain."))
        else d
        for d in found
    ]


def _parts(unknown: Sequence[Difference]) -> Iterator[Difference]:
    """Differences, with the unrecorded members of one part joined if there are more than `MOST_NAMED`."""
    counts: dict[tuple[str, bool], list[Difference]] = {}
    for d in unknown:
        counts.setdefault((d.what.partition(".")[0], d.then is None), []).append(d)
    for (part, _), found in counts.items():
        if len(found) <= MOST_NAMED:
            yield from found
            continue
        there = f"{len(found)} members"
        then = None if found[0].then is None else there
        yield Difference(part, then, None if then else there)


def _without_secrets(mask: Mask, what: str, one: Any, other: Any) -> tuple[Any, Any]:
    """Two different values of a member, masked; if only secrets differ, the second one is marked."""
    path = what.split(".")[-2:]
    masked, also = (mask.member(value, *path) for value in (one, other))
    if masked != also or masked is None:
        return masked, also
    return masked, [*also, ANOTHER] if isinstance(also, list) else f"{also} {ANOTHER}"


def _plan(then: Mapping[str, Any], now: Mapping[str, Any], mask: Mask) -> Differences:
    plans = [_map(document.get("plan")) for document in (then, now)]
    flat = [
        dict(members({"plan": {"verb": d.get("verb"), **plan}}))
        for d, plan in zip((then, now), plans, strict=True)
    ]
    differs: list[Difference] = []
    moved: list[Difference] = []
    unknown: list[Difference] = []
    typed = all(map(_tests, plans))
    if typed:
        differs += _single_tests(plans, mask)
    for what in dict.fromkeys((*flat[0], *flat[1])):
        if what.startswith(PLAN_ASIDE) or _alike(flat[0].get(what), flat[1].get(what)):
            continue
        if what.startswith(tuple(f"{test.what}." for test in differs)):
            continue
        pair = _without_secrets(mask, what, flat[0].get(what), flat[1].get(what))
        old, new = (None if each is None else _shown_of_plan(what, each) for each in pair)
        difference = Difference(what, old, new, mask.text(as_typed(what, plans)) if typed else "")
        if what in PLAN_MOVES:
            moved.append(difference)
        elif not all(plans):
            unknown.append(difference)
        else:
            differs.append(Difference(what, old or "none", new or "none", difference.typed))
    differs += _texts(_map(plans[0].get("text")), _map(plans[1].get("text")), mask)
    return Differences(tuple(differs), tuple(moved), tuple(_parts(unknown)))


def _shown_of_plan(what: str, value: object) -> str:
    return value_text(command_line(value) if what.endswith(".command") else value)


def _single_tests(plans: Sequence[Mapping[str, Any]], mask: Mask) -> Iterator[Difference]:
    for number in range(max(len(_tests(plan)) for plan in plans)):
        pair = [test_at(plan, number) for plan in plans]
        if None in pair:
            (test,) = filter(None, pair)
            there = value_text(command_line(mask.data(test.get("command"))))
            then, now = (NOT_THERE if each is None else there for each in pair)
            yield Difference(f"plan.tests.{number}", then, now, mask.text(f"test {test.get('name')}"))


def _tests(plan: Mapping[str, Any]) -> Sequence[Any]:
    tests = plan.get("tests")
    return tests if isinstance(tests, Sequence) else ()


def _texts(then: Mapping[str, Any], now: Mapping[str, Any], mask: Mask) -> Iterator[Difference]:
    """The first different line of each file of a script."""
    for file in dict.fromkeys((*then, *now)):
        lines = [each.get(file) for each in (then, now)]
        if lines[0] == lines[1]:
            continue
        if not all(isinstance(each, list) for each in lines):
            yield Difference(
                f"script {file}", *("there" if each is not None else NOT_THERE for each in lines)
            )
            continue
        for number, pair in enumerate(zip_longest(lines[0] or (), lines[1] or ()), 1):
            if pair[0] != pair[1]:
                what = f"script {file}, line {number}"
                values = (
                    value_text(each) if each is not None else "no such line"
                    for each in _without_secrets(mask, what, *pair)
                )
                yield Difference(what, *values)
                break


_PLAN = {
    "schedule": "--schedule",
    "ignore_failure": "--ignore-failure",
    "check_output": "--check-output",
    "cgroup": "--no-cgroup",
    "counters": "--counters",
    "shell": "--shell",
    "primary": "--primary",
    "warmup": "--warmup",
    "rule.kind": "stop rule",
    "rule.parameters.count": "--trials",
    "rule.parameters.minimum": "--min-trials",
    "rule.parameters.maximum": "--max-trials",
    "rule.parameters.precision": "--precision",
    "rule.parameters.budget_s": "--time",
}
_TEST = {
    "name": "name",
    "command": "command line",
    "cpus": "--cpu",
    "timeout_s": "--timeout",
    "stdin": "--input",
    "directory": "working directory",
}
_MEMBER = re.compile(r"plan\.tests\.(\d+)\.([^.]+)(?:\.(.+))?")


def as_typed(what: str, plans: Sequence[Mapping[str, Any]]) -> str:
    """Name on the command line of a member of one of these plans; empty if there is none."""
    found = _MEMBER.fullmatch(what)
    if not found:
        return _PLAN.get(what.removeprefix("plan."), "")
    tests = [test for plan in plans if (test := test_at(plan, int(found[1])))]
    if not tests:
        return ""
    member, rest = found[2], found[3]
    if member == "metrics":
        return _metric(rest or "", tests)
    if member == "role":
        return ""
    if member in ("environment", "parameters") and rest:
        word = f"variable {rest}" if member == "environment" else f"-P {rest}"
    else:
        word = _TEST.get(member, f"--{member}")
    return f"{word} of {tests[0].get('name')}"


def test_at(plan: Mapping[str, Any], number: int) -> Mapping[str, Any] | None:
    """The plan's test of that number, from 0; None if there is none."""
    tests = plan.get("tests")
    if not isinstance(tests, Sequence) or number >= len(tests) or not isinstance(tests[number], Mapping):
        return None
    found: Mapping[str, Any] = tests[number]
    return found


def command_line(command: object) -> str:
    """A command as it is typed."""
    return shlex.join(map(str, command)) if isinstance(command, Sequence) else str(command)


def _metric(rest: str, tests: Sequence[Mapping[str, Any]]) -> str:
    number, _, member = rest.partition(".")
    for test in tests:
        metrics = test.get("metrics") or ()
        if number.isdecimal() and int(number) < len(metrics):
            return f"--metric {metrics[int(number)].get('name')}{'' if member == 'regex' else f' ({member})'}"
    return "--metric"


ALIASES = {
    "memory.swappiness": "sysctl.vm.swappiness",
    "memory.dirty_ratio": "sysctl.vm.dirty_ratio",
    "memory.dirty_background_ratio": "sysctl.vm.dirty_background_ratio",
    "kernel.aslr": "sysctl.kernel.randomize_va_space",
    "kernel.perf_event_paranoid": "sysctl.kernel.perf_event_paranoid",
    "kernel.nmi_watchdog": "sysctl.kernel.nmi_watchdog",
    "kernel.autogroup": "sysctl.kernel.sched_autogroup_enabled",
}
"""Current names of members that older snapshots have in another part."""

MOVING = re.compile(
    r"load(?:\.|$)|system\.(?:uptime_s|boot_id)$|python\.executable$"
    r"|memory\.(?:available|free|cached|dirty|swap_used)_bytes$"
    r"|.*\.(?:free_bytes|free_inodes|free_fragment_bytes)$|.*current[^.]*(?:\.|$)"
    r"|sysctl\.kernel\.perf_(?:event_max_sample_rate|cpu_time_max_percent)$"
    r"|environment\.size_bytes$|environment\.variables\.(?:_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|WINDOWID|DISPLAY"
    r"|SSH_\w+|XDG_SESSION_\w+|DBUS_\w+|TERM_SESSION_ID|INVOCATION_ID|JOURNAL_STREAM|MEMORY_PRESSURE_\w+"
    r"|SYSTEMD_EXEC_PID|PYTEST_CURRENT_TEST|WINDOW|STY|TMUX|TMUX_PANE|SLURMD?_\w+|ETUDE_(?:JOB|RUN))$"
)
"""Members that change by themselves, or with each login: load, free space, times, the clock rate right now."""

LONGEST = 60
"""Maximum number of characters of a value that are shown."""

BEFORE = 16
"""Number of common characters of two long values that are shown before their first difference."""

_FILES = ("programs", "toolchain")


def members(part: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """All members with dotted names such as `memory.total_bytes`. A program is one member."""
    for key, value in part.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping) and above in _FILES:
            yield name, file_shown(value)
        elif isinstance(value, Mapping):
            yield from members(value, name)
        elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
            yield from members(dict(enumerate(value)), name)
        elif name in ALIASES:
            yield ALIASES[name], None if value is None else str(value)
        else:
            yield name, value


def file_shown(file: Mapping[str, Any]) -> str:
    """A program in one line, other for each other content: its path, package, version and the head of its digest."""
    package = " ".join(str(file[name]) for name in ("package", "version") if file.get(name))
    digest = file.get("sha256") or file.get("build_id")
    mark = str(digest)[:12] if digest else f"{file.get('bytes')} bytes"
    return f"{file.get('file') or file.get('path')} ({', '.join(filter(None, (package, mark)))})"


def value_text(value: object) -> str:
    """A value on one line, shortened; `none` for an empty one."""
    return _short(_line(value)) or "none"


def both_shown(one: object, other: object) -> tuple[str, str]:
    """Two values, each on one line; long ones begin shortly before their first difference."""
    texts = _line(one), _line(other)
    if max(map(len, texts)) > LONGEST:
        same = (a == b for a, b in zip(*texts, strict=False))
        common = sum(takewhile(bool, same)) - BEFORE
        if common > 0:
            texts = f"…{texts[0][common:]}", f"…{texts[1][common:]}"
    return _short(texts[0]) or "none", _short(texts[1]) or "none"


def _line(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(text.split())


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
