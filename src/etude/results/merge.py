"""Merges several results directories of one experiment: each session stays one, with its own host and machine.

A merge always starts from the parts, and replaces experiment.json last: an interrupted merge is simply repeated.
Parts are only read. Complete trials of lost machines are included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from etude.errors import EDITED, InputError
from etude.osutil.files import replace_file
from etude.results import monitor
from etude.results.model import Measurement
from etude.results.reader import load_results, read_experiment
from etude.results.regular import read_regular
from etude.results.results import FORMAT, VERSION
from etude.results.writer import directory_name, write_error, write_experiment

UNPAIRED = "unpaired"
"""Reason of exclusion of a trial in an incomplete block."""
IN_TURN = "in-turn"
"""The schedule whose tests share no blocks."""
_TRIAL_FIRST = re.compile(r"(\d+)(-.*)")


@dataclass
class _Whole:
    document: dict[str, Any]
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    trials: dict[str, int] = field(default_factory=dict)
    """The next free trial number of each test."""
    lines: dict[str, list[bytes]] = field(default_factory=dict)
    """Renumbered lines, by file below the directory."""
    copied: dict[str, Path] = field(default_factory=dict)
    """Sources of copies, by file below the directory."""


def merge_results(parts: Mapping[str, Path], into: Path, document: Mapping[str, Any] | None = None) -> None:
    """Merge results directories, in this order, into another one; an earlier merge in it is replaced.

    `parts`: each by a name, which its sessions get as `part`. `document`: members of experiment.json that describe the
    request (name, verb, command_line, digest, plan, and others); default those of the first part. Sessions are
    renumbered, and so are the trials of a test that several parts have; otherwise each line is unchanged, bit for bit.
    A part without a session is ignored; if one was lost within a block, the trials of that block are excluded, since
    they have no pair.

    Raises:
        InputError: a part cannot be read, or lacks members of a session; MachineRefuses: `into` cannot be written.
    """
    whole = _Whole({})
    for name, part in parts.items():
        _take(whole, name, part)
    for entry in whole.entries.values():
        entry["lines"] = len(whole.lines.get(f"{entry['directory']}/results.jsonl", ()))
    least = {"format": FORMAT, "version": VERSION, "plan": {}, "sittings": []}
    found = least | whole.document | dict(document or {}) | {"tests": list(whole.entries.values())}
    try:
        for file, lines in whole.lines.items():
            _replace(into / file, b"".join(lines))
        for file, source in whole.copied.items():
            _replace(into / file, read_regular(source))
        for known in _beside(whole, into):
            if str(known.relative_to(into)) not in whole.copied:
                known.unlink()
    except OSError as error:
        raise write_error(into, error) from error
    write_experiment(into, found)


def _beside(whole: _Whole, into: Path) -> list[Path]:
    """Files of trials there: those of an earlier merge may belong to other trials under the new numbers."""
    logs = [
        found for each in whole.entries.values() for found in (into / each["directory"] / "logs").glob("*")
    ]
    return [*logs, *into.glob("monitor-*.jsonl")]


def _take(whole: _Whole, name: str, part: Path) -> None:
    document = read_experiment(part)
    if not document["sittings"]:
        return
    if not whole.document:
        machine = dict(document.get("machine") or {})
        whole.document = {**document, "sittings": [], "metrics": {}, "quiet": [], "machine": machine}
    sittings = _sessions(whole.document["sittings"], document, name)
    whole.document["metrics"] |= document.get("metrics") or {}
    whole.document["machine"]["after"] = (document.get("machine") or {}).get("after")
    whole.document["quiet"] += [
        {**each, "sitting": sittings[each["sitting"]]} for each in document.get("quiet") or []
    ]
    for number, new in sittings.items():
        if (part / monitor.file_name(number)).exists():
            whole.copied[monitor.file_name(new)] = part / monitor.file_name(number)
    measured = load_results(part).measurements
    torn = _torn_block(document, measured)
    for entry in document["tests"]:
        _take_test(whole, name, part, entry, measured[entry["name"]], torn, sittings)


def _torn_block(document: Mapping[str, Any], measured: Mapping[str, Sequence[Measurement]]) -> int | None:
    """The last block of an incomplete part, if not all tests that share blocks are in it."""
    plan = document.get("plan") or {}
    if document["sittings"][-1].get("how_ended") == "complete" or plan.get("schedule", IN_TURN) == IN_TURN:
        return None
    blocks = [{m.block for m in measured.get(test["name"], ()) if m.kept} for test in plan["tests"]]
    last = max(set[int]().union(*blocks), default=None)
    return None if all(last in each for each in blocks) else last


def _sessions(known: list[dict[str, Any]], document: Mapping[str, Any], part: str) -> dict[int, int]:
    """Append a part's sessions, each with its snapshot; returns their new numbers."""
    numbers = {}
    for place, sitting in enumerate(document["sittings"]):
        new = numbers[sitting["sitting"]] = len(known) + 1
        snapshot = (document.get("machine") or {}).get("before") if place == 0 else sitting.get("machine")
        own = {**sitting, "sitting": new, "machine": snapshot if new > 1 else None, "part": part}
        if isinstance(own.get("monitor"), dict) and own["monitor"].get("file"):
            own["monitor"] = {**own["monitor"], "file": monitor.file_name(new)}
        known.append(own)
    return numbers


def _take_test(
    whole: _Whole,
    name: str,
    part: Path,
    entry: Mapping[str, Any],
    measured: Sequence[Measurement],
    torn: int | None,
    sittings: Mapping[int, int],
) -> None:
    """Add the trials of one test of a part, and their files; `measured` has a row for each complete line."""
    trials = [m.trial for m in measured]
    test, source = entry["name"], part / entry["directory"]
    own = whole.entries.get(test)
    if own is None:
        own = whole.entries[test] = _entry(whole, entry)
    offset = whole.trials[test] - min(trials, default=0) if test in whole.trials else 0
    whole.trials[test] = max([whole.trials.get(test, 0), *(trial + offset + 1 for trial in trials)])

    def add(file: str, count: int | None, **numbers: Callable[[int], int]) -> None:
        lines = _whole_lines(source / file)[:count]
        known = whole.lines.setdefault(f"{own['directory']}/{file}", [])
        known += [renumbered(line, source / file, **numbers) for line in lines] if numbers else lines

    add("results.jsonl", len(trials), trial=lambda n: n + offset, sitting=lambda n: sittings[n])
    lines = whole.lines[f"{own['directory']}/results.jsonl"]
    for at, m in enumerate(measured, len(lines) - len(measured)):
        if m.kept and torn is not None and m.block == torn:
            lines[at] = _unpaired(lines[at])
    for file in ("blocks.jsonl", "hooks.log"):
        if (source / file).exists():
            add(file, None, **({"trial": lambda n: n + offset} if file == "blocks.jsonl" else {}))
    for log in sorted((source / "logs").glob("*")):
        match = _TRIAL_FIRST.fullmatch(log.name)
        named = f"{int(match[1]) + offset:04d}{match[2]}" if match else f"{name}-{log.name}"
        whole.copied[f"{own['directory']}/logs/{named}"] = log
    if entry.get("res") and (part / entry["res"]).exists():
        whole.copied.setdefault(own["res"], part / entry["res"])


def _unpaired(line: bytes) -> bytes:
    members = json.loads(line) | {"kept": False, "why": UNPAIRED}
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _entry(whole: _Whole, entry: Mapping[str, Any]) -> dict[str, Any]:
    others = list(whole.entries.values())
    own = {**entry, "directory": directory_name(entry["name"], [each["directory"] for each in others])}
    if entry.get("res"):
        taken = [each.get("res") for each in others]
        stem, number = str(entry["res"]).removesuffix(".res"), 2
        while own["res"] in taken:
            own["res"], number = f"{stem}-{number}.res", number + 1
    return own


def _whole_lines(path: Path) -> list[bytes]:
    """Complete lines with their ends, without a torn last one."""
    try:
        return [line + b"\n" for line in read_regular(path).split(b"\n")[:-1]]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def renumbered(line: bytes, path: Path, **numbers: Callable[[int], int]) -> bytes:
    """A line of JSON with some of its whole numbers replaced, and every other byte unchanged.

    Raises:
        InputError: it is no object with these members; `path` names its file.
    """
    try:
        members = orjson.loads(line)
        wanted = members | {name: new(members[name]) for name, new in numbers.items()}
    except EDITED as error:
        raise InputError(f"{path}: a line cannot be merged ({error}); was it edited?") from None
    if wanted == members:
        return line
    found = line
    for name in numbers:
        found = re.sub(
            rb'("%b"\s*:\s*)\d+(?![\d.eE])' % name.encode(), rb"\g<1>%d" % wanted[name], found, count=1
        )
    if orjson.loads(found) == wanted:
        return found
    # The first match was not the member itself: the parsed object is written.
    return json.dumps(wanted, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _replace(path: Path, text: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text)
