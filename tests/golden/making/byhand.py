"""Results whose rows are written by hand: what no engine of the tests says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from etude.experiment.plan import make_plan, to_document
from etude.experiment.test import Test
from etude.results.histograms import encode
from golden.making.machines import MACHINE, NEWER
from support.builders import measurement, results_directory
from support.pages import hostile


def cooled(path: Path) -> None:
    """Caches that were dropped, and once not as declared."""
    cache = {"declared": "drop", "performed": "drop", "wrong": None, "cooling_s": 0.25, "files": 10}
    cache |= {"bytes": 1 << 20, "resident_bytes": 0, "resident_before_bytes": 1 << 20, "names_cached": None}
    rows = []
    for trial in range(1, 9):
        told = cache if trial != 4 else cache | {"resident_bytes": 1 << 18, "wrong": "256 KiB are in memory"}
        rows.append(measurement("read", trial, 0.5 + 0.01 * (trial % 3), cache=told, host="lab-1"))
    warm = [
        measurement("again", trial, 0.05 + 0.001 * (trial % 4), cache={"declared": "none", "performed": None})
        for trial in range(1, 9)
    ]
    by_hand(path, {"read": rows, "again": warm})


def windowed(path: Path) -> None:
    """What a server's clients saw, over time, with histograms."""
    generator, rows = np.random.default_rng(20), []
    for trial in range(1, 7):
        windows = []
        for _ in range(3):
            values = np.sort(generator.lognormal(math.log(2e6), 0.5, 200).astype(np.int64))
            latency = encode(values, np.ones(200, dtype=np.int64))
            counts = {"offered": 205, "started": 205, "completed": 200, "failed": 5}
            windows.append({"duration_s": 1.0, **counts, "latency": latency, "by": {"read": counts}})
        metrics = {"elapsed": [3.0, "s"], "rate": [200.0 + trial, "1/s"]}
        rows.append(measurement("server", trial, metrics=metrics, windows=windows))
    by_hand(path, {"server": rows})


def told(path: Path) -> None:
    """All that a line may have beside the usual: kernel messages, throttling, notes, several commands, hosts."""
    rows = []
    for trial in range(1, 6):
        for worker, host in enumerate(("lab-1", "lab-2")):
            for command in ("make", "make install"):
                first = worker == 0 and command == "make"
                more: dict[str, Any] = {"rows": 4, "offset_ns": 1500 * worker, "offset_error_ns": 200}
                if first and trial == 2:
                    more |= {"kernel": [{"ns": 5, "level": 3, "text": "I/O error"}], "throttled": 2}
                metrics = {
                    "elapsed": [1.0 + 0.01 * trial + worker, "s"],
                    "user": [0.5, "s"],
                    "system": [0.2, "s"],
                }
                if first:
                    metrics |= {"tree_cpu": [2.5, "s"], "cycles": [None, "1", "not counted"]}
                changes = {
                    "worker": worker,
                    "host": host,
                    "command": command.split(),
                    "start_ns": trial * 10**10,
                }
                rows.append(measurement("build", trial, metrics=metrics, notes=["odd"], **changes, **more))
    entry = {"name": "build", "directory": "build", "role": "test", "parameters": {}, "workers": 2}
    by_hand(path, {"build": rows}, tests=[entry])


def warned(path: Path) -> None:
    """Drift, outliers, two levels, and a shape that is none of a bell."""
    generator = np.random.default_rng(21)
    noise = generator.lognormal(0.0, 0.01, (4, 40))
    drift = 0.1 * (1 + 0.004 * np.arange(40)) * noise[0]
    outliers = 0.1 * noise[1]
    outliers[[7, 23]] *= 2.5
    levels = np.where(generator.random(40) < 0.4, 0.12, 0.1) * noise[2]
    steady = 0.1 * noise[3]
    samples = {"drift": drift, "outliers": outliers, "levels": levels, "steady": steady}
    rows = {
        name: [
            measurement(name, trial, float(value), order=order, start_ns=(4 * trial + order) * 10**9)
            for trial, value in enumerate(values, 1)
        ]
        for order, (name, values) in enumerate(samples.items())
    }
    by_hand(path, rows, machine={"before": MACHINE, "after": NEWER})


def boots(path: Path) -> None:
    """Three sessions of one test, each of its own boot, that lie apart."""
    rows, sittings = [], []
    generator = np.random.default_rng(22)
    for sitting, level in enumerate((0.10, 0.104, 0.099), 1):
        name = f"boot-{sitting}"
        start, end = (f"2026-01-0{sitting}T{hour}:00:00Z" for hour in (10, 11))
        sittings.append({"sitting": sitting, "boot_id": name, "host": "lab-1", "start": start, "end": end})
        for number in range(8):
            value = float(level * generator.lognormal(0, 0.005))
            at = {"sitting": sitting, "boot_id": name, "start_ns": number * 10**9}
            rows.append(measurement("sort", 8 * (sitting - 1) + number + 1, value, **at))
    by_hand(path, {"sort": rows}, sittings=sittings)


def older(path: Path) -> None:
    """The least that the first writers wrote: members that came later are not there."""
    rows = {"sort": [measurement("sort", n, 0.1 + n / 1000) for n in range(1, 6)]}
    results_directory(path, rows, plan=plan_of(path.name, rows))


def newer(path: Path) -> None:
    older(path)
    text = (path / "experiment.json").read_text()
    (path / "experiment.json").write_text(text.replace('"version": 1', '"version": 2'))


def spoilt(path: Path) -> None:
    """A line in the middle that is no measurement."""
    older(path)
    file = path / "sort" / "results.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[1].replace('"trial": 2', '"trial": "two"'), *lines[2:]]))


def markup(path: Path) -> None:
    hostile(path)


def by_hand(path: Path, rows: Mapping[str, Any], **changes: Any) -> None:
    sitting = {"sitting": 1, "boot_id": "boot", "host": "lab-1", "start": "2026-01-01T10:00:00Z"}
    members: dict[str, Any] = {
        "name": path.name,
        "verb": "bench",
        "machine": {"before": MACHINE, "after": MACHINE},
    }
    members |= {
        "sittings": [sitting | {"end": "2026-01-01T10:05:00Z"}],
        "command_line": ["etude bench", *rows],
    }
    results_directory(path, rows, **(members | {"plan": plan_of(path.name, rows)} | changes))


def plan_of(name: str, rows: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, as `etude bench` notes it."""
    return to_document(make_plan([Test(test, (test,)) for test in rows], name=name, seed=1))


MADE: Mapping[str, Callable[[Path], None]] = {
    f"bench/{make.__name__.replace('_', '-')}": make
    for make in (cooled, windowed, told, warned, boots, older, newer, spoilt, markup)
}
