"""Cache functions of the engine: `etude-engine chill` and `etude-engine residency`, and their answers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from etude.errors import MachineRefuses
from etude.osutil.commands import run_to_end
from etude.program import engine_path


def engine_answer(*words: str) -> dict[str, Any]:
    """The JSON object that it answers with.

    Raises:
        MachineRefuses: it fails, with its reason.
    """
    found: dict[str, Any] = json.loads(_run(words))
    return found


def listing(paths: list[str], place: Path) -> None:
    """Write the list of the files below `paths`, in the format of `residency look`.

    Raises:
        MachineRefuses: a path is missing, or the list cannot be written.
    """
    try:
        with open(place, "wb") as out:
            _run(("residency", "list", *paths), out.fileno())
    except OSError as error:
        raise MachineRefuses(f"{place}: cannot be written: {error.strerror}") from None


class Watch:
    """`etude-engine residency watch`: started before caches are cooled, it also sees files whose names were evicted."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            (engine_path(), "residency", "watch", *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.works = bool(self._line())

    def look(self) -> dict[str, Any]:
        """Present residency; can be called once.

        Raises:
            MachineRefuses: it has ended.
        """
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
            found: dict[str, Any] = json.loads(self._line())
            return found
        except (OSError, ValueError):
            raise MachineRefuses("etude-engine residency watch: ended without an answer") from None

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def _run(words: tuple[str, ...], into: int | None = None) -> bytes:
    """Run the engine in a session of its own: Ctrl-C ends Étude, which ends its processes itself."""
    done = run_to_end((engine_path(), *words), into=into, apart=True)
    if done.status:
        raise MachineRefuses(done.why if done.errors else f"etude-engine {words[0]}: {done.why}")
    return done.output
