"""PostMark's reports, verbose and terse; runs may be appended, and its prompts may stand in between."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import BYTE, BYTES_PER_SECOND, ONE, PER_SECOND, SECOND, Unit, number_in

NAME = "postmark"

_TERSE = re.compile(r"(?:pm>)*([0-9]+ [0-9]+(?: [0-9]+\.[0-9]{2}){11})\s*")
_TERSE_NAMES: Mapping[str, Unit] = {
    "elapsed": SECOND,
    "transactions_elapsed": SECOND,
    "transactions_rate": PER_SECOND,
    "created_rate": PER_SECOND,
    "created_alone_rate": PER_SECOND,
    "created_mixed_rate": PER_SECOND,
    "read_rate": PER_SECOND,
    "appended_rate": PER_SECOND,
    "deleted_rate": PER_SECOND,
    "deleted_alone_rate": PER_SECOND,
    "deleted_mixed_rate": PER_SECOND,
    "read_throughput": BYTES_PER_SECOND,
    "written_throughput": BYTES_PER_SECOND,
}
_FILES = re.compile(
    r"\t{1,2}(?:(?P<alone>Creation|Deletion) alone: |(?P<mixed>Mixed) with transactions: )?"
    r"(?P<count>[0-9]+) (?P<what>created|read|appended|deleted|files) \((?P<rate>[0-9]+) per second\)"
)
_DATA = re.compile(
    r"\t(?P<amount>[0-9.]+) (?P<unit>[a-z]+) (?P<what>read|written) "
    r"\((?P<rate>[0-9.]+) (?P<per>[a-z]+) per second\)"
)
_TIME = re.compile(r"\t(?P<total>[0-9]+) seconds total")
_TRANSACTIONS = re.compile(r"\t(?P<time>[0-9]+) seconds of transactions \((?P<rate>[0-9]+) per second\)")
_SIZES = {
    f"{prefix}byte{s}": 1024**n for n, prefix in enumerate(("", "kilo", "mega", "giga")) for s in ("", "s")
}
_WHOLE = 23
"""Number of metrics of a complete verbose report."""


def detect(path: Path, head: bytes) -> bool:
    text = head.decode("utf-8", "replace")
    return _TRANSACTIONS.search(text) is not None or any(
        _TERSE.fullmatch(line) for line in text.split("\n")[:-1]
    )


def read(path: Path) -> Table:
    rows, found, section = Rows(path), dict[str, Quantity](), ""
    lines = rows.lines()
    for line in lines:
        terse, total = _TERSE.fullmatch(line), _TIME.fullmatch(line)
        if terse is not None:
            values = map(number_in, terse[1].split())
            rows.add(
                rows.test, {n: Quantity(v, u) for (n, u), v in zip(_TERSE_NAMES.items(), values, strict=True)}
            )
        elif total is not None:
            _left_out(rows, found)
            found = {"elapsed": Quantity(number_in(total["total"]), SECOND)}
        elif found:
            section = _verbose(line, section, found)
            if "written_throughput" in found:
                if len(found) == _WHOLE:
                    rows.add(rows.test, found)
                else:
                    _left_out(rows, found)
                found = {}
    _left_out(rows, found)
    return rows.table()


def _left_out(rows: Rows, found: Mapping[str, Quantity]) -> None:
    if found:
        rows.warn("a report that was cut short is left out")


def _verbose(line: str, section: str, found: dict[str, Quantity]) -> str:
    """Add a line; returns the subject of a following `Mixed with transactions`."""
    if match := _TRANSACTIONS.fullmatch(line):
        found["transactions_elapsed"] = Quantity(number_in(match["time"]), SECOND)
        found["transactions_rate"] = Quantity(number_in(match["rate"]), PER_SECOND)
    elif match := _FILES.fullmatch(line):
        if match["alone"] or match["mixed"]:
            name = f"{section}_{'alone' if match['alone'] else 'mixed'}"
        else:
            name = section = match["what"]
        if section in ("created", "read", "appended", "deleted"):
            found[name] = Quantity(number_in(match["count"]), ONE)
            found[f"{name}_rate"] = Quantity(number_in(match["rate"]), PER_SECOND)
    elif match := _DATA.fullmatch(line):
        amount, per = _SIZES.get(match["unit"]), _SIZES.get(match["per"])
        if amount is not None and per is not None:
            size, rate = BYTE._replace(times=amount), BYTES_PER_SECOND._replace(times=per)
            found[f"bytes_{match['what']}"] = Quantity(number_in(match["amount"]), size, "count")
            found[f"{match['what']}_throughput"] = Quantity(number_in(match["rate"]), rate)
    return section
