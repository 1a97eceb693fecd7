"""Output of `io -j` and `ipc -j` (docs/reference/formats.md), and of the programs of the L41 labs of 2020 and later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.source import documents, members, number, text_of
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import ONE, SECOND, Unit, number_in

NAME = "io-lab"

_KBYTES_PER_SECOND = Unit("B/s", 1024)
"""The programs' KByte is 1024 bytes."""

_METRICS: Mapping[str, tuple[str, Unit]] = {
    "bandwidth": ("bandwidth", _KBYTES_PER_SECOND),
    "time": ("time", SECOND),
    "utime": ("user", SECOND),
    "stime": ("system", SECOND),
    "nvcsw": ("voluntary_switches", ONE),
    "nivcsw": ("involuntary_switches", ONE),
    "inblock": ("blocks_in", ONE),
    "oublock": ("blocks_out", ONE),
}
_NO_PARAMETERS = ("blockcount", "iterations", "seed", "counters", "cooled_by")
"""Members that are constant along a curve, follow from others, or are irrelevant to the measurement."""


def detect(path: Path, head: bytes) -> bool:
    return head.lstrip().startswith(b"{") and b'"benchmark_samples"' in head


def read(path: Path) -> Table:
    rows = Rows(path)
    for document in documents(path, r"\S", "what io -j or ipc -j prints: expected JSON objects", rows.warn):
        samples = document.get("benchmark_samples")
        if not isinstance(samples, list):
            raise InputError(
                f"{path}: is not what io -j or ipc -j prints: expected a list of benchmark_samples"
            )
        asked = members(document.get("benchmark_configuration"))
        for sample in samples:
            metrics = dict(_metrics(rows, members(sample)))
            if metrics:
                rows.add(_test(rows, asked), metrics, parameters=_parameters(asked))
            else:
                rows.warn("a sample without a number is left out")
    return rows.table()


def _test(rows: Rows, asked: Mapping[str, Any]) -> str:
    """`read` of io, `2proc pipe` of ipc."""
    names = [asked[name] for name in ("operation", "mode", "ipctype") if isinstance(asked.get(name), str)]
    return " ".join(names) or rows.test


def _parameters(asked: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: text_of(value)
        for name, value in asked.items()
        if value is not None and name not in _NO_PARAMETERS and not isinstance(value, dict)
    }


def _metrics(rows: Rows, sample: Mapping[str, Any]) -> Iterator[tuple[str, Quantity]]:
    """The lab's programs have counters among the members, ours in an object of their own with reasons
    for missing ones."""
    for name, value in sample.items():
        metric, unit = _METRICS.get(name, (name, ONE))
        if name in _METRICS or number(value) is not None:
            yield metric, Quantity(number_in(value) if isinstance(value, str) else number(value), unit)
    for name, entry in members(sample.get("counters")).items():
        count = members(entry).get("count")
        if number(count) is None:
            rows.warn(
                f"{name} was not counted: {text_of(members(entry).get('reason', 'no reason is given'))}"
            )
        elif name not in sample:
            yield name, Quantity(number(count), ONE)
