"""Results with what a monitor read beside them, made by hand: a machine of two CPUs whose every second is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.builders import measurement, results_directory

START_NS = 1_000_000_000_000
COLUMNS = (
    *(
        (f"cpu.{mode}", "s", "interval")
        for mode in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    ),
    ("interrupts", "1", "interval"),
    ("switches", "1", "interval"),
    ("paging.swapped_in", "1", "interval"),
    ("memory.available", "B", "level"),
    ("pressure.cpu.some", "s", "interval"),
    ("pressure.io.some", "s", "interval"),
    ("pressure.memory.some", "s", "interval"),
    ("disk.sda.read", "B", "interval"),
    ("disk.sda.written", "B", "interval"),
    ("disk.sda.busy", "s", "interval"),
    ("disk.dm-0.written", "B", "interval"),
    ("net.eth0.received", "B", "interval"),
    ("net.eth0.sent", "B", "interval"),
    ("frequency.0", "Hz", "level"),
)


def head(**changes: Any) -> dict[str, Any]:
    """The first line."""
    return {
        "format": "etude-monitor",
        "version": 1,
        "start": "2026-01-01T00:00:00.000000000Z",
        "start_ns": START_NS,
        "boot_id": "boot",
        "every_s": 1.0,
        "top": 5,
        "cpus": [0, 1],
        "pid": 99,
    } | changes


def columns(names: Sequence[tuple[str, str, str]] = COLUMNS, **absent: str) -> dict[str, Any]:
    """The second."""
    return {"columns": [{"name": n, "unit": u, "kind": k} for n, u, k in names], "absent": absent}


def process(pid: int, name: str, cpu: float, **changes: Any) -> dict[str, Any]:
    """An entry of a top list."""
    return {
        "pid": pid,
        "name": name,
        "start": pid * 10,
        "cpu": cpu,
        "rss": 2**20,
        "read": 0,
        "written": 0,
    } | changes


def second(number: int, top: Sequence[Mapping[str, Any]] = (), **values: float | None) -> dict[str, Any]:
    """The reading at the end of that second, from 1; names with `_` for `.`. All else is idle."""
    usual: dict[str, float | None] = {
        "cpu.idle": 2.0,
        "interrupts": 300.0,
        "memory.available": 4e9,
        "frequency.0": 2e9,
    }
    v = [values.get(name.replace(".", "_"), usual.get(name, 0.0)) for name, *_ in COLUMNS]
    return {"ns": number * 10**9, "v": v, "top": list(top)}


def busy_second(
    number: int, own: float, foreign: float = 0.0, name: str = "intruder", **values: float
) -> dict[str, Any]:
    """A second in which a trial, in its cgroup, and an intruder used the CPUs."""
    top = [process(50, "program", own, cgroup="/etude-7-1"), process(1, "init", 0.01)]
    if foreign:
        top.insert(0, process(4242, name, foreign, cgroup="/user"))
    used = own + foreign + 0.01
    return second(number, top, cpu_user=used, cpu_idle=max(0.0, 2.0 - used), **values)


def write(path: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    """A file of these lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def trials_of_seconds(
    directory: Path,
    lengths: Sequence[int],
    readings: Sequence[Mapping[str, Any]] | None,
    major_faults: Mapping[int, int] | None = None,
    user: Mapping[int, float] | None = None,
    **changes: Any,
) -> Path:
    """A test `a` whose trials last so many seconds, one after the other, each using one CPU for one second.

    readings: None, where there was no monitor. major_faults: of some trials; none of the others. user: seconds of
    CPU time of some trials.
    """
    rows, at = [], 0
    for number, length in enumerate(lengths, 1):
        metrics: dict[str, Any] = {
            "elapsed": [length + 0.001 * (number % 5), "s"],
            "user": [(user or {}).get(number, 1.0), "s"],
            "system": [0.0, "s"],
        }
        if major_faults is not None:
            metrics["major_faults"] = [major_faults.get(number, 0), "1"]
        rows.append(measurement("a", number, start_ns=START_NS + at * 10**9, metrics=metrics, **changes))
        at += length
    results_directory(directory, {"a": rows}, plan={"kind": "script", "primary": "elapsed"})
    if readings is not None:
        write(directory / "monitor-1.jsonl", [head(), columns(), *readings])
    return directory
