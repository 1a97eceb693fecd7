"""Named blocks of text: output of hooks and probes for a trial in addition to metrics (docs/reference/formats.md,
"Blocks")."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from etude.codec import decoded, parsed
from etude.errors import InputError
from etude.results.regular import read_regular

DISK_BLOCKS = ("aging", "filling", "preconditioning")
"""Names of the blocks of `etude-engine age`, `fill` and `precondition`: the prepared state of a disk."""


@dataclass(frozen=True)
class Block:
    """A header's word and the lines below it, without line ends. Text before any header has no name."""

    name: str
    lines: tuple[str, ...]
    line: int = field(default=0, compare=False)
    """Line number of its start in the text, from 1."""
    cut: bool = field(default=False, compare=False)
    """True if its last line has no line end: it may be torn."""


class TrialBlock(NamedTuple):
    """A block of one trial; `worker` is None for a block of the whole trial."""

    trial: int
    worker: int | None
    block: Block


def to_line(kept: TrialBlock) -> dict[str, Any]:
    """The JSON object of a block."""
    return {
        "trial": kept.trial,
        "worker": kept.worker,
        "name": kept.block.name,
        "lines": list(kept.block.lines),
    }


def read_blocks(path: Path) -> tuple[tuple[TrialBlock, ...], bool]:
    """The blocks of a `blocks.jsonl`, none without a file, and True if its last line was complete.

    Raises:
        InputError: a line before the last cannot be read.
    """
    try:
        lines = read_regular(path).split(b"\n")
    except FileNotFoundError:
        return (), True
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    last = lines.pop()
    return tuple(_read(path, number, line) for number, line in enumerate(lines, 1)), last == b""


def _read(path: Path, number: int, line: bytes) -> TrialBlock:
    where = f"{path}:{number}"
    found = decoded(_Line, parsed(line, where), where)
    return TrialBlock(found.trial, found.worker, Block(found.name, found.lines))


@dataclass(frozen=True)
class _Line:
    trial: int
    worker: int | None
    name: str
    lines: tuple[str, ...]


def members_of(block: Block) -> dict[str, Any]:
    """`NAME = VALUE` of each line, the value as JSON if possible, else as text. Other lines are ignored."""
    found: dict[str, Any] = {}
    for line in block.lines:
        name, equals, value = line.partition(" = ")
        if equals and name.strip():
            found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, bool | int | float | str) or found is None else text
