"""What undoes each change, on disk before the change is made: also what a killed process left can be undone."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from etude.errors import EtudeError, InputError, MachineRefuses
from etude.testbed.resources.tools import tool, within
from etude.testbed.resources.undoing import UNDO

FILE = "resources.json"
NEW = "resources.new"
LOCK = "resources.lock"
VERSION = 1

Value = str | list[str]


@dataclass
class Ledger:
    """The undoing steps of one directory, oldest first, while this process holds it."""

    directory: Path
    steps: list[dict[str, Value]]
    lock: int
    """The file whose lock says that this holder is alive."""
    name: str = field(default_factory=lambda: f"etude-held-{secrets.token_hex(4)}")
    """Of what is made for this holder alone, such as its cgroups: nobody else has it."""

    def before(self, undo: str, **members: Value) -> None:
        """Call before a change, with the step that undoes it. Steps are harmless where the change was not made."""
        assert undo in UNDO
        self._keep([*self.steps, {"undo": undo, **members}])

    def tool(self, *words: str) -> str:
        """Run a tool that makes a change. It has the lock as well: should this process be killed meanwhile, nobody
        undoes before the tool is done."""
        return tool(*words, holding=(self.lock,))

    def undo(self) -> None:
        """Undo all, newest first. A step that fails is kept, and those before it are tried all the same.

        Raises:
            MachineRefuses: with the first that failed.
        """
        failed: list[tuple[dict[str, Value], str]] = []
        for step in reversed(self.steps):
            members: Mapping[str, Value] = {key: value for key, value in step.items() if key != "undo"}
            try:
                UNDO[str(step["undo"])](**members)
            except (OSError, EtudeError, TypeError) as error:  # TypeError: not the members of such a step
                failed.append((step, str(error)))
                continue
            with suppress(MachineRefuses):  # no space: done twice is no harm
                self._keep([other for other in self.steps if other is not step])
        if failed:
            step, why = failed[0]
            raise MachineRefuses(
                f"{step['undo']} could not be done: {why}; {len(failed)} steps are left in {self.directory / FILE}"
            )

    def _keep(self, steps: list[dict[str, Value]]) -> None:
        path = self.directory / FILE
        try:
            if steps:
                _write(path, json.dumps({"version": VERSION, "steps": steps}, indent=1) + "\n")
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise MachineRefuses(f"{path} cannot be written: {error.strerror}") from None
        self.steps = steps


@contextmanager
def held(directory: Path, patience_s: float = 5.0) -> Iterator[Ledger]:
    """The ledger of a directory, with what others left in it; one process at a time has it.

    The lock is the kernel's, which lets it go when the process ends, however that ends. The patience is for tools
    that a killed process has left.

    Raises:
        MachineRefuses: while another process has it.
        InputError: where the file is not one of these.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        opened = (directory / LOCK).open("w")
    except OSError as error:
        raise MachineRefuses(f"{directory}: nothing can be kept there: {error.strerror}") from None
    with opened as lock:
        if not within(patience_s, lambda: _locked(lock.fileno())):
            raise MachineRefuses(f"{directory}: another process holds resources by it; wait for its end")
        (directory / NEW).unlink(missing_ok=True)  # half written when its process was killed
        yield Ledger(directory.absolute(), _read(directory / FILE), lock.fileno())


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(path: Path) -> list[dict[str, Value]]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError:
        raise InputError(f"{path}: expected JSON written by Étude") from None
    steps = read.get("steps") if isinstance(read, dict) and read.get("version") == VERSION else None
    if not isinstance(steps, list) or not all(_is_step(step) for step in steps):
        raise InputError(f"{path}: expected steps of version {VERSION}, as Étude writes them")
    return steps


def _is_step(step: object) -> bool:
    return isinstance(step, dict) and step.get("undo") in UNDO


def _write(path: Path, text: str) -> None:
    """All of it or nothing, and on the disk."""
    new = path.with_name(NEW)
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
