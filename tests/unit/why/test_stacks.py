"""Stacks of the critical path: they add up to its causes, are read as they were written, and reach other programs."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError, UsageError
from etude.why.breakdown import by_file, by_place, by_process, call_rows
from etude.why.causes import Cause, Frame
from etude.why.critical_path import path_times
from etude.why.instruments import CallCount, Run
from etude.why.stack_export import SAMPLES, exporter_of, perf_script
from etude.why.stacks import (
    FILE,
    MeanStack,
    Sides,
    mean_stacks,
    read_stacks,
    write_stacks,
)
from etude.why.timeline import timeline_of

NAMES = st.text(max_size=4)
FRAMES = st.builds(Frame, NAMES, NAMES)
STACKS = st.dictionaries(
    st.tuples(NAMES, st.lists(FRAMES, max_size=4).map(tuple)),
    st.integers(0, 10**12).map(lambda n: n * 1e-9),
    max_size=4,
)
SIDE = st.lists(STACKS, max_size=3).map(tuple)
HOSTILE = [
    "</script>",
    "a;b",
    "f 5",
    "line\nend",
    '"quoted" & <b>',
    "# note",
    "operator()(int) 7 7",
    " ",
    "−é\u202e",
]


def stack(process: str, *symbols: str, a: float = 0.0, b: float = 0.0) -> MeanStack:
    return MeanStack(process, tuple(Frame(symbol, "/bin/p") for symbol in symbols), (a, b))


@given(st.tuples(SIDE, SIDE))
def test_stacks_are_read_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, kept: Sides) -> None:
    place = tmp_path_factory.mktemp("s")
    write_stacks(place, kept)
    read = read_stacks(place)
    assert read is not None
    for ours, theirs in zip(read, kept, strict=True):
        assert [dict(run) for run in ours] == [
            {key: pytest.approx(seconds, abs=1e-9) for key, seconds in run.items()} for run in theirs
        ]


def test_results_of_an_etude_that_kept_none_have_none(tmp_path: Path) -> None:
    assert read_stacks(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b'{"format":"etude-why-stacks","version":2,"frames":[],"stacks":[],"runs":[[],[]]}',
        b'{"format":"etude-why-stacks","version":1,"frames":[],"stacks":[["p",[0]]],"runs":[[],[]]}',
        b'{"format":"etude-why-stacks","version":1,"frames":[],"stacks":[],"runs":[[[[-1,5]]],[]]}',
    ],
    ids=["empty", "cut", "list", "newer", "no such frame", "no such stack"],
)
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
def test_an_edited_file_is_refused_with_its_name(tmp_path: Path, text: bytes, packed: bool) -> None:
    (tmp_path / FILE).write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(InputError, match=r"stacks\.json\.gz"):
        read_stacks(tmp_path)


def test_stacks_and_causes_are_the_same_time() -> None:
    lines = [
        "p 1/1 1.000000000:   PERF_RECORD_COMM exec: p:1/1 ",
        "p 1/1 1.200000000:   cpu-clock: ",
        "\t1f f (/bin/p)",
        "\t1f main (/bin/p)",
        "",
        "p 1/1 1.500000000:   sched:sched_switch: prev_comm=p prev_pid=1 prev_state=S ==> next_comm=x ",
        "\t1f schedule ([kernel.kallsyms])",
        "\t1f ksys_read ([kernel.kallsyms])",
        "\t1f do_syscall_64 ([kernel.kallsyms])",
        "\t1f main (/bin/p)",
        "",
        "p 1/1 2.000000000:   PERF_RECORD_SWITCH IN ",
        "p 1/1 2.100000000:   PERF_RECORD_SWITCH OUT preempt ",
        "p 1/1 2.400000000:   PERF_RECORD_SWITCH IN ",
        "p 1/1 2.500000000:   PERF_RECORD_EXIT(1:1):(0:0) ",
    ]
    times = path_times(timeline_of(lines))
    found = {tuple(f.symbol for f in frames): s for (_, frames), s in times.items()}
    assert found == {
        ("f", "main"): pytest.approx(0.7),
        ("schedule", "ksys_read", "do_syscall_64", "main"): pytest.approx(0.5),
        ("waiting for a CPU",): pytest.approx(0.3),
    }
    assert sum(times.values()) == pytest.approx(1.5)


def test_a_mean_counts_runs_that_lack_a_stack() -> None:
    f, g = (Frame("f", "/bin/p"),), (Frame("g", "/bin/p"), Frame("main", "/bin/p"))
    found = mean_stacks([{("p", f): 1.0}, {}], [{("p", g): 3.0}])
    assert found == [stack("p", "f", a=0.5), stack("p", "main", "g", b=3.0)]
    assert mean_stacks([], [{("p", f): 1.0}]) == []


def test_parts_have_their_differences_and_intervals() -> None:
    kernel, own = Frame("copy", "[kernel.kallsyms]"), Frame("f", "/bin/p")
    a = [Run({Cause("p", "function", "f"): 1.0}, stacks={("p", (own,)): 1.0}) for _ in range(6)]
    b = [
        Run(
            {Cause("p", "function", "f"): 1.0, Cause("q", "call", "read"): 0.5 + n / 100},
            stacks={("p", (own,)): 1.0, ("q", (kernel, own)): 0.5},
        )
        for n in range(6)
    ]
    (q, p) = by_process((a, b))[0]
    assert (q.name, q.a_s, q.b_s) == ("q", 0.0, pytest.approx(0.525))
    assert q.difference.low_s > 0.4
    assert not p.difference.is_told
    assert [(each.name, each.difference.mean_s) for each in by_place((a, b))[0]] == [
        ("[kernel.kallsyms]", 0.5),
        ("/bin/p", 0.0),
    ]
    calls = [{("read", "/data"): CallCount(2, 8, 1.0), ("close", ""): CallCount(1, 0, 5e-9)}] * 2
    assert [(each.name, each.b_s) for each in by_file(([{}, {}], calls))[0]] == [("/data", 1.0)]
    assert by_file(([], calls)) == ([], 0)
    rows, count = call_rows(([{}, {}], calls))
    assert [(r.call, r.a.count, r.b) for r in rows] == [
        ("read", 0, CallCount(2, 8, 1.0)),
        ("close", 0, CallCount(1, 0, 5e-9)),
    ]
    assert count == 2


@pytest.mark.parametrize("file", ["stacks.json", "x.svg", "", "perf.txt"])
def test_another_ending_is_refused(file: str) -> None:
    with pytest.raises(UsageError, match=r"\.speedscope\.json or \.perf\.txt"):
        exporter_of(file)


@given(
    st.lists(
        st.builds(
            MeanStack,
            NAMES,
            st.lists(FRAMES, max_size=4).map(tuple),
            st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)),
        ),
        max_size=5,
    ),
    st.sampled_from(HOSTILE),
)
def test_a_speedscope_profile_has_all_time_of_each_test(stacks: list[MeanStack], name: str) -> None:
    told = json.loads(exporter_of("x.speedscope.json")(stacks, (name, "b")))
    frames = told["shared"]["frames"]
    assert [profile["name"] for profile in told["profiles"]] == [name, "b"]
    for side, profile in enumerate(told["profiles"]):
        taken = [s for s in stacks if s.times_s[side] > 0]
        assert profile["weights"] == [s.times_s[side] for s in taken]
        assert profile["endValue"] == pytest.approx(sum(profile["weights"]))
        names = [[frames[n]["name"] for n in sample] for sample in profile["samples"]]
        assert names == [[s.process, *(f.symbol for f in s.frames)] for s in taken]


def test_the_text_of_perf_script_is_read_by_its_reader_in_proportion() -> None:
    stacks = [stack("p q", "main", name, a=n + 1.0, b=1.0) for n, name in enumerate(HOSTILE)]
    read = timeline_of(exporter_of("x.perf.txt")(stacks, ("one test", "b")).splitlines())
    assert set(read.threads) == {1, 2}
    for thread, name in zip((1, 2), ("one_test:p_q", "b:p_q"), strict=True):
        samples = read.threads[thread].samples
        assert {sample.process for sample in samples} == {name}
        assert len(samples) == SAMPLES
        assert all(sample.stack[-1] == Frame("main", "/bin/p") for sample in samples)
    counts = Counter(sample.stack[0].symbol for sample in read.threads[1].samples)
    assert len(counts) == len(HOSTILE)
    assert counts["</script>"] == pytest.approx(SAMPLES / 45, abs=1)
    assert counts["line\\nend"] == pytest.approx(SAMPLES * 4 / 45, abs=1)


@given(
    st.lists(
        st.builds(
            MeanStack,
            NAMES,
            st.lists(FRAMES, max_size=3).map(tuple),
            st.tuples(st.floats(0.01, 9), st.floats(0.01, 9)),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_name_is_one_sample_a_line_in_the_text_of_perf_script(stacks: list[MeanStack]) -> None:
    read = timeline_of(perf_script(stacks, ("a", "b"), 50).splitlines())
    assert [len(read.threads[n].samples) for n in (1, 2)] == [50, 50]
