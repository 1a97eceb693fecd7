"""One trial over several engines: real ones, all on this machine, as if they were on several."""

from __future__ import annotations

import itertools
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.engine import Engine, Launch, Worker
from etude.machine.remote.synchronized_start import (
    ROUND_TRIPS,
    IdleHost,
    Offset,
    Part,
    measure_offset,
    run_together,
)


@pytest.fixture
def engines() -> Iterator[list[Engine]]:
    made = [Engine() for _ in range(3)]
    yield made
    for engine in made:
        engine.close()


def sh(script: str, **options: object) -> Launch:
    return Launch((Worker(("sh", "-c", script)),), release="told", grace_s=1.0, **options)  # type: ignore[arg-type]


def parts(engines: list[Engine], *launches: Launch) -> list[Part]:
    return [Part(f"h{at}", engines[at], launch) for at, launch in enumerate(launches)]


def test_all_start_at_one_instant_which_each_is_told_on_its_own_clock(engines: list[Engine]) -> None:
    told = parts(engines, sh("exit 0"), sh("exit 3"))
    told[1].offset = Offset(40_000_000, 0)  # as if its clock were 40 ms ahead: it starts 40 ms later on ours
    assert run_together(told).why is None
    first, second = (part.rows[0] for part in told if part.rows)
    assert [first["exit_status"], second["exit_status"]] == [0, 3]
    assert second["start_ns"] - first["start_ns"] > 20_000_000


def test_the_instant_lies_ahead_by_round_trips_of_the_farthest_host(
    engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    instants = []

    def at_once(engine: Engine, number: int, at_ns: int) -> None:
        instants.append(at_ns)
        release(engine, number, 0)

    release = Engine.release
    monkeypatch.setattr(Engine, "release", at_once)
    under_way = parts(engines, sh("exit 0"), sh("exit 0"))
    far_ns = 10**12
    under_way[1].offset = Offset(0, far_ns)
    began_ns = time.monotonic_ns()
    assert run_together(under_way).why is None
    assert instants[0] == instants[1] >= began_ns + 2 * ROUND_TRIPS * far_ns


def test_an_engine_that_dies_fails_the_trial_and_the_others_are_cancelled(
    engines: list[Engine], tmp_path: Path
) -> None:
    began = tmp_path / "began"
    awaits = f"while [ ! -e {began} ]; do sleep 0.01; done"
    under_way = parts(
        engines,
        sh(f"touch {began}; exec sleep 1000"),
        sh(f"{awaits}; kill -9 {engines[1].pid}; sleep 1000"),
    )
    ended = run_together(under_way)
    assert ended.lost == ["h1"]
    assert ended.why is not None
    assert "signal 9" in ended.why
    assert under_way[1].rows is None
    assert under_way[0].rows is not None
    assert under_way[0].rows[0]["cancelled"]


def test_so_does_one_that_only_stands_beside(engines: list[Engine]) -> None:
    under_way = parts(engines, sh(f"kill -9 {engines[2].pid}; sleep 1000"))
    ended = run_together(under_way, [IdleHost("server", engines[2])])
    assert ended.lost == ["server"]
    assert under_way[0].rows is not None
    assert under_way[0].rows[0]["cancelled"]


def test_an_engine_that_does_not_keep_its_time_out_is_given_up(
    engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time is faked: the clock stands still until the engine is stopped, and then is far ahead at each look."""
    poll = select.poll
    monkeypatch.setattr(select, "poll", lambda: Impatient(poll()))
    ahead = itertools.count(100.0, 100.0)
    under_way = parts(engines, sh(f"kill -STOP {engines[0].pid}; exec sleep 1000", timeout_s=5.0))
    try:
        ended = run_together(under_way, clock=lambda: next(ahead) if stopped(engines[0].pid) else 0.0)
    finally:
        os.kill(engines[0].pid, signal.SIGCONT)
    assert ended.lost == ["h0"]
    assert ended.why is not None
    assert ended.why.startswith("h0: ")
    assert "10 s" in ended.why


class Impatient:
    """Looks again at once, as who cannot know how fast a faked clock runs."""

    def __init__(self, poll: select.poll) -> None:
        self.poll_ = poll
        self.register = poll.register

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        return self.poll_.poll(min(timeout_ms, 10))


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_who_can_never_come_sends_those_away_who_wait_inside(engines: list[Engine]) -> None:
    waits = 'exec "$(dirname "$0")/etude-engine" measure --barrier -o /dev/null -- true'
    program = engines[0]._program
    waiting = Launch((Worker(("sh", "-c", waits, program)),), release="told", barrier="inside", grace_s=1.0)
    under_way = parts(engines, waiting, sh("exit 0", barrier="inside"))
    ended = run_together(under_way)
    assert ended.lost == []
    assert ended.why is not None
    assert "h1" in ended.why
    assert "barrier" in ended.why


def test_one_that_cannot_be_started_is_a_row_and_ends_the_others(engines: list[Engine]) -> None:
    missing = Launch((Worker(("no-such-program",)),), release="told")
    under_way = parts(engines, sh("exit 0"), missing)
    ended = run_together(under_way)
    assert ended.lost == []
    assert ended.why is not None
    assert "h1" in ended.why
    assert "no-such-program: " in ended.why
    assert under_way[1].rows is not None
    assert under_way[1].rows[0]["error"]


def test_the_clock_of_an_engine_on_this_machine_is_ours(engines: list[Engine]) -> None:
    found = measure_offset(lambda: int(engines[0].ask("clock", within_s=10)["clock_ns"]))
    assert abs(found.offset_ns) <= found.error_ns
