"""Measurements and results directories made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from etude.experiment.plan import Plan, make_plan
from etude.experiment.test import Test
from etude.results.model import Measurement, MetricValue, to_line
from etude.results.results import Results
from etude.results.series import Series
from etude.results.trials import series_of_columns, trials_of_results


def measurement(
    test: str = "a", trial: int = 1, elapsed_s: float | None = 0.01, **changes: Any
) -> Measurement:
    """One measurement of a trial that went well; `block` is `trial` unless given."""
    elapsed: MetricValue = [elapsed_s, "s"] if elapsed_s is not None else [None, "s", "not measured"]
    members: dict[str, Any] = {
        "test": test,
        "trial": trial,
        "block": trial,
        "order": 0,
        "worker": 0,
        "host": "here",
        "sitting": 1,
        "boot_id": "boot",
        "command": [test],
        "start": "2026-01-01T00:00:00.000000000Z",
        "start_ns": 1,
        "inner": 1,
        "exit_status": 0,
        "signal": None,
        "timed_out": False,
        "cancelled": False,
        "error": None,
        "kept": True,
        "why": None,
        "metrics": {"elapsed": elapsed},
    }
    return Measurement(**(members | changes))


def line(row: Measurement) -> bytes:
    return json.dumps(to_line(row), ensure_ascii=False).encode() + b"\n"


def document(names: Sequence[str] = ("a",), **changes: Any) -> dict[str, Any]:
    """The least that experiment.json holds."""
    entries = [{"name": name, "directory": name, "role": "test", "parameters": {}} for name in names]
    sitting = {"sitting": 1, "boot_id": "boot", "host": "here", "start": "", "end": None}
    return {
        "format": "etude-experiment",
        "version": 1,
        "name": "made",
        "plan": {},
        "tests": entries,
        "sittings": [sitting],
    } | changes


def results_directory(directory: Path, rows: Mapping[str, Sequence[Measurement]], **changes: Any) -> Path:
    """A directory that holds these measurements, and the sessions that they name unless these are given."""
    directory.mkdir(parents=True, exist_ok=True)
    found = document(tuple(rows), **changes)
    known = {each["sitting"] for each in found["sittings"]}
    named = {row.sitting for measurements in rows.values() for row in measurements}
    if "sittings" not in changes:
        found["sittings"] += [{**found["sittings"][0], "sitting": number} for number in sorted(named - known)]
    (directory / "experiment.json").write_text(json.dumps(found))
    for test, measurements in rows.items():
        (directory / test).mkdir()
        (directory / test / "results.jsonl").write_bytes(b"".join(line(row) for row in measurements))
    return directory


def series_of_rows(rows: Sequence[Measurement], metrics: Sequence[str] | None = None) -> Series:
    """The series of one test in memory."""
    names = tuple(dict.fromkeys(row.test for row in rows))
    results = Results(Path("r"), document(names), {name: tuple(rows) for name in names}, ())
    (series,) = series_of_columns(trials_of_results(results, metrics).columns)
    return series


def as_if_killed(directory: Path) -> None:
    """Let the last session of an experiment have recorded no end."""
    file = directory / "experiment.json"
    found = json.loads(file.read_text())
    found["sittings"][-1]["how_ended"] = None
    file.write_text(json.dumps(found))


def still_machine(patch: pytest.MonkeyPatch) -> None:
    """No test waits for a disk, or looks at the machine that it runs on."""
    patch.setattr("os.fsync", lambda file: None)
    patch.setattr("os.fdatasync", lambda file: None)
    patch.setattr("etude.machine.snapshot.take", lambda **_: {"kernel": "none"})


HOOKS = ("setup", "prepare", "conclude", "cleanup")


def hooked(*names: str, **options: Any) -> list[Test]:
    """Tests with every hook; the hook's line is `NAME POINT`."""
    return [Test(name, (name,), **{point: f"{name} {point}" for point in HOOKS}, **options) for name in names]


def plan(*tests: Test, trials: int = 2, schedule: str = "in-turn", **options: Any) -> Plan:
    return make_plan(tests, trials=trials, schedule=schedule, seed=1, **options)
