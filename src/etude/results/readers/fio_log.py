"""fio's logs (`--write_lat_log`, `--write_bw_log`, `--write_iops_log`): a line an operation, or a mean of some time.

What a value is stands in the name of the file alone: `NAME_clat.1.log`.
"""

from __future__ import annotations

import re
from pathlib import Path

from etude.errors import InputError
from etude.results.readers.rows import Quantity, Rows
from etude.results.readers.source import number_in, read_lines
from etude.results.table import Table
from etude.units.parsing import KIBIBYTE, MICROSECOND, NANOSECOND, PER_SECOND, Unit

_LINE = r"[0-9]+, [0-9]+, [012], [0-9]+(?:, (?:[0-9]+|0x[0-9a-f]+)){0,4}"
_LINES = re.compile(rf"(?:{_LINE}\n)+".encode())
_FIELDS = re.compile(_LINE)
_NAME = re.compile(r"(?P<test>.*)_(?P<what>slat|clat|lat|bw|iops)(?:\.(?P<job>[0-9]{1,9}))?\.log")
_DIRECTIONS = ("read", "write", "trim")
_METRICS = {"slat": "submission", "clat": "completion", "lat": "elapsed", "bw": "throughput", "iops": "iops"}
_UNITS: dict[str, Unit] = {"bw": KIBIBYTE._replace(base="B/s"), "iops": PER_SECOND}


def is_log(head: bytes) -> bool:
    """Whether a file that begins so is one."""
    return _LINES.fullmatch(head[: head.rfind(b"\n") + 1]) is not None


def read_log(path: Path) -> Table:
    """A row a line. Reads, writes and trims are tests of their own; the number in the file's name is the worker.

    Raises:
        InputError: the name does not say what the values are.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise InputError(
            f"{path}: is a log of fio, whose name has to say what its values are: expected a name that ends in "
            "_lat.log, _clat.log, _slat.log, _bw.log or _iops.log, with a number before .log or not"
        )
    rows, what, job = Rows(path), match["what"], int(match["job"] or 1)
    lines, cut = read_lines(path)
    for line in lines:
        if not _FIELDS.fullmatch(line):
            rows.warn("a line that is no entry of a log is left out")
            continue
        _, value, direction, size, *rest = line.split(", ")
        # Of nanoseconds from fio 3 on, which also always writes an offset.
        unit = _UNITS.get(what) or (NANOSECOND if rest else MICROSECOND)
        rows.add(
            match["test"] or rows.test,
            {_METRICS[what]: Quantity(number_in(value), unit)},
            worker=max(0, job - 1),
            parameters={"direction": _DIRECTIONS[int(direction)]},
            attributes={"bs": size},
        )
    if cut:
        rows.warn("a last line that was cut short is left out")
    return rows.table()
