"""What a script reports of workers on several hosts, each with a clock of its own."""

from __future__ import annotations

from typing import Any

from etude.script.remote import start_spread


def started(worker: int, start_ns: int | None, offset_ns: int) -> dict[str, Any]:
    return {"worker": worker, "start_ns": start_ns, "offset_ns": offset_ns}


def test_starts_are_compared_on_our_clock() -> None:
    ahead = started(1, 5_000_000_300, 5_000_000_000)
    behind = started(2, 3_000_000_100, 3_000_000_000)
    assert start_spread([started(0, 0, 0), ahead, behind], 3) == [3e-7, "s"]


def test_the_first_launch_of_each_worker_counts() -> None:
    rows = [started(0, 1000, 0), started(1, 3000, 0), started(0, 9000, 0), started(1, 9500, 0)]
    assert start_spread(rows, 2) == [2e-6, "s"]


def test_a_worker_that_did_not_start_leaves_it_unknown() -> None:
    assert start_spread([started(0, 1000, 0), started(1, None, 0)], 2)[0] is None
