"""Whether a boot found something new, and whether it was one too many that did not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from etude.errors import InputError
from etude.testbed.boot.record import MOST_SEEN, Record, read_object


def progress(state: Path, results: Path) -> str:
    """How far an experiment has come, as a text: the position that its state tells, and the bytes of whole lines in
    all its results.jsonl.

    Raises:
        InputError: the state file is none.
    """
    document = read_object(state)
    if "format" not in document:
        raise InputError(f'{state}: is no state of an experiment: lacks "format"')
    position = document.get("position", "")
    size = sum(_whole_lines(file) for file in sorted(results.rglob("results.jsonl")))
    return f"{position}+{size}"


def counted(record: Record, found: str) -> Record:
    """The record with this boot counted: as the first, where it finds what no boot has found before."""
    # A script that goes to and fro between two states, neither of which was new, makes no progress either.
    fresh = found not in record.seen
    seen = [*record.seen, found][-MOST_SEEN:] if fresh else record.seen
    return replace(record, boots=1 if fresh else record.boots + 1, progress=found, seen=seen)


def too_many(record: Record) -> bool:
    """Whether this boot is one more than may find nothing new."""
    return record.boots > record.most_boots


def _whole_lines(file: Path) -> int:
    try:
        return file.read_bytes().rfind(b"\n") + 1
    except OSError:
        return 0
