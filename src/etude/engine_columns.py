"""Columns of results and traces: arrays that the engine writes and Python maps without a copy."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any

import orjson

from etude.errors import InputError, MachineRefuses
from etude.limits import limit_reached
from etude.osutil.commands import run_to_end
from etude.program import engine_path

Index = dict[str, Any]
"""Names and offsets of the columns, as in docs/reference/formats.md and docs/reference/trace-format.md under
"Columns"."""


def engine_columns(
    words: Sequence[str], magic: bytes, version: int, what: str, given: bytes = b""
) -> tuple[Index, mmap.mmap]:
    """The columns that `etude-engine WORDS` writes: their index, and all bytes. `given`: its input; `what`: its name.

    Raises:
        InputError: the engine's own line on an invalid input.
        MachineRefuses: the engine cannot be run, failed, or writes another version.
    """
    program = engine_path()
    out = os.memfd_create("etude-columns")
    try:
        done = run_to_end([program, *words], given=given, into=out)
        said = done.errors.decode("utf-8", "replace").strip()
        if done.status == InputError.exit_code:
            raise InputError(said)
        if done.status:
            why = said.partition("\n")[0] or f"ended with {done.status}"
            raise MachineRefuses(f"{program}: cannot read {what}: {why}")
        buffer = mmap.mmap(out, 0, prot=mmap.PROT_READ)
    except OSError as error:
        advice = limit_reached(error.errno) or "reinstall Étude"
        raise MachineRefuses(f"{program}: cannot be run: {error.strerror}; {advice}") from None
    finally:
        os.close(out)
    if buffer[:8] != magic or int.from_bytes(buffer[8:12], "little") != version:
        raise MachineRefuses(f"{program}: writes other columns of {what} than are read here; reinstall Étude")
    at, length = (int.from_bytes(buffer[place : place + 8], "little") for place in (16, 24))
    index: Index = orjson.loads(buffer[at : at + length])
    return index, buffer
