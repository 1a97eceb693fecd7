"""Output of `iperf3 -J`; runs may be appended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from etude.results.readers.source import documents, items, members, number, text_of
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import BYTE, MILLISECOND, ONE, PERCENT, SECOND, Unit

NAME = "iperf3"

_BEGINS = r'\{\s*"start"\s*:'
_BITS = Unit("B/s", 1, 8)
_SUMS = {
    "sum_received": "",
    "sum_sent": "sent_",
    "sum_received_bidir_reverse": "reverse_",
    "sum_sent_bidir_reverse": "reverse_sent_",
}
_OF_SUM: Mapping[str, tuple[str, Unit, str | None]] = {
    "bits_per_second": ("throughput", _BITS, None),
    "bytes": ("bytes", BYTE, "count"),
    "retransmits": ("retransmits", ONE, "cost"),
    "jitter_ms": ("jitter", MILLISECOND, None),
    "packets": ("packets", ONE, None),
    "lost_packets": ("lost_packets", ONE, "cost"),
    "lost_percent": ("lost", PERCENT, "cost"),
}
_PARAMETERS = ("protocol", "num_streams", "blksize", "reverse", "bidir", "duration", "target_bitrate")


def detect(path: Path, head: bytes) -> bool:
    start = head.lstrip()
    return start.startswith(b"{") and b'"start"' in start[:40] and b'"iperf 3' in head


def read(path: Path) -> Table:
    rows = Rows(path)
    for document in documents(
        path, _BEGINS, "what iperf3 -J prints: expected a document with start", rows.warn
    ):
        _run(rows, document)
    return rows.table()


def _run(rows: Rows, document: Mapping[str, Any]) -> None:
    test, end = members(members(document.get("start")).get("test_start")), members(document.get("end"))
    parameters = {name: text_of(test[name]) for name in _PARAMETERS if name in test}
    if "error" in document:
        rows.warn(f"a run failed: {text_of(document['error'])[:80]}")
        if parameters:
            rows.add(rows.test, {}, kept=False, parameters=parameters)
        return
    metrics: dict[str, Quantity] = {}
    udp = parameters.get("protocol") == "UDP"
    for theirs, prefix in _SUMS.items():
        part = members(end.get(theirs))
        if udp and theirs == "sum_received" and not number(part.get("packets")):
            part = members(end.get("sum"))  # before about 3.9: the only one for UDP
        sends = "sent" in prefix
        for name, (metric, unit, kind) in _OF_SUM.items():
            if name in part and not (sends and name in ("jitter_ms", "lost_packets", "lost_percent")):
                metrics[f"{prefix}{metric}"] = Quantity(number(part[name]), unit, kind)
        if theirs == "sum_received" and "seconds" in part:
            metrics["elapsed"] = Quantity(number(part["seconds"]), SECOND, "count")
    rtts = [
        number(members(members(each).get("sender")).get("mean_rtt")) for each in items(end.get("streams"))
    ]
    known = [rtt for rtt in rtts if rtt]
    if known:
        metrics["round_trip_mean"] = Quantity(sum(known) / len(known), Unit("s", over=10**6))
    cpu = members(end.get("cpu_utilization_percent"))
    for theirs, ours in (("host_total", "cpu"), ("remote_total", "remote_cpu")):
        if theirs in cpu:
            metrics[ours] = Quantity(number(cpu[theirs]), PERCENT)
    if not number(members(end.get("sum_received") or end.get("sum")).get("seconds")):
        rows.warn("a run without its sums is left out: it was interrupted")
        return
    rows.add(rows.test, metrics, parameters=parameters)
