"""What the client says becomes windows, and whose limit it was."""

from __future__ import annotations

from typing import Any

import pytest

from etude.peak.harnesses.known_server import bottleneck_of_sends, window, with_drained
from etude.peak.window import joined_windows
from etude.results.histograms import encode


def line(times_ms: list[int], offered: int, failed: int = 0, duration_s: float = 1.0) -> dict[str, Any]:
    """A window as the client writes it."""
    return {
        "duration_s": duration_s,
        "offered": offered,
        "started": offered,
        "completed": len(times_ms),
        "failed": failed,
        "mean_s": sum(times_ms) / len(times_ms) / 1e3 if times_ms else None,
        "latency": encode([1_000_000 * each for each in times_ms]) if times_ms else None,
    }


def test_what_was_drained_belongs_to_the_last_window_and_takes_no_time() -> None:
    windows = [window(line([10, 20], 3)), window(line([10, 30], 3, failed=1))]
    found = with_drained(windows, line([30, 50], 0, failed=2, duration_s=0.4))
    assert found[0] == windows[0]
    last = found[1]
    assert (last.duration_s, last.offered, last.completed, last.failed) == (1.0, 3, 4, 3)
    assert last.mean_s == pytest.approx(0.030)
    assert last.latency is not None
    assert last.latency.counts.tolist() == [1, 2, 1]
    assert sorted(last.latency.values.tolist()) == last.latency.values.tolist()
    assert joined_windows(found).percentile_s(100) == pytest.approx(0.050, rel=1e-3)


def test_without_anything_drained_windows_stay_as_they_are() -> None:
    windows = [window(line([], 2))]
    assert with_drained(windows, None) == tuple(windows)
    assert with_drained(windows, line([], 0))[0].mean_s is None
    assert with_drained([], line([10], 0)) == ()


def test_the_generator_is_the_limit_where_it_needs_its_cpu_and_the_server_where_requests_wait() -> None:
    def end(cpu: float) -> dict[str, Any]:
        return {"summary": {"cpu": cpu}}

    assert bottleneck_of_sends({"waiting": 0}, end(0.2)) is None
    assert bottleneck_of_sends({"waiting": 7}, end(0.2)) == "server"
    assert bottleneck_of_sends({"waiting": 7}, end(0.85)) == "generator"
    assert bottleneck_of_sends({}, end(0.1)) is None
