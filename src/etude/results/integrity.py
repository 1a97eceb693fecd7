"""Checks of a test's rows for lost, repeated or mixed-up lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from etude.errors import InputError
from etude.results.model import Measurement


class Row(Protocol):
    """A line of a test's file; two are equal if all members are equal."""

    @property
    def test(self) -> str: ...
    @property
    def sitting(self) -> int: ...
    @property
    def trial(self) -> int: ...
    @property
    def rows(self) -> int | None: ...


def repeated_rows(
    file: Path, rows: Sequence[Row], test: Mapping[str, Any], sessions: Collection[int]
) -> list[int]:
    """Indices of repeated rows of a test's file, in order.

    test: its entry in experiment.json; sessions: the recorded session numbers.

    Raises:
        InputError: a row is of another test or of no recorded session, or a trial has too many or too few of them.
    """
    trials: dict[int, list[int]] = {}
    for number, row in enumerate(rows, 1):
        if row.test != test["name"]:
            raise InputError(
                f"{file}:{number}: is of test {row.test!r}, expected {test['name']!r}; was it copied or edited?"
            )
        if row.sitting not in sessions:
            raise InputError(
                f"{file}:{number}: is of session {row.sitting}, which is not in experiment.json; restore both "
                f"from one copy"
            )
        trials.setdefault(row.trial, []).append(number - 1)
    again: list[int] = []
    for trial, places in trials.items():
        found = [rows[place] for place in places]
        expected = found[0].rows or test.get("workers", 1)
        if len(found) == expected:
            continue
        repeated = [place for n, place in enumerate(places) if found[n] in found[:n]]
        if len(found) - len(repeated) != expected:
            raise InputError(
                f"{file}: lines of trial {trial}: {len(found)}, expected {expected}; restore it from a copy"
            )
        again += repeated
    return sorted(again)


def check_blocks(file: Path, rows: Sequence[Measurement], test: Mapping[str, Any]) -> None:
    """Refuse to resume from rows with impossible block numbers.

    A test has one included trial per block, so its block numbers cannot exceed its trial numbers. A/A pairs (role
    `again`) are not in each block.

    Raises:
        InputError: a block's number is larger than that of its trial, or two trials have it.
    """
    trials: dict[int, int] = {}
    for row in rows:
        if not row.kept or test.get("role") == "again":
            continue
        other = trials.setdefault(row.block, row.trial)
        if row.block > row.trial + 1 or other != row.trial:
            wrong = f", as of trial {other}" if other != row.trial else ", more than can have been made"
            raise InputError(
                f"{file}: the block of trial {row.trial} is {row.block}{wrong}; was it edited? Restore it from a copy"
            )


def has_ended(experiment: Mapping[str, Any]) -> bool:
    """True if its last session has recorded its end: it was not killed, and does not run."""
    return bool(experiment["sittings"]) and experiment["sittings"][-1].get("how_ended") is not None


def check_lines(file: Path, lines: int, test: Mapping[str, Any], *, cut: int = 0) -> None:
    """Refuse a file that has lost lines since the last session of its experiment ended.

    lines: number of its lines; cut: lines per trial, if the last trial was torn and is not included in `lines`.

    Raises:
        InputError: it has fewer than experiment.json records.
    """
    recorded = test.get("lines", 0)
    if lines + cut < recorded:
        raise InputError(
            f"{file}: holds {lines} of the {recorded} lines that experiment.json records; restore it from a copy "
            f"(or, if they were taken out on purpose, take `lines` of test {test['name']!r} out there, too)"
        )


def repeated_note(place: object, count: int) -> str:
    """The note on repeated lines."""
    return f"{place}: repeated lines, counted once: {count}"
