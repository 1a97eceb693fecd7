"""Directory and programs of an experiment's first session: it is resumed only there and with the same programs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.machine import snapshot
from etude.machine.snapshot import Command
from etude.machine.snapshot.programs import describe_again
from etude.results.reader import load_results
from etude.results.results import machine_member

Part = Mapping[str, Any]

CONTENT = ("bytes", "sha256", "build_id")
"""Members of a snapshot that identify a program's content; a large one has no digest."""


@contextmanager
def original_directory(path: Path, document: Part) -> Iterator[Path]:
    """Makes the directory in which an experiment was started the working directory within the block.

    path: its results directory; yields its path from there. Raises InputError: that directory is gone, or cannot be
    entered.
    """
    before, begun = _here(), _original_directory(document)
    if begun is None or begun == before:
        yield path
        return
    there = path.resolve()
    try:
        os.chdir(begun)
    except OSError as error:
        raise InputError(
            f"{path}: was begun in {begun}, where its commands run: {error.strerror}; put that directory back, or "
            "begin a new experiment"
        ) from None
    try:
        yield there
    finally:
        if before is not None:
            os.chdir(before)


def check_programs(path: Path, document: Part, commands: Sequence[Command]) -> None:
    """Refuse to resume an experiment if one of its programs has changed.

    commands: those of its plan. The commands of a script are known when they are run; here the files of its programs
    are checked. Raises InputError: same as `check_same`.
    """
    if _is_elsewhere(document):
        return
    known = [programs for _, programs in _recorded(document)]
    now = snapshot.programs(Path("/"), commands, os.environ)
    if document["plan"].get("kind") == "script":
        now = {name: describe_again(found) for each in known for name, found in each.items() if found}
    check_same(path, document, now, len(known))


def check_same(path: Path, document: Part, now: Part, sessions: int) -> None:
    """Refuse programs that differ from those of the same names in the first `sessions` sessions.

    Programs that were missing, then or now, are not compared. Nor are files that the experiment itself makes: those
    that changed while a session with hooks ran. Raises InputError: a name leads to another file, or its content
    differs.
    """
    recorded = _recorded(document)[:sessions]
    for name, found in now.items():
        if not found:
            continue
        of_name = [programs.get(key) for _, programs in recorded for key in (name, found["file"])]
        known = [then for then in of_name if then]
        if not known or any(_same(then, found) for then in known):
            continue
        if _makes_programs(document["plan"]) and _changed_in_session(path, document, found["file"], sessions):
            continue
        then = known[0]
        if then.get("file") != found["file"]:
            differs = f"is {found['file']} now, was {then.get('file')}: restore PATH and links"
        else:
            differs = f"has changed since it was measured ({found['file']}): put it back as it was"
        raise InputError(f"{path}: program {name} {differs}, or begin a new experiment")


def _here() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _same(then: Part, now: Part) -> bool:
    return all(then[name] == now[name] for name in ("file", *CONTENT) if name in then)


def _original_directory(document: Part) -> str | None:
    """Working directory of the first session; None if unknown, or on another machine."""
    place = machine_member(document, "directory", "path")
    return place if isinstance(place, str) and not _is_elsewhere(document) else None


def _is_elsewhere(document: Part) -> bool:
    """True if the engine was copied to a node, whose snapshots do not describe this machine."""
    return any("copied" in session for session in document["sittings"])


def _recorded(document: Part) -> list[tuple[Part, Part]]:
    """The sessions, each with its programs by name."""
    found = []
    for place, session in enumerate(document["sittings"]):
        machine = session.get("machine") if place else machine_member(document)
        found.append((session, _map(_map(machine).get("programs"))))
    return found


def _makes_programs(plan: Part) -> bool:
    """True if it runs shell lines besides the measured commands."""
    hooks = ("setup", "prepare", "conclude", "cleanup")
    return plan.get("kind") == "script" or any(test.get(hook) for test in plan["tests"] for hook in hooks)


def _changed_in_session(path: Path, document: Part, file: str, ended: int) -> bool:
    """True if the file last changed between the start of a session and its last trial or its end.

    ended: number of ended sessions; a later one is under way.
    """
    try:
        changed_s = os.stat(file).st_ctime
    except OSError:
        return False
    last_s: dict[int, float] = {}
    for rows in load_results(path).measurements.values():
        for row in rows:
            last_s[row.sitting] = max(last_s.get(row.sitting, -math.inf), _seconds(row.start))
    for place, session in enumerate(document["sittings"]):
        end_s = max(_seconds(session.get("end")), last_s.get(session["sitting"], -math.inf))
        if _seconds(session.get("start"), math.inf) <= changed_s and (changed_s <= end_s or place >= ended):
            return True
    return False


def _seconds(moment: object, unknown: float = -math.inf) -> float:
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        return unknown


def _map(value: Any) -> Part:
    return value if isinstance(value, Mapping) else {}
