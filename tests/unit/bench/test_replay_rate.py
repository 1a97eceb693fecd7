"""bench/replays/rate.py: scripts into lists of calls, and the loop in C that makes them."""

import importlib
import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.places import BENCH

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    rate, rows = map(importlib.import_module, ("replays.rate", "rows"))

SCRIPT = """\
etude script 1
# recorded: open("x") = 3
file "in" 4096
compute(0.000001000)
openat(AT_FDCWD, "/in", O_RDONLY|O_CLOEXEC) = 7 <0.000001000>
newfstatat(7, NULL, AT_EMPTY_PATH) = 0
mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 7, 0) = 0x7f0000001000
pread64(7, 64, 128) = 64
access("no such", F_OK) = -1 ENOENT
creat("out", 0644) = 3
fcntl(3, F_DUPFD, 10) = 10
close(3) = 0
write(10, 5) = 5
lseek(7, 8, SEEK_SET) = 8
read(7, 100000) = 4088
"""
LIST = [
    ["openat", "0", "7", "n-100", "pin", f"n{os.O_RDONLY | os.O_CLOEXEC}", "n0"],
    ["newfstatat", "0", "-1", "f7", "n0", "b", "n4096"],
    ["pread64", "0", "-1", "f7", "b", "n64", "n128"],
    ["access", "1", "-1", "pno such", "n0"],
    ["creat", "0", "3", "pout", f"n{0o644}"],
    ["fcntl", "0", "10", "f3", "n0", "n10"],
    ["close", "0", "-1", "f3"],
    ["write", "0", "-1", "f10", "b", "n5"],
    ["lseek", "0", "-1", "f7", "n8", "n0"],
    ["read", "0", "-1", "f7", "b", "n100000"],
]


def listed(script):
    return rate.list_of(list(rate.calls_of(rate.without_memory(script))))


def made(script, directory):
    path = directory / "calls"
    path.write_text(listed(script))
    (directory / "stage").mkdir(exist_ok=True)
    command = [rows.peer("calls_loop"), path, directory / "stage"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_script_becomes_a_list_of_its_calls_without_those_about_memory():
    largest, *lines = listed(SCRIPT).splitlines()
    assert int(largest) == 100_000
    assert [line.split("\t") for line in lines] == LIST


def test_the_loop_makes_the_calls_of_its_list_by_descriptors_of_its_own(tmp_path):
    (tmp_path / "stage").mkdir()
    (tmp_path / "stage" / "in").write_bytes(bytes(4096))
    done = made(SCRIPT, tmp_path)
    seconds, calls, others = done.stdout.split()
    assert (calls, others) == (str(len(LIST)), "0"), done.stderr
    assert float(seconds) > 0
    assert (tmp_path / "stage" / "out").stat().st_size == 5


def test_calls_that_end_otherwise_are_counted(tmp_path):
    (tmp_path / "stage").mkdir()
    # Without the file, all that goes by its descriptor fails.
    assert made(SCRIPT, tmp_path).stdout.split()[1:] == ["10", "5"]


@given(st.lists(st.integers(0, 63), min_size=1, max_size=50))
def test_small_reads_stand_in_the_script_as_they_do_in_the_list(blocks):
    script = rate.preads(len(blocks), 4096)
    calls = list(rate.calls_of(script))
    reads = [call.arguments for call in calls if call.name == "pread64"]
    assert len(calls) == len(blocks) + 2
    assert all(words[:3] == ("f3", "b", "n64") for words in reads)
    assert all(int(words[3][1:]) in range(0, 4096, 64) for words in reads)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("statx(3, 0) = 0", "statx"),
        ('openat(AT_FDCWD, "a", O_NONE) = 3', "O_NONE"),
        ("fork(1)", "one thread"),
        ("1: close(3) = 0", "one thread"),
        ('unlink("a\\tb") = 0', "plain characters"),
    ],
    ids=["call", "flag", "fork", "thread", "path"],
)
def test_what_cannot_stand_in_a_list_is_said_with_its_line(line, said):
    with pytest.raises(SystemExit, match=f"line 2 .*{said}"):
        list(rate.calls_of(f"etude script 1\n{line}\n"))


def test_a_replay_that_made_other_calls_is_not_compared(monkeypatch):
    monkeypatch.setattr(
        rate,
        "replayed",
        lambda *_, **__: {"run_s": 2.0, "by_call": {"read": {"count": 3}, "close": {"count": 1}}},
    )
    assert rate.as_fast_as_possible(None, {"read": 3, "close": 1}) == 2.0
    with pytest.raises(SystemExit, match=r"\{'read': \(3, 4\)\}"):
        rate.as_fast_as_possible(None, {"read": 4, "close": 1})


@pytest.mark.parametrize(("name", "reach"), [("tar", 0.9), ("preads", 0.8)], ids=["tar", "preads"])
def test_a_rate_is_judged_by_the_median_over_pairs(name, reach, monkeypatch, tmp_path):
    monkeypatch.setattr(rate, "made_roll", lambda _: None)
    monkeypatch.setattr(rate, "looped", lambda *_: reach)
    place = importlib.import_module("replays.steps").Place(tmp_path, tmp_path)
    for replay_s, reached in ((1.001, False), (0.999, True)):
        monkeypatch.setattr(rate, "as_fast_as_possible", lambda *_, replay_s=replay_s: replay_s)
        row = rate.rate_row(name, "x", "etude script 1\nclose(3) = 0\n", place, 3)
        assert row.reached is reached
