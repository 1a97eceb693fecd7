"""bench/recording.py: its loops make the calls that they say, what is printed is read right, the judgement is right."""

import importlib
import os
import re
import struct
import subprocess
import sys

import pytest

from support.places import BENCH

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    calls, recorder, recording, whole, work, rows = map(
        importlib.import_module,
        (
            "recordings.calls",
            "recordings.recorder",
            "recording",
            "recordings.whole",
            "recordings.work",
            "rows",
        ),
    )

SUMMARY = """\
etude record: 14 of 15 reads and 3 of 3 writes that the kernel counted
etude record: x.trace: 24705 calls of 1 processes, 108195 bytes (4.38 a call)
"""
INCOMPLETE = "etude record: incomplete: thread 1 of process 0: 14 of 15 reads, 3 of 3 writes\n"
LEFT = "etude record: /lib/x.so: 1 places that make calls could not be changed; etude script --images lists them\n"


@pytest.mark.needs_program("strace")
def test_the_mixed_loop_makes_fifteen_calls_eight_of_them_by_stdio(tmp_path):
    def counts(loops):
        log = tmp_path / f"{loops}.txt"
        words = ["strace", "-o", log, rows.peer("call_loops"), "mixed", str(15 * loops), "-1", tmp_path]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        names = re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)
        return {name: names.count(name) for name in set(names)}

    few, many = counts(10), counts(19)  # with a tenth more, and one, before the clock is read: 12 and 21
    # mkstemp draws its name by getrandom, as often as it takes.
    names = {name for name in many if many[name] != few.get(name) and name != "getrandom"}
    grown = {name: (many[name] - few[name]) / 9 for name in names}
    assert grown == {"openat": 3, "newfstatat": 3, "read": 2, "write": 2, "lseek": 2, "close": 3}
    assert not list(tmp_path.glob("call_loops-*"))


def test_symbols_show_less_than_half_of_the_calls():
    assert calls.symbols_seen() == "7 of 15 calls seen"


@pytest.mark.parametrize("words", [[], ["pread", "0", "-1", "/tmp"], ["other", "5", "-1", "/tmp"]])
def test_a_loop_that_is_not_there_is_refused(words):
    done = subprocess.run([rows.peer("call_loops"), *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage" in done.stderr


def test_the_graph_loader_finds_all_edges(tmp_path):
    loader, edges = rows.peer("graph_loader", "-pthread"), tmp_path / "edges"
    subprocess.run([loader, "make", "10001", edges], check=True)
    done = subprocess.run(
        [loader, "load", "3", edges, tmp_path / "out"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "65536 vertices, 10001 edges\n"
    degrees = struct.unpack(f"<{3 * 65536}I", (tmp_path / "out").read_bytes())
    assert sum(degrees) == 10001


def test_what_the_recorder_names_as_missing_is_told():
    found = recorder.said("a program's own words\n" + INCOMPLETE + LEFT + SUMMARY)
    assert (found.reads, found.kernel_reads, found.writes, found.kernel_writes) == (14, 15, 3, 3)
    assert not found.complete
    assert [line.split(":")[0] for line in found.named] == ["incomplete", "/lib/x.so"]
    assert not recorder.said(SUMMARY).complete
    assert recorder.said(SUMMARY.replace("15", "14")).complete
    assert not recorder.said(INCOMPLETE + SUMMARY.replace("15", "14")).complete
    assert "; /lib/x.so: 1 places" in whole.told(found)


@pytest.mark.parametrize("text", ["", SUMMARY * 2])
def test_what_is_not_one_summary_is_refused(text):
    with pytest.raises(ValueError, match=r"^[02] summaries"):
        recorder.said(text)


def added(tsc, vdso, strace=25000.0):
    parties = {
        "plain": 400.0,
        "again": 0.5,
        "tsc": tsc,
        "vdso": vdso,
        "preload_tsc": 15.0,
        "preload_vdso": 40.0,
    }
    values = {
        name: [value] * 3 for name, value in (parties | {"strace": strace, "strace_seccomp": 26000.0}).items()
    }
    return dict.fromkeys(calls.LOOPS, values)


def judged(found, what):
    return [row.reached for row in found if what in row.what and row.reached is not None]


def test_what_is_added_to_a_call_is_judged_by_its_clock_and_beside_strace():
    found = calls.rows(added(35, 60))
    assert judged(found, "P, ") == [True, True, True]
    assert judged(found, "G, ") == [False, False]
    assert judged(calls.rows(added(36, 61)), "P, ") == [False, False, True]
    assert judged(calls.rows(added(35, 60, strace=5900)), "P, ") == [True, True, False]
    assert judged(calls.rows(added(-2, 3)), "G, ") == [True, True]


def test_a_peer_that_is_not_installed_has_a_row_that_says_so():
    missing = [row.value for row in calls.rows(added(1, 1)) if "bpftrace" in row.what]
    assert missing == ["not installed (packaging/debian-packages.txt)"] * len(calls.LOOPS)


def found(events=1000, recorded_s=2.0, cpu_s=2.0):
    twice = [recorded_s] * 2, [2.0] * 2, [cpu_s] * 2
    return work.Found([2.0] * 2, *twice, events, 4, 9.0)


@pytest.mark.parametrize(
    ("events", "recorded", "reached"),
    [(1000, 2.03, True), (1000, 2.05, False), (500_000, 2.09, True), (500_000, 2.12, False)],
    ids=["within", "beyond", "many calls, within", "many calls, beyond"],
)
def test_run_time_is_judged_by_how_many_calls_there_are(events, recorded, reached):
    row = work.work_row("x", found(events, recorded))
    assert row.reached is reached
    assert "4 execs" in row.what


@pytest.mark.parametrize(
    ("name", "cpu_s", "reached"),
    [("tar", 2.5, True), ("tar", 2.7, False), ("git", 2.5, False), ("x", 9.0, None)],
)
def test_cpu_time_is_judged_where_there_is_a_figure_to_reach(tmp_path, name, cpu_s, reached):
    row = work.cpu_row(work.Workload("x", "true", tmp_path / name), found(cpu_s=cpu_s))
    assert row.reached is reached


def test_cpu_time_is_that_of_all_processes(tmp_path):
    place = recorder.Scratch(tmp_path, tmp_path)
    begun = work.cpu_s()
    loop = "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done) & wait"
    work.elapsed_s(["/bin/sh", "-c", loop], work.Workload("x", loop, tmp_path), place)
    assert work.cpu_s() - begun > 0.01


def test_a_workload_starts_alike_each_time(tmp_path):
    log = tmp_path / "log"
    once = work.Workload("x", f"echo run >> {log}", tmp_path, lambda: log.unlink(missing_ok=True))
    place = recorder.Scratch(tmp_path, tmp_path)
    for _ in range(3):
        work.elapsed_s(["/bin/sh", "-c", once.command], once, place)
    assert log.read_text() == "run\n"


def test_the_place_of_the_programs_is_put_back():
    before = os.sched_getaffinity(0)
    with rows.on_cpus({max(before)}):
        assert os.sched_getaffinity(0) == {max(before)}
    assert os.sched_getaffinity(0) == before


@pytest.mark.more
@pytest.mark.needs_program("strace", "fio", "sqlite3", "git", package="strace fio sqlite3 git")
def test_the_page_says_where_it_was_measured_and_what_is_complete(tmp_path):
    page = tmp_path / "page.md"
    words = [
        sys.executable,
        BENCH / "recording.py",
        "--rounds",
        "2",
        "--parts",
        "whole",
        "--no-fifo",
        "--record",
        page,
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert page.exists(), done.stderr
    assert page.read_text(encoding="utf-8") == done.stdout
    complete = re.findall(r"^\| completeness: .*\| (yes|NO|–) \|$", done.stdout, re.MULTILINE)
    assert len(complete) == 10
    assert "NO" not in complete
    assert "python bench/recording.py --rounds 2" in done.stdout
