"""Whatever commands can change: a virtual machine's memory, the threads of a server, a switch."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from etude.errors import InputError, MachineRefuses
from etude.testbed.resources.ledger import Ledger
from etude.testbed.resources.resource import Setting
from etude.testbed.resources.tools import tool

PATIENCE_S = 600.0
_NAME = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Hook:
    """Commands of the shell; `{level}`, and `{volume}` and the like, stand in them as one word each."""

    name: ClassVar[str] = "hook"
    confines: ClassVar[bool] = False

    command: str
    undo: str = ""
    """Run also where `command` failed, and perhaps twice: it must be harmless then."""
    test: str = ""
    """Fails where it cannot work."""
    words: str = ""
    """What stands before commands, as `ssh guest`."""
    directory: Path = Path()
    """Where commands are run."""

    def accept(self, level: str) -> None:
        """Raises InputError where no level can be."""
        if "\0" in level:
            raise InputError(f"level {level!r}: expected no NUL in it")

    def check(self) -> str | None:
        """What the test says."""
        try:
            if self.test:
                self._run(self.test)
        except MachineRefuses as error:
            return str(error)
        return None

    def apply(self, level: str, so_far: Setting, ledger: Ledger) -> Setting:
        """Undoing first, into the ledger."""
        values = {**so_far.values, "level": level}
        if self.undo:
            ledger.before("run", command=filled(self.undo, values), directory=str(self.directory.absolute()))
        self._run(filled(self.command, values))
        return Setting(words=tuple(shlex.split(filled(self.words, values))))

    def _run(self, command: str) -> None:
        tool("sh", "-c", command, directory=str(self.directory.absolute()), patience_s=PATIENCE_S)


def filled(command: str, values: dict[str, str]) -> str:
    """Each `{name}` that is known, as one word of the shell; other braces stay, as the shell has uses for them."""
    return _NAME.sub(lambda match: shlex.quote(values[match[1]]) if match[1] in values else match[0], command)
