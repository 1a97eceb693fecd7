"""Results made by hand, for tests of what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from etude.store.content import Content, Point
from etude.store.entry import Machine
from support.builders import measurement, results_directory

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BIG = Machine("big", "b" * 64, (("cores", "64"), ("processor", "Large 1")))
SMALL = Machine("small", "5" * 64, (("cores", "4"), ("processor", "Little 2")))


def point(
    values: Sequence[float] = (1.0, 2.0), test: str = "sort", metric: str = "elapsed", **changes: Any
) -> Point:
    """One metric of one test, of one session on the big machine."""
    members: dict[str, Any] = {"unit": "s", "kind": "cost", "machine": BIG, "measured": BEGIN}
    sittings = (1,) * len(values)
    return Point(test, metric, values=tuple(values), **({"sittings": sittings} | members | changes))


def content(number: int = 1, *points: Point, trials: int = 2) -> Content:
    """A result; one of another number is of another experiment, measured that many days later."""
    measured = BEGIN + timedelta(days=number)
    return Content(f"/results/{number}", f"origin {number}", trials, points or (point(measured=measured),))


def snapshot(processor: str = "Fast 3", cores: int = 8) -> dict[str, Any]:
    """As much of one as is looked at."""
    return {
        "system": {"architecture": "x86_64", "kernel_release": "6.1", "hostname": "here"},
        "cpu": {"model": processor, "online": cores, "smt": True},
        "memory": {"total_bytes": 16 * 2**30},
    }


def directory(
    place: Path, elapsed_s: Mapping[str, Sequence[float]], start: str = "2026-01-01T00:00:00Z", **changes: Any
) -> Path:
    """A results directory with a trial for each time, of a machine with a snapshot."""
    sitting = {"sitting": 1, "boot_id": "boot", "host": "here", "start": start, "end": None}
    rows = {
        test: [
            measurement(test, number, value, start=f"2026-01-01T00:00:{number:02}.5Z")
            for number, value in enumerate(times, 1)
        ]
        for test, times in elapsed_s.items()
    }
    return results_directory(
        place, rows, **({"machine": {"before": snapshot()}, "sittings": [sitting]} | changes)
    )
