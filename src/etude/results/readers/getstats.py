"""Output of `getstats --dump`: tables with aligned columns, after the join of threads or before."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from etude.errors import InputError
from etude.results.delimited import Table as Cells
from etude.results.readers.csv_table import add_cells
from etude.results.readers.source import read_lines
from etude.results.table import Rows, Table

NAME = "getstats"

_MAX_NAMES = 1000


def detect(path: Path, head: bytes) -> bool:
    lines = head.decode("utf-8", "replace").split("\n")
    return any(_names(line) for line in lines[:-1][:1000])


def _names(line: str) -> list[str]:
    if len(line) > 20_000 or "epoch" not in line or "elapsed" not in line or "," in line or "\t" in line:
        return []
    names = line.split()
    good = {"epoch", "elapsed"} <= set(names) and len(set(names)) == len(names) <= _MAX_NAMES
    return names if good and all(re.fullmatch(r"[^\W\d][\w.:%+-]*", name) for name in names) else []


@dataclass
class _Part:
    test: str
    heading: str
    names: list[str]
    rows: list[tuple[str, ...]] = field(default_factory=list)


def read(path: Path) -> Table:
    rows = Rows(path)
    lines, cut = read_lines(path)
    if cut:
        rows.warn("a last line that was cut short is left out")
    parts = _parts(rows, lines)
    if not parts:
        raise InputError(f"{path}: is no dump of getstats: expected columns epoch and elapsed")
    for part in parts:
        if part.rows:
            named = rows.test if part.test == "" else part.test
            tested = "test" in part.names
            header = tuple(part.names) if tested else ("test", *part.names)
            add_cells(rows, Cells(header, tuple(row if tested else (named, *row) for row in part.rows)))
    return rows.table()


def _parts(rows: Rows, lines: list[str]) -> list[_Part]:
    parts, before, inside = list[_Part](), "", False
    for line in lines:
        names = _names(line)
        if names:
            parts.append(_Part(before.strip(), line, names))
            inside = True
        elif not line.strip():
            inside = False
        elif inside:
            row = _cells(parts[-1], line)
            if row is None:
                rows.warn("a row that does not fit its heading is left out")
            else:
                parts[-1].rows.append(row)
        before = "" if inside else line
    return parts


def _cells(part: _Part, line: str) -> tuple[str, ...] | None:
    """Cells end at the column of their heading's end: their text may contain blanks."""
    words = tuple(line.split())
    if len(words) == len(part.names) and "command" not in part.names:
        return words
    ends = [match.end() for match in re.finditer(r"\S+", part.heading)]
    first = re.match(r"\s*\S+", line)
    if first is None or len(ends) < 2 or first.end() > ends[1] or len(line) > ends[-1]:
        return None
    bounds = [first.end(), *ends[1:]]
    return (first[0].strip(), *(line[a:b].strip() for a, b in pairwise(bounds)))
