"""Auto-pilot's results files beside Étude's own: one per test, the snapshot first, then the measurements
of each trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from etude.results.blocks import Block
from etude.results.model import Measurement
from etude.results.res import (
    MEASUREMENT,
    format_block,
    format_measurement,
    format_snapshot,
    parse_blocks,
    row_of_block,
)
from etude.results.writer import write_error


def file_name(test: str, taken: Sequence[str | None]) -> str:
    """NAME.res as in the papers, with colons; only characters that no file name can contain are replaced."""
    stem = test.replace("/", "-").replace("\0", "").lstrip(".")[:200] or "test"
    name, number = f"{stem}.res", 2
    while name in taken:
        name, number = f"{stem}-{number}.res", number + 1
    return name


class ResFiles:
    """The files of one results directory; each is open while its test runs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, BinaryIO] = {}

    def begin(self, name: str, machine: Mapping[str, Any]) -> None:
        """Begin a file with the snapshot of the machine.

        Raises:
            MachineRefuses: it cannot be written.
        """
        self._write(name, format_snapshot(machine))

    def complete(self, name: str, measurements: Sequence[Measurement]) -> None:
        """Add missing blocks of these measurements: a killed session may have written rows without their blocks.

        Raises:
            MachineRefuses: it cannot be written.
        """
        path = self._directory / name
        text = path.read_text("utf-8", "replace") if path.exists() else ""
        rows = (row_of_block(block) for block in parse_blocks(text) if block.name == MEASUREMENT)
        there = Counter(row["trial"] for row in rows if not isinstance(row, str))
        missing = []
        for each in measurements:
            there[each.trial] -= 1
            if there[each.trial] < 0:
                missing.append(each)
        if missing:
            end = "" if text.endswith("\n") else "\n"
            self._write(name, end + "".join(map(format_measurement, missing)))

    def append(self, name: str, measurements: Sequence[Measurement], blocks: Sequence[Block]) -> None:
        """Add the measurements of one trial, then its other blocks.

        Raises:
            MachineRefuses: it cannot be written.
        """
        self._write(name, "".join([*map(format_measurement, measurements), *map(format_block, blocks)]))

    def end(self, name: str | None) -> None:
        """Close the file at the end of its test."""
        file = self._files.pop(name or "", None)
        if file is not None:
            file.close()

    def close(self) -> None:
        """Close the files of unfinished tests."""
        for name in list(self._files):
            self.end(name)

    def _write(self, name: str, text: str) -> None:
        path = self._directory / name
        try:
            if name not in self._files:
                self._files[name] = open(path, "ab", buffering=0)  # noqa: SIM115
            self._files[name].write(text.encode("utf-8", "replace"))
        except OSError as error:
            raise write_error(path, error) from error
