"""Workers that prepare themselves first: `etude-engine measure --barrier` on the real engine."""

from __future__ import annotations

import calendar
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from etude.engine import Engine, Launch, Worker
from etude.program import engine_path

pytestmark = [pytest.mark.quick, pytest.mark.beside]

MEASURE = "etude-engine measure --barrier"
STAMP = "date +%s%N"
NS = 1_000_000_000


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine() as running:
        yield running


@dataclass(frozen=True)
class Bench:
    """Shell workers in one directory. `$N` is APTHREAD in two digits, `$now` prints the time of day, ns."""

    engine: Engine
    directory: Path

    def run(self, scripts: Sequence[str], **options: Any) -> list[dict[str, Any]]:
        """One trial, a worker a script."""
        return self.engine.launch(
            Launch(
                tuple(self._worker(number, script) for number, script in enumerate(scripts, 1)),
                timeout_s=60.0,
                barrier="inside",
                capture_bytes=65536,
                **options,
            )
        )

    def _worker(self, number: int, script: str) -> Worker:
        path = f"{os.path.dirname(engine_path())}:{os.environ['PATH']}"
        env = {"APTHREAD": str(number), "N": f"{number:02}", "PATH": path, "APLOG": f"{number}.res"}
        env["now"] = STAMP
        return Worker(("sh", "-c", script), env, str(self.directory), stderr="capture")

    def starts(self, number: int) -> list[int]:
        """When each measured command of a worker started: time of day, ns."""
        return [_nanoseconds(block["start"]) for block in self.blocks(number)]

    def blocks(self, number: int) -> list[dict[str, str]]:
        text = (self.directory / f"{number}.res").read_text()
        return [
            dict(line.split(" = ", 1) for line in block.splitlines())
            for block in text.split("[measurement]\n")[1:]
        ]

    def stamps(self, number: int) -> list[int]:
        """What a worker wrote by itself: time of day, ns."""
        return [int(line) for line in (self.directory / f"{number}.stamps").read_text().split()]


@pytest.fixture
def bench(engine: Engine, tmp_path: Path) -> Bench:
    return Bench(engine, tmp_path)


def _nanoseconds(start: str) -> int:
    whole, fraction = start.removesuffix("Z").split(".")
    assert len(fraction) == 9, start
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * NS + int(fraction)


def all_well(rows: list[dict[str, Any]]) -> bool:
    return all(row["exit_status"] == 0 and not row["cancelled"] and "notes" not in row for row in rows)


@pytest.mark.parametrize("workers", [1, 2, 16])
def test_no_worker_begins_its_measured_part_before_the_last_has_arrived(bench: Bench, workers: int) -> None:
    script = f"sleep 0.$N; $now > $APTHREAD.stamps; {MEASURE} -- true"
    rows = bench.run([script] * workers)
    assert all_well(rows), rows
    last_arrival = max(bench.stamps(number)[0] for number in range(1, workers + 1))
    for number in range(1, workers + 1):
        (start,) = bench.starts(number)
        assert start > last_arrival, number


def test_each_of_three_measured_commands_waits_for_all(bench: Bench) -> None:
    workers = 4
    script = f"for i in 1 2 3; do sleep 0.$N; $now >> $APTHREAD.stamps; {MEASURE} -- sleep 0.0$i; done"
    assert all_well(bench.run([script] * workers))
    numbers = range(1, workers + 1)
    for turn in range(3):
        last_arrival = max(bench.stamps(number)[turn] for number in numbers)
        assert min(bench.starts(number)[turn] for number in numbers) > last_arrival
    assert all(len(bench.starts(number)) == 3 for number in numbers)


def test_the_two_stamps_of_a_start_are_one_instant(bench: Bench) -> None:
    """The block's time of day and monotonic time, against both clocks as they are here."""
    before = time.time_ns(), time.monotonic_ns()
    assert all_well(bench.run([f"{MEASURE} -- true"] * 2))
    after = time.time_ns(), time.monotonic_ns()
    for number in (1, 2):
        (block,) = bench.blocks(number)
        assert list(block)[-2:] == ["start", "start_ns"]
        assert before[0] <= _nanoseconds(block["start"]) <= after[0]
        assert before[1] <= int(block["start_ns"]) <= after[1]


@pytest.mark.parametrize(
    ("end", "how"), [("exit 3", "exit status 3"), ("kill -KILL $$", "signal 9"), ("exit 0", "exit status 0")]
)
def test_a_worker_that_ends_early_ends_the_trial_with_its_reason(bench: Bench, end: str, how: str) -> None:
    waits = f"echo > $APTHREAD.here; {MEASURE} -- touch measured; sleep 60"
    early = f"until [ -e 1.here ] && [ -e 3.here ]; do sleep 0.01; done; sleep 0.2; {end}"
    rows = bench.run([waits, early, waits])
    reason = f"worker 1 ({how}) ended before all workers had reached the barrier"
    assert [row["notes"] for row in rows] == [[reason]] * 3
    assert [row["cancelled"] for row in rows] == [True, False, True]
    told = "aptime: the barrier was broken: worker 1 ended before all had reached it\n"
    assert [row["stderr"]["tail"] for row in (rows[0], rows[2])] == [told, told]
    assert not (bench.directory / "measured").exists()


def test_a_worker_that_comes_after_anothers_end_is_sent_away(bench: Bench) -> None:
    late = f"trap '' TERM; while [ ! -e ended ]; do sleep 0.01; done; sleep 0.2; {MEASURE} -- touch measured"
    rows = bench.run(["echo > ended", f"{late}; echo $? > status"], grace_s=20.0)
    assert (bench.directory / "status").read_text() == "125\n"
    (note,) = rows[1]["notes"]
    assert note.startswith("worker 0 (exit status 0)")
    assert "barrier" in note
    assert not (bench.directory / "measured").exists()


def test_workers_that_are_past_their_last_barrier_end_when_they_like(bench: Bench) -> None:
    script = f"{MEASURE} -- sleep 0.$N; {MEASURE} -- sleep 0.$N"
    for _ in range(3):
        assert all_well(bench.run([script] * 6))
    assert all(len(bench.starts(number)) == 6 for number in range(1, 7))


def test_a_worker_alone_has_no_barrier_to_wait_at(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all_well(bench.run([f'test -z "${{APIPCKEY+set}}" && {MEASURE} -- true']))
    monkeypatch.setenv("APIPCKEY", "/proc/1/fd/0:0")
    with Engine() as nested:
        assert all_well(Bench(nested, bench.directory).run([f"{MEASURE} -- true"]))


def test_nothing_of_a_barrier_is_left_in_the_engine(bench: Bench) -> None:
    def descriptors() -> set[str]:
        directory = f"/proc/{bench.engine.pid}/fd"
        return {os.readlink(f"{directory}/{fd}") for fd in os.listdir(directory)}

    before = descriptors()
    assert all_well(bench.run([f"{MEASURE} -- true"] * 3))
    patience = 1000
    while descriptors() != before and (
        patience := patience - 1
    ):  # the rows come just before the end of a request
        time.sleep(0.01)
    assert descriptors() == before
