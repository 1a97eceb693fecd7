"""ApacheBench (ab): its report, and its files of single requests (`-g`) and of percentiles (`-e`)."""

from __future__ import annotations

from pathlib import Path

from etude.errors import InputError
from etude.results.readers.report_lines import NUMBER, Report, plainly
from etude.results.readers.source import shuffled
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import BYTE, KIBIBYTE, MILLISECOND, ONE, PER_SECOND, SECOND, number_in

NAME = "ab"

_REQUESTS = "starttime\tseconds\tctime\tdtime\tttime\twait"
_PERCENTILES = "Percentage served,Time in ms"
_COLUMNS = {"connect": 2, "processing": 3, "elapsed": 4, "wait": 5}
_SHOWN = {"0": "latency_minimum", "100": "latency_maximum"} | {
    text: f"latency_p{text}" for text in ("50", "66", "75", "80", "90", "95", "98", "99")
}
_MS = plainly(MILLISECOND)
_FIGURES = ("minimum", "mean", "deviation", "median", "maximum")
_FIVE = rf"{NUMBER}\s+{NUMBER}\s+{NUMBER}\s+{NUMBER}\s+{NUMBER}"
_TIMES = {"Connect": "connect", "Processing": "processing", "Waiting": "wait"}

REPORT = Report(
    "ab",
    begins=r"This is ApacheBench, .*",
    needs="request_rate",
    parameters=(
        r"Server Hostname:\s+(?P<server>\S+)",
        r"Server Port:\s+(?P<port>[0-9]+)",
        r"Document Path:\s+(?P<path>\S.*)",
        r"Concurrency Level:\s+(?P<concurrency>[0-9]+)",
    ),
    metrics={
        rf"Time taken for tests:\s+{NUMBER} seconds": (("elapsed", plainly(SECOND)),),
        rf"Complete requests:\s+{NUMBER}": (("requests", plainly(ONE)),),
        rf"Failed requests:\s+{NUMBER}": (("failed", plainly(ONE, "cost")),),
        rf"Non-2xx responses:\s+{NUMBER}": (("bad_responses", plainly(ONE, "cost")),),
        rf"Total transferred:\s+{NUMBER} bytes": (("transferred", plainly(BYTE, "count")),),
        rf"Requests per second:\s+{NUMBER} \[#/sec\] \(mean\)": (("request_rate", plainly(PER_SECOND)),),
        rf"Transfer rate:\s+{NUMBER} \[Kbytes/sec\] received": (
            ("throughput", plainly(KIBIBYTE._replace(base="B/s"))),
        ),
        rf"Time per request:\s+{NUMBER} \[ms\] \(mean\)": (("latency_mean", _MS),),
        **{
            rf"{theirs}:\s+{_FIVE}": tuple((f"{ours}_{figure}", _MS) for figure in _FIGURES)
            for theirs, ours in _TIMES.items()
        },
        rf"Total:\s+{NUMBER}\s+[0-9]+\s+{NUMBER}\s+[0-9]+\s+{NUMBER}": (  # the mean is printed above with more digits
            ("latency_minimum", _MS),
            ("latency_deviation", _MS),
            ("latency_maximum", _MS),
        ),
    },
    numbered={rf"([1-9][0-9]?)%\s+{NUMBER}": ("latency_p{}", _MS)},
    warnings=(r"Non-2xx responses:.*", r"Failed requests:\s+[1-9].*"),
)


def detect(path: Path, head: bytes) -> bool:
    first = head[:200].decode("utf-8", "replace").partition("\n")[0].rstrip("\r")
    return first in (_REQUESTS, _PERCENTILES) or b"This is ApacheBench, " in head


def read(path: Path) -> Table:
    rows = Rows(path)
    lines = rows.lines()
    first = lines[0] if lines else ""
    if first not in (_REQUESTS, _PERCENTILES):
        return REPORT.read(path)
    if first == _REQUESTS:
        _requests(rows, lines[1:])
    else:
        _percentiles(rows, lines[1:])
    return rows.table()


def _requests(rows: Rows, lines: list[str]) -> None:
    """Single requests, shuffled within each second: ab sorts them by time, which would look like a trend."""
    found = []
    for line in lines:
        fields = line.split("\t")
        second = number_in(fields[1]) if len(fields) == 6 else None
        if second is None:
            rows.warn("a line that is no request is left out")
            continue
        found.append((second, {name: _MS(fields[place]) for name, place in _COLUMNS.items()}))
    for _, metrics in sorted(shuffled(found), key=lambda request: request[0]):
        rows.add(rows.test, metrics)
    if found:
        rows.warn(
            "ab writes requests by their duration: in which order they were made within a second is not known"
        )


def _percentiles(rows: Rows, lines: list[str]) -> None:
    metrics: dict[str, Quantity] = {}
    for line in lines:
        percent, _, time = line.partition(",")
        if percent in _SHOWN:
            metrics[_SHOWN[percent]] = _MS(time)
    if not metrics:
        raise InputError(f"{rows.path}: holds no percentile")
    rows.add(rows.test, metrics)
