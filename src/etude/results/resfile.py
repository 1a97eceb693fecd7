"""Reads a whole file in Auto-pilot's format as results of an experiment with one test."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.model import Measurement, from_line
from etude.results.regular import read_regular
from etude.results.res import MEASUREMENT, Block, fields, parse_blocks, row_of_block
from etude.results.results import FORMAT, VERSION, Results
from etude.results.writer import directory_name

INCOMPLETE = "incomplete"
"""Reason of exclusion of a trial that lacks a worker or a usable block."""


def read_res(path: str | os.PathLike[str]) -> Results:
    """Read a `.res` file; its test has the name of the file.

    An unusable block is left out and listed in the document's `left_out` (`line`, `reason`); its trial, and any trial
    that lacks a worker, is excluded.

    Raises:
        InputError: it cannot be read, or holds no block at all.
    """
    file = Path(path)
    blocks = parse_blocks(_text(file))
    if not any(block.name for block in blocks):
        raise InputError(
            f"{file}: is no results file: expected blocks that begin with a line as [measurement]"
        )
    rows, left_out = _Reading(), list[dict[str, Any]]()
    for block in blocks:
        if block.name == MEASUREMENT:
            reason = rows.add(block)
            left_out += [{"line": block.line, "reason": reason}] if reason else []
    name = file.stem or file.name
    place = {"test": name, "host": "", "boot_id": ""} | _machine(blocks)
    measurements = tuple(from_line(row | place) for row in rows.finished())
    document = _document(name, measurements, place, left_out)
    return Results(file, document, {name: measurements}, (str(file),) if left_out else ())


def _text(file: Path) -> str:
    try:
        return read_regular(file).decode("utf-8", "replace")
    except FileNotFoundError:
        raise InputError(f"{file}: no results here: there is no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _machine(blocks: Sequence[Block]) -> dict[str, str]:
    """Host and boot, if the file has a snapshot of ours."""
    system = next((fields(block) for block in blocks if block.name == "system"), {})
    ours = {"host": system.get("hostname"), "boot_id": system.get("boot_id")}
    return {name: value for name, value in ours.items() if value}


@dataclass
class _Reading:
    """The rows so far. An epoch that is smaller than its predecessor starts another run, appended to the file."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    sitting: int = 1
    before: int = 0
    """Number of trials of earlier runs, added to an epoch."""
    epoch: int = 0
    seen: set[tuple[int, int]] = field(default_factory=set)
    spoilt: set[int] = field(default_factory=set)
    doubtful: set[int] = field(default_factory=set)
    """Trials that may have had the block that is left out: it does not name its trial."""

    def add(self, block: Block) -> str | None:
        """Add a block; returns the reason if it is left out."""
        row = row_of_block(block)
        if isinstance(row, str):
            self._spoil(fields(block).get("epoch", ""))
            return row
        epoch, worker = self.epoch + 1 if row["trial"] is None else row["trial"], row["worker"]
        if epoch < self.epoch and (epoch, worker) in self.seen:
            self.sitting += 1
            self.before = max(row["trial"] for row in self.rows)
            self.seen.clear()
        self.epoch = epoch
        self.seen.add((epoch, worker))
        self.rows.append(row | {"trial": self.before + epoch, "sitting": self.sitting})
        return None

    def _spoil(self, epoch: str) -> None:
        if epoch.strip().isascii() and epoch.strip().isdigit() and len(epoch) < 19:
            self.spoilt.add(self.before + int(epoch))
        else:
            self.doubtful.add(self.before + self.epoch)

    def finished(self) -> list[dict[str, Any]]:
        """The rows as complete measurements, except for test and machine."""
        made = Counter(row["trial"] for row in self.rows)
        workers = Counter(trial for trial, _ in {(row["trial"], row["worker"]) for row in self.rows})
        broken = self.spoilt | {t for t in workers if workers[t] < max(workers.values())}
        broken |= {t for t in self.doubtful if made[t] < max(made.values(), default=0)}
        aside = {row["trial"]: row["why"] for row in reversed(self.rows) if not row["kept"]}
        aside = dict.fromkeys(broken, INCOMPLETE) | aside
        return [
            row
            | {"block": row["trial"], "order": 0}
            | {"kept": row["trial"] not in aside, "why": aside.get(row["trial"])}
            for row in self.rows
        ]


def _document(
    name: str,
    measurements: Sequence[Measurement],
    place: Mapping[str, str],
    left_out: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """An `experiment.json` for the file."""
    test = {
        "name": name,
        "directory": directory_name(name, ()),
        "role": "test",
        "parameters": {},
        "workers": 1 + max((m.worker for m in measurements), default=0),
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "verb": "res",
        "command_line": [],
        "plan": {"kind": "res", "primary": "elapsed", "check_output": "first"},
        "tests": [test],
        "sittings": [
            {
                "sitting": sitting,
                "host": place["host"],
                "boot_id": place["boot_id"],
                "start": None,
                "end": None,
                "how_ended": "complete",
            }
            for sitting in sorted({m.sitting for m in measurements} | {1})
        ],
        "left_out": list(left_out),
    }
