"""hey: its report, and its single requests (`-o csv`)."""

from __future__ import annotations

from pathlib import Path

from etude.results.readers.report_lines import NUMBER, Report, plainly
from etude.results.readers.source import csv_rows
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import BYTE, ONE, PER_SECOND, SECOND, number_in

NAME = "hey"

_HEADING = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"
_COLUMNS = ("elapsed", "connect", "dns", "request_write", "wait", "response_read")
_S = plainly(SECOND)
_FAILED = 400

REPORT = Report(
    "hey",
    begins=r"Summary:",
    needs="latency_mean",
    metrics={
        rf"Total:\s+{NUMBER} secs": (("elapsed", _S),),
        rf"Slowest:\s+{NUMBER} secs": (("latency_maximum", _S),),
        rf"Fastest:\s+{NUMBER} secs": (("latency_minimum", _S),),
        rf"Average:\s+{NUMBER} secs": (("latency_mean", _S),),
        rf"Requests/sec:\s+{NUMBER}": (("request_rate", plainly(PER_SECOND)),),
        rf"Total data:\s+{NUMBER} bytes": (("transferred", plainly(BYTE, "count")),),
        rf"DNS\+dialup:\s+{NUMBER} secs,.*": (("connect_mean", _S),),
        rf"resp wait:\s+{NUMBER} secs,.*": (("wait_mean", _S),),
    },
    numbered={
        rf"([1-9][0-9]?)% in {NUMBER} secs": ("latency_p{}", _S),
        rf"\[([1-9][0-9]{{2}})\]\s+{NUMBER} responses": ("status_{}", plainly(ONE)),
    },
    warnings=(r"\[[45][0-9]{2}\]\s+[0-9]+ responses", r"\[[0-9]+\]\s+(?![0-9]+ responses).*"),
)


def detect(path: Path, head: bytes) -> bool:
    text = head.decode("utf-8", "replace")
    return text.startswith(_HEADING) or ("Summary:" in text and "\n  Requests/sec:\t" in text)


def read(path: Path) -> Table:
    rows = Rows(path)
    lines = rows.lines()
    if not lines or lines[0] != _HEADING:
        return REPORT.read(path)
    requests = [fields for fields in csv_rows(path, lines[1:]) if len(fields) == 8 and fields[6].isdecimal()]
    if len(requests) < len(lines) - 1:
        rows.warn(f"{len(lines) - 1 - len(requests)} lines that are no request are left out")
    for fields in sorted(requests, key=lambda fields: number_in(fields[7]) or 0.0):
        status = fields[6][:6]
        failed = int(status) >= _FAILED
        if failed:
            rows.warn(f"a request was answered with {status} and is not kept")
        metrics = {
            name: Quantity(number_in(text), SECOND) for name, text in zip(_COLUMNS, fields, strict=False)
        }
        rows.add(rows.test, metrics, kept=not failed, attributes={"http_status": status})
    return rows.table()
