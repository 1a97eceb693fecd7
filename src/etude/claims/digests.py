"""Digests of all that an experiment runs: programs, their shared libraries and stated inputs, by digest."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from etude.claims.claims_file import Experiment
from etude.errors import InputError
from etude.machine.snapshot.programs import HERE, Command, describe, programs, read_elf

MAX_BYTES = 1 << 30
"""Largest input that is digested."""
NOT_MADE = ""
"""Digest of a program that a set-up has yet to build."""
_PATIENCE_S = 10.0


def digests_of(experiment: Experiment) -> dict[str, str]:
    """SHA-256 of each file by its absolute path, or for a program that is not digested its build id, or its size.

    NOT_MADE for a program that the set-up of the experiment has yet to build.

    Raises:
        InputError: an input cannot be read.
    """
    found: dict[str, str] = {}
    commands = [Command(test.command, directory=str(experiment.place)) for test in experiment.tests()]
    if experiment.kind == "commands":
        for name, program in programs(HERE, commands, os.environ).items():
            if program is None and experiment.makes_programs and "/" in name:
                found[os.path.abspath(experiment.place / name)] = NOT_MADE
            if program is not None:
                found[program["file"]] = _identity(program)
                found |= {
                    path: _identity(each)
                    for path in _libraries(program["file"])
                    if (each := describe(HERE, path, MAX_BYTES))
                }
    return found | input_digests(experiment)


def input_digests(experiment: Experiment) -> dict[str, str]:
    """SHA-256 of each input of an experiment, by its absolute path. Raises InputError: one cannot be read."""
    found: dict[str, str] = {}
    for path in (*experiment.inputs, *([experiment.file] if experiment.file else [])):
        found |= dict(digests_below(Path(os.path.abspath(path))))
    return found


def changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Files that are in both with different content, or in one only; without what was made since."""
    made = NOT_MADE in then.values()
    paths = {*then, *(() if made else now)}
    return sorted(path for path in paths if then.get(path) not in (now.get(path), NOT_MADE))


def _identity(program: Mapping[str, object]) -> str:
    return str(program.get("sha256") or program.get("build_id") or f"{program.get('bytes')} bytes")


def digests_below(path: Path) -> Iterator[tuple[str, str]]:
    """Path and SHA-256 of a file, or of all files below a directory. Raises InputError: it cannot be read."""
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            if each.is_file():
                yield from digests_below(each)
        return
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is no file and no directory: expected an input of the claims")
    try:
        with open(path, "rb") as file:
            yield str(path), hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; it is an input of the claims") from None


def _libraries(program: str) -> list[str]:
    """Paths of the shared libraries of a program, by its own loader; none of a static one."""
    found = describe(HERE, program, MAX_BYTES)
    loader = _loader(program) if found is not None else None
    if loader is None:
        return []
    try:
        told = subprocess.run(
            [loader, "--list", program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    words = (line.partition("=>")[2].split() for line in told.stdout.splitlines())
    return [each[0] for each in words if each and each[0].startswith("/")]


def _loader(program: str) -> str | None:
    try:
        file = os.open(program, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        elf = read_elf(file)
        return elf.loader if elf is not None else None
    finally:
        os.close(file)
