"""bench/replays/fio.py: one schedule as a script and as a log of fio, and how far from it calls began."""

import importlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.places import BENCH
from support.traces import imported

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    fio, steps = map(importlib.import_module, ("replays.fio", "replays.steps"))

LOG = fio.Log(
    [
        fio.Move(700, "f0", True, 0, 4096),
        fio.Move(900, "f1", False, 8192, 100),
        fio.Move(900, "f0", True, 4096, 10),
    ]
)
RECORDED = """\
1 0.000000 openat(AT_FDCWD, "/lib/libc.so", O_RDONLY) = 3 <0.000001>
1 0.000010 pread64(3, "", 64, 64) = 64 <0.000001>
1 0.000020 close(3) = 0 <0.000001>
1 0.000030 openat(AT_FDCWD, "/x/f0", O_RDWR) = 3 <0.000001>
1 0.000040 openat(AT_FDCWD, "/x/f1", O_RDWR) = 4 <0.000001>
1 0.500000 pread64(3, "", 4096, 0) = 4096 <0.000001>
1 0.500190 pwrite64(4, "", 100, 8192) = 100 <0.000001>
1 0.500203 pread64(3, "", 10, 4096) = 10 <0.000001>
"""

ticks = st.lists(st.integers(0, 10**6), min_size=1, max_size=30).map(sorted)


def test_the_first_call_is_due_when_files_are_open_and_the_others_as_long_after_it_as_before():
    assert [move.tick_us - fio.LEAD_US for move in fio.due(LOG).moves] == [0, 200, 200]


def test_a_script_holds_the_calls_of_the_log_at_its_times():
    assert fio.script_of(fio.due(LOG)).splitlines() == [
        "etude script 1",
        'file "f0" 4106',
        'file "f1" 8292',
        'openat(AT_FDCWD, "f0", O_RDWR) = 3 <0.0>',
        'openat(AT_FDCWD, "f1", O_RDWR) = 4 <0.0>',
        f"compute({fio.LEAD_US / 1e6:.6f})",
        "pread64(3, 4096, 0) = 4096 <0.0>",
        "compute(0.000200)",
        "pwrite64(4, 100, 8192) = 100 <0.0>",
        "pread64(3, 10, 4096) = 10 <0.0>",
    ]


@given(ticks)
def test_computing_adds_up_to_the_times_of_the_log(ticks):
    log = fio.Log([fio.Move(tick, "f0", True, 0, 1) for tick in ticks])
    now, found = 0, []
    for line in fio.script_of(log).splitlines():
        if computed := re.fullmatch(r"compute\((\d+)\.(\d{6})\)", line):
            now += int(computed[1] + computed[2])
        elif line.startswith("pread64"):
            found.append(now)
    assert found == ticks


@given(ticks, st.integers(0, 10**9), st.data())
def test_an_error_is_by_the_first_call_and_counts_to_both_sides(ticks, begin, data):
    due = 1000 * np.array(ticks)
    off = np.array([0, *(data.draw(st.integers(-500, 500)) for _ in ticks[1:])])
    assert fio.errors_of(begin + due + off, due).tolist() == np.abs(off).tolist()


def test_calls_on_the_files_of_the_schedule_are_found_in_a_recording(tmp_path):
    text = tmp_path / "text"
    text.write_text(RECORDED)
    errors = fio.start_errors(LOG, imported(text, tmp_path / "x.trace"))
    assert errors.tolist() == [0, 10_000, 3_000]
    text.write_text(RECORDED.replace("100, 8192) = 100", "100, 8192) = 50"))
    with pytest.raises(SystemExit, match="not the 3 of"):
        fio.start_errors(LOG, imported(text, tmp_path / "y.trace"))


def test_random_times_are_the_same_each_time_and_lie_within_the_file():
    log = fio.by_chance(fio.Chance(500))
    assert log == fio.by_chance(fio.Chance(500))
    steps_us = np.diff([move.tick_us for move in log.moves])
    assert (steps_us >= 0).all()
    assert 150 < steps_us.mean() < 250
    assert {move.reads for move in log.moves} == {True, False}
    assert max(move.begin + move.bytes for move in log.moves) <= 4096 * fio.Chance(1).blocks


@pytest.mark.needs_program("fio")
@pytest.mark.parametrize(("error", "reached"), [(0.99, True), (1.01, False)], ids=["less", "more"])
def test_a_tenth_of_fios_error_is_reached_by_the_median_of_pairs(error, reached, monkeypatch, tmp_path):
    place = steps.Place(tmp_path, tmp_path)
    played = []
    monkeypatch.setattr(fio, "made_roll", lambda _: None)
    monkeypatch.setattr(fio, "replayed", lambda *_, options: played.append(options))
    monkeypatch.setattr(fio, "recorded_fio", lambda *_: played.append("fio"))
    monkeypatch.setattr(
        fio, "start_errors", lambda *_: np.full(10, 10_000.0 if played[-1] == "fio" else 1000 * error)
    )
    row = fio.schedule_row("x", LOG, place, 3)
    assert row.reached is reached
    assert row.peer.startswith("fio read_iolog: 10 µs")
    assert played.count("fio") == played.count(("--timing", "absolute")) == 3
