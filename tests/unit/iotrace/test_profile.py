"""What a trace amounts to, in figures worked out by hand from tests/data/copy.strace."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from etude.figures.iotrace import figure_of
from etude.iotrace.document import document
from etude.iotrace.profile import Profile, profile_of
from support.golden import Golden
from support.traces import Make


def test_calls_have_counts_bytes_errors_and_times(copied: Profile) -> None:
    calls = {each.name: each for each in copied.calls}
    assert len(calls) == len(copied.calls) == 12
    assert (calls["read"].count, calls["read"].bytes, calls["read"].errors) == (4, 4096 + 4096 + 50 + 7, {})
    assert calls["read"].time_s == pytest.approx(0.0061)
    assert (calls["read"].median_s, calls["read"].longest_s) == (pytest.approx(0.001), pytest.approx(0.004))
    assert (calls["write"].count, calls["write"].errors) == (6, {9: 1})
    assert (calls["openat"].count, calls["openat"].bytes, calls["openat"].errors) == (7, 0, {2: 1})
    assert [each.time_s for each in copied.calls] == sorted(
        (each.time_s for each in copied.calls), reverse=True
    )


def test_reads_and_writes_have_sizes_and_order(copied: Profile) -> None:
    reads, writes = copied.reads, copied.writes
    assert (reads.count, reads.bytes) == (7, 4096 + 4096 + 100 + 100 + 50 + 7 + 1000)
    assert list(reads.sizes) == [(4, 1), (32, 1), (64, 2), (512, 1), (4096, 2)]
    assert (reads.smallest, reads.largest) == (7, 4096)
    assert (reads.judged, reads.sequential) == (5, 3)
    assert (writes.count, writes.bytes) == (7, 4096 + 4096 + 10 + 10 + 7 + 1000)
    assert (writes.judged, writes.sequential) == (4, 4)


def test_files_have_what_was_done_to_them_under_all_their_descriptors(copied: Profile) -> None:
    files = {each.path: each for each in copied.files}
    assert (files["/data/in"].count, files["/data/in"].read_bytes) == (9, 8442)
    assert (files["/data/in"].judged, files["/data/in"].sequential) == (5, 3)
    assert (files["/data/out"].written_bytes, files["/data/out"].read_bytes) == (9192, 0)
    assert (files["/data/dir/below"].read_bytes, files["/data/dir/below"].written_bytes) == (1000, 0)
    assert (files["(pipe)"].read_bytes, files["(pipe)"].written_bytes) == (7, 7)
    assert files["/data/nosuch"].errors == 1
    assert files["/data/dir/gone"].count == 1
    assert "" not in files


def test_processes_have_parents_programs_and_lives(copied: Profile) -> None:
    first, second = copied.processes
    assert (first.parent, second.parent, second.process) == (None, 0, 1)
    assert (list(first.command), list(second.command)) == (["copy", "in", "out"], ["echo"])
    assert (first.count, second.count, first.threads) == (21, 8, 1)
    assert (second.written_bytes, second.read_bytes) == (27, 0)
    assert second.life_s == pytest.approx(0.014, abs=0.0005)


def test_the_run_is_calls_and_the_rest(copied: Profile) -> None:
    assert copied.run_s == pytest.approx(0.061)
    assert copied.in_calls_s + copied.recording_s + copied.outside_s == pytest.approx(copied.run_s)
    over = copied.over_time
    assert over.in_calls_s.sum() == pytest.approx(copied.in_calls_s)
    assert over.read_s.sum() == pytest.approx(copied.reads.time_s)
    assert (over.read_s + over.write_s + over.other_s).sum() == pytest.approx(
        sum(c.time_s for c in copied.calls)
    )


def test_messages_are_no_bytes(make: Make) -> None:
    sent = "1 1.000000 sendmmsg(3, 0x7ffe00000000, 2, 0) = 2 <0.000010>\n"
    found = profile_of(make(sent))
    assert (found.writes.count, found.writes.bytes, found.calls[0].bytes) == (1, 0, 0)


def test_what_recording_costs_is_taken_off_the_time_outside_of_calls(copied: Profile) -> None:
    header = {**copied.trace.header, "own_cost_ns": {"*": 1000.0, "openat": 11000.0}}
    found = profile_of(replace(copied.trace, header=header))
    assert found.recording_s == pytest.approx(22 * 1e-6 + 7 * 11e-6)
    assert found.outside_s == pytest.approx(copied.outside_s - found.recording_s)


def test_what_is_missing_is_named(copied: Profile, golden: Golden) -> None:
    lacking = {"syscr": 5, "syscw": 6, "rchar": 1, "wchar": 1}
    meta = [
        *copied.trace.meta,
        {"what": "unrecorded", "process": 1, "why": "32 bits"},
        {"what": "dropped", "thread": 0, "events": 1234},
        {"what": "counters", "thread": 0, "kernel": lacking, "recorded": {**lacking, "syscr": 4}},
        {"what": "counters", "thread": 1, "kernel": lacking, "recorded": lacking},
        {"what": "something new"},
    ]
    found = profile_of(replace(copied.trace, meta=meta))
    unrecorded, dropped, counters = found.missing
    assert unrecorded == "process 1: 32 bits"
    assert dropped.startswith("thread 0: 1,234 ")
    assert re.findall(r"\d+", counters) == ["0", "4", "6", "5", "6"]
    golden("\n".join(found.missing))
    assert (found.kernel, found.recorded) == ({"syscr": 10, "syscw": 12}, {"syscr": 9, "syscw": 12})


def test_a_trace_without_calls_is_a_profile_of_nothing(copied: Profile) -> None:
    trace = copied.trace
    none = replace(
        trace,
        **{
            name: getattr(trace, name)[:0]
            for name in (
                *("start_ns", "duration_ns", "result", "thread", "call"),
                *("process", "file", "source", "opening", "place", "appends"),
            )
        },
        arguments=tuple(column[:0] for column in trace.arguments),
        texts=tuple(column[:0] for column in trace.texts),
        footer=None,
        meta=(),
    )
    found = profile_of(none)
    assert (found.calls, found.files, found.reads.count, found.run_s) == ([], [], 0, 0.0)
    json.dumps(document(found))
    figure_of(found)


def test_the_document_has_one_entry_a_name_in_the_kernels_words(copied: Profile) -> None:
    made = json.loads(json.dumps(document(copied)))
    assert (made["format"], made["version"]) == ("etude-profile", 1)
    write = made["calls"]["write"]
    assert {name: write[name] for name in ("count", "bytes", "errors")} == {
        "count": 6,
        "bytes": 8219,
        "errors": 1,
    }
    assert write["time_s"] == pytest.approx(0.00431)
    assert write["errors_by_name"] == {"EBADF": 1}
    assert "pread64" in made["calls"]
    assert len(document(copied, top=2)["files"]) == 2


def test_the_figure_ends_at_the_time_of_all_reads_and_all_writes(copied: Profile) -> None:
    cumulative, share = figure_of(copied).panels
    ends = {curve.name: curve.points[-1].y for curve in cumulative.layers}
    unit = {"s": 1.0, "ms": 1e-3}[cumulative.y.label.rpartition(" ")[2]]
    alone = sum(each.time_s for each in copied.calls if each.name == "write")
    assert ends == pytest.approx({"read": copied.reads.time_s / unit, "write": alone / unit})
    for curve in cumulative.layers:
        assert (np.diff([point.y for point in curve.points]) >= 0).all()
    assert all(0 <= point.y <= 1 for point in share.layers[0].points)


def test_waits_of_threads_for_each_other_are_no_time_within_calls(make: Make) -> None:
    trace = make(
        '10 100.000000 execve("/bin/x", ["x"], 0x7ff) = 0 <0.000100>\n'
        '10 100.100000 read(0, ""..., 10) = 10 <0.001000>\n'
        "10 100.200000 futex(0x7f01, FUTEX_WAIT_PRIVATE, 2, NULL) = 0 <1.000000>\n"
        '10 101.300000 read(0, ""..., 10) = 10 <0.001000>\n'
        "10 101.400000 +++ exited with 0 +++\n"
    )
    assert "futex" in {trace.names[code] for code in trace.call.tolist()}
    profile = profile_of(trace)
    assert [each.name for each in profile.calls] == ["read"]
    assert profile.in_calls_s == pytest.approx(0.002)
    found = document(profile)
    calls = sum(each["count"] for each in found["calls"].values())
    assert (found["events"], found["waits"], calls) == (trace.events, 1, trace.events - 1)
