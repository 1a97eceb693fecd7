"""Waiting for a machine that has just started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import UsageError
from etude.machine.boot.record import most_seconds
from etude.machine.boot.resume import BETWEEN_S, BootState, Busy, jobs_of, read_busy, wait
from support.golden import Golden

CALM = Busy(load=0.2, pressure={"cpu": 0.01}, jobs=0, cpus=1)
BUSY = Busy(load=3.0, pressure={"cpu": 0.4, "io": 0.02}, jobs=2, cpus=1)


def waited(readings: list[Busy], most_s: float) -> tuple[BootState, float]:
    """What `wait` says of a machine that is found so, reading after reading, and the time that it took."""
    now = 0.0
    each: Iterator[Busy] = iter(readings)

    def pause(seconds: float) -> None:
        nonlocal now
        assert seconds > 0
        now += seconds

    return wait(most_s, read=lambda: next(each, readings[-1]), clock=lambda: now, pause=pause), now


@given(st.integers(0, 30), st.floats(0, 100))
def test_it_waits_until_the_machine_is_calm_and_no_longer_than_it_may(busy: int, most_s: float) -> None:
    found, took = waited([BUSY] * busy + [CALM], most_s)
    assert took <= most_s + 1e-9
    assert found.settled == (busy == 0 or (busy - 1) * BETWEEN_S < most_s)
    assert found.waited_s == pytest.approx(min(busy * BETWEEN_S, most_s), abs=0.1)
    assert bool(found.why) == (not found.settled)


def test_what_is_still_going_on_is_said(golden: Golden) -> None:
    found, _ = waited([BUSY], 10.0)
    golden(found.why)
    assert (found.load, found.pressure, found.jobs) == (3.0, {"cpu": 0.4, "io": 0.02}, 2)


def test_what_is_not_known_is_not_waited_for() -> None:
    assert waited([Busy()], 10.0)[0] == BootState(0.0, True, None, {}, None)


def test_load_counts_by_the_cpu() -> None:
    assert Busy(load=3.0, cpus=8).reasons() == []
    assert Busy(load=5.0, cpus=8).reasons() == ["load 5 on 8 CPUs"]


@pytest.mark.parametrize(("text", "seconds"), [("", 180.0), ("0", 0.0), ("7.5", 7.5)])
def test_how_long_to_wait_may_be_said(text: str, seconds: float) -> None:
    assert most_seconds({"ETUDE_SETTLE_S": text}) == most_seconds({"ETUDE_SETTLE_S": str(seconds)}) == seconds
    assert most_seconds({}) == 180.0


@pytest.mark.parametrize("text", ["-1", "x", "inf", "nan"])
def test_a_wait_that_is_no_number_of_seconds_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="ETUDE_SETTLE_S"):
        most_seconds({"ETUDE_SETTLE_S": text})


def test_a_machine_is_read_from_proc(tmp_path: Path) -> None:
    for name, text in {
        "proc/loadavg": "1.25 0.60 0.30 2/120 900\n",
        "proc/pressure/cpu": "some avg10=12.50 avg60=3.00 avg300=1.00 total=1\nfull avg10=0.00 total=0\n",
        "proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=9.00 total=0\n",
        "sys/devices/system/cpu/online": "0-3\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert read_busy(tmp_path, lambda: 4) == Busy(1.25, {"cpu": 0.125, "io": 0.0}, 4, 4)
    assert read_busy(tmp_path / "none", lambda: None).load is None


@pytest.mark.parametrize(
    ("said", "jobs"),
    [
        ("NJobs=3\nSystemState=starting\n", 3),
        ("NJobs=0\nSystemState=starting\n", 1),
        ("NJobs=0\nSystemState=running\n", 0),
        ("NJobs=2\nSystemState=degraded\n", 2),
        ("SystemState=degraded\nNJobs=0\n", 0),
        ("", None),
    ],
)
def test_a_system_that_is_starting_has_a_job_left(said: str, jobs: int | None) -> None:
    assert jobs_of(said) == jobs
