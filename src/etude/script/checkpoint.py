"""State files of scripts: readable, written atomically, and trusted only if nobody else could have written them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from etude import codec
from etude.codec import decoded, parsed
from etude.errors import InputError
from etude.results.regular import open_regular
from etude.results.writer import replace_json
from etude.script.program import Op, Program
from etude.script.state import State, reset_trial, to_data

FORMAT, VERSION = "etude-checkpoint", 3
MAX_BYTES = 256 << 20
STATE_FILE = "state.json"
"""The state of a script under way, in its results directory."""


@dataclass(frozen=True)
class Checkpoint:
    """A state with its script and results. `exact`: written by CHECKPOINT; else the trial in flight starts over."""

    script: codec.Word
    digest: codec.Word
    results: codec.Word
    state: State
    exact: bool
    library: list[str] = field(default_factory=list)
    boot_id: str = ""
    kept: dict[str, int] = field(default_factory=dict)
    """Included trials on disk when it was written, by test."""

    def results_directory(self, file: Path) -> Path:
        """The results directory of the state in `file`, to whose directory its path is relative: both can be moved or
        copied. Older states have an absolute path, which is ignored within a results directory."""
        beside = file.parent.resolve()
        if os.path.isabs(self.results) and file.name == STATE_FILE and (beside / "experiment.json").exists():
            return beside
        return Path(os.path.normpath(beside / self.results))


def save(path: Path, saved: Checkpoint, *, quick: bool = False) -> None:
    """Write a state file, readable and writable by its owner only; `quick`: without sync.

    Raises:
        MachineRefuses: it cannot be written.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "written": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "script": saved.script,
        "digest": saved.digest,
        "results": saved.results,
        "exact": saved.exact,
        "library": saved.library,
        "boot_id": saved.boot_id,
        "kept": saved.kept,
        "position": position(saved.state),
        "state": to_data(saved.state),
    }
    replace_json(path, document, mode=0o600, sync=not quick)


def position(state: State) -> str:
    """Digest of a script's position, equal after a boot without progress. Output of the trial in flight is excluded: it
    differs each time."""
    data = to_data(state)
    parties = [party["test"] for party in (data["interleave"] or {}).get("parties", ())]
    for test in filter(None, [*parties, data["test"]]):
        for name in ("rows", "blocks", "cooled", "booted", "postcleanup", "prepared"):
            del test[name]
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def is_state(path: Path) -> bool:
    """True if a file looks like a state rather than a script: it begins like JSON. A pipe, readable only once,
    is no state."""
    if not path.is_file():
        return False
    try:
        with open_regular(path) as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def load(path: Path) -> Checkpoint:
    """Read a state file.

    Raises:
        InputError: it is missing, another user's, writable by others, no state, of a newer version, or damaged.
    """
    document = _read(path)
    if document.get("format") != FORMAT:
        raise InputError(
            f'{path}: is no state of a script: expected "format": "{FORMAT}", as CHECKPOINT writes it'
        )
    if document.get("version") != VERSION:
        raise InputError(
            f"{path}: version {document.get('version')} of the state format; this Étude reads {VERSION}: "
            "resume with the Étude that wrote it, or run the script from its beginning"
        )
    known = {"kept": {}} | {
        name: document[name] for name in Checkpoint.__dataclass_fields__ if name in document
    }
    saved = decoded(Checkpoint, known, str(path), every=True, only=True)
    if not saved.exact:
        reset_trial(saved.state)
    return saved


def check_unchanged(path: Path, saved: Checkpoint, program: Program) -> None:
    """Refuse to resume with a changed script.

    Raises:
        InputError: it has changed.
    """
    if program.digest != saved.digest or not state_fits(program, saved.state):
        raise InputError(
            f"{path}: {saved.script}, or a file that it includes, has changed since this state was written; "
            "put it back as it was, or run it from its beginning"
        )


def state_fits(program: Program, state: State) -> bool:
    """True if the loops and the test under way enclose the instruction counter."""
    at, instructions = state.counter, program.instructions
    if not 0 <= at <= len(instructions):
        return False

    def around(*ops: Op) -> list[int]:
        ends = {
            Op.FOR: 0,
            Op.FOREACH: 0,
            Op.TEST: 1,
            Op.INTERLEAVE: 1,
        }  # 1 if the target still belongs to it
        return [
            i
            for i, found in enumerate(instructions)
            if found.op in ops and i < at < found.target + ends[found.op]
        ]

    loops = around(Op.FOR, Op.FOREACH)
    running, together = state.running, state.interleave
    if together is not None and running is not None:  # loops around the tests of an INTERLEAVE have ended
        loops = [i for i in loops if not together.start < i < running.begin]
    return (
        loops == [loop.start for loop in state.loops]
        and around(Op.TEST) == ([] if running is None else [running.begin])
        and around(Op.INTERLEAVE) == ([] if together is None else [together.start])
    )


def _read(path: Path) -> Mapping[str, Any]:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise InputError(f"{path}: no such state file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    with open(file, "rb") as stream:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path}: is no regular file; expected a state that CHECKPOINT wrote")
        if found.st_uid != os.geteuid():
            raise InputError(f"{path}: belongs to user {found.st_uid}, not to you ({os.geteuid()}): refused")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise InputError(
                f"{path}: others may write to it: refused; chmod go-w it if you trust what it holds"
            )
        data = stream.read(MAX_BYTES)
    document: Any = parsed(data, str(path))
    if not isinstance(document, dict):
        raise InputError(f"{path}: is no state of a script: expected a JSON object")
    return document
