"""What the engine does about caches: `etude-engine chill` and `etude-engine residency`, and their answers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from etude.errors import MachineRefuses
from etude.program import engine_path


def answer(*words: str) -> dict[str, Any]:
    """The JSON object that it answers with.

    Raises:
        MachineRefuses: it says why it cannot.
    """
    found: dict[str, Any] = json.loads(_run(words, subprocess.PIPE))
    return found


def listing(paths: list[str], place: Path) -> None:
    """Write the list of the files below `paths`, as `residency look` reads it.

    Raises:
        MachineRefuses: one is not there, or the list cannot be written.
    """
    try:
        with open(place, "wb") as out:
            _run(("residency", "list", *paths), out)
    except OSError as error:
        raise MachineRefuses(f"{place}: cannot be written: {error.strerror}") from None


def _run(words: tuple[str, ...], out: Any) -> bytes:
    """In a session of its own: Ctrl-C ends Étude, which ends what it does itself."""
    done = subprocess.run(
        (engine_path(), *words),
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.PIPE,
        start_new_session=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise MachineRefuses(said[-1] if said else f"etude-engine {words[0]}: exit status {done.returncode}")
    return done.stdout or b""
