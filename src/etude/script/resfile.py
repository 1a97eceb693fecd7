"""Auto-pilot's results files beside Étude's own: one a test, the snapshot first, then what each trial measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from etude.results.blocks import Block
from etude.results.model import Measurement
from etude.results.res import format_block, format_measurement, format_snapshot
from etude.results.writer import refused


def file_name(test: str, taken: Sequence[str | None]) -> str:
    """NAME.res as the papers show it, colons and all; only what no file name can hold is replaced."""
    stem = test.replace("/", "-").replace("\0", "").lstrip(".")[:200] or "test"
    name, number = f"{stem}.res", 2
    while name in taken:
        name, number = f"{stem}-{number}.res", number + 1
    return name


def begin(path: Path, machine: Mapping[str, Any]) -> None:
    """Begin a file with the snapshot of the machine.

    Raises:
        MachineRefuses: it cannot be written.
    """
    _append(path, format_snapshot(machine))


def append(path: Path, measurements: Sequence[Measurement], blocks: Sequence[Block]) -> None:
    """Add what one trial measured, then its other blocks.

    Raises:
        MachineRefuses: it cannot be written.
    """
    _append(path, "".join([*map(format_measurement, measurements), *map(format_block, blocks)]))


def _append(path: Path, text: str) -> None:
    try:
        with open(path, "ab") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise refused(path, error) from error
