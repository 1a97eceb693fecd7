"""Reports of wrk and wrk2; runs may be appended."""

from __future__ import annotations

import re
from pathlib import Path

from etude.results.readers.report_lines import NUMBER, Report, plainly
from etude.results.table import Quantity, Table
from etude.units.parsing import BYTE, MICROSECOND, MILLISECOND, ONE, PER_SECOND, SECOND, Unit, number_in

NAME = "wrk"

_TIMES = {"us": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": Unit("s", 60), "h": Unit("s", 3600)}
_SIZES = {"B": BYTE} | {f"{p}B": Unit("B", 1024**n) for n, p in enumerate("KMGTP", 1)}
_PARTS = re.compile(rf"{NUMBER}([A-Za-z]*)")
_TIME, _SIZE = r"([0-9.]+(?:us|ms|s|m|h))", r"([0-9.]+[KMGTP]?B)"


def _time(text: str) -> Quantity:
    return _measured(text, _TIMES, SECOND)


def _size(text: str) -> Quantity:
    return _measured(text, _SIZES, BYTE)._replace(kind="count")


def _throughput(text: str) -> Quantity:
    value, unit, _ = _measured(text, _SIZES, BYTE)
    return Quantity(value, unit._replace(base="B/s"))


def _measured(text: str, units: dict[str, Unit], plain: Unit) -> Quantity:
    match = _PARTS.fullmatch(text)
    if match is None or match[2] not in units:
        return Quantity(None, plain)
    return Quantity(number_in(match[1]), units[match[2]])


REPORT = Report(
    "wrk",
    begins=r"Running (?P<duration>\S+) test @ (?P<url>\S.*)",
    needs="request_rate",
    parameters=(r"(?P<threads>[0-9]+) threads and (?P<connections>[0-9]+) connections",),
    metrics={
        rf"Latency\s+{_TIME}\s+{_TIME}\s+{_TIME}\s+[0-9.]+%": tuple(
            (f"latency_{figure}", _time) for figure in ("mean", "deviation", "maximum")
        ),
        rf"{NUMBER} requests in {_TIME}, {_SIZE} read": (
            ("requests", plainly(ONE)),
            ("elapsed", _time),
            ("transferred", _size),
        ),
        rf"Requests/sec:\s+{NUMBER}": (("request_rate", plainly(PER_SECOND)),),
        rf"Transfer/sec:\s+{_SIZE}": (("throughput", _throughput),),
        rf"Non-2xx or 3xx responses: {NUMBER}": (("bad_responses", plainly(ONE, "cost")),),
        rf"Socket errors: connect {NUMBER}, read {NUMBER}, write {NUMBER}, timeout {NUMBER}": tuple(
            (f"{what}_errors", plainly(ONE, "cost")) for what in ("connect", "read", "write", "timeout")
        ),
    },
    numbered={
        # wrk2 writes three decimals: 50.000%, 99.990%
        rf"([1-9][0-9]?(?:\.[0-9]*[1-9])?)\.?0*%\s+{_TIME}": ("latency_p{}", _time),
    },
    warnings=(r"Non-2xx or 3xx responses:.*", r"Socket errors:.*"),
)


def detect(path: Path, head: bytes) -> bool:
    return re.search(rb"(?m)^Running \S+ test @ ", head) is not None


def read(path: Path) -> Table:
    return REPORT.read(path)
