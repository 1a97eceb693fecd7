"""A stack is one cause, and the critical path of a run adds up to its time, whatever the timeline is."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.why.causes import ENTRY, Cause, Frame, cause_of
from etude.why.critical_path import path_of, path_times
from etude.why.stacks import summed
from etude.why.timeline import Timeline, timeline_of


def causes_of(timeline: Timeline) -> dict[Cause, float]:
    """Seconds of each cause on the critical path."""
    return summed((cause, s) for (cause, _), s in path_times(timeline).items())


KERNEL, PROGRAM, LIBC = "[kernel.kallsyms]", "/bin/p", "/usr/lib/x86_64-linux-gnu/libc.so.6"


def stack(*frames: tuple[str, str]) -> list[Frame]:
    return [Frame(*frame) for frame in frames]


STACKS = {
    "a function": (stack(("f", PROGRAM), ("main", PROGRAM)), ("function", "f", "")),
    "no symbol": (stack(("[unknown]", PROGRAM)), ("function", "[unknown] in p", "")),
    "a call": (
        stack(
            ("copy", KERNEL), ("ksys_read", KERNEL), ("do_syscall_64", KERNEL), ("read", LIBC), ("f", PROGRAM)
        ),
        ("call", "read", "f"),
    ),
    "a call by its entry": (
        stack(("x", KERNEL), ("__x64_sys_fsync", KERNEL), ("do_syscall_64", KERNEL)),
        ("call", "fsync", ""),
    ),
    "a wait": (
        stack(("schedule", KERNEL), ("kernel_wait4", KERNEL), ("do_syscall_64", KERNEL), ("wait4", LIBC)),
        ("call", "wait4", ""),
    ),
    "a call whose caller is data": (
        stack(("__x64_sys_poll", KERNEL), ("poll", LIBC), ("[unknown]", "[stack]"), ("main", PROGRAM)),
        ("call", "poll", ""),
    ),
    "entry": (stack(("do_syscall_64", KERNEL), ("f", PROGRAM)), ("call", ENTRY, "f")),
    "a page fault": (
        stack(("clear_page", KERNEL), ("asm_exc_page_fault", KERNEL), ("f", PROGRAM)),
        ("page faults", "page faults", "f"),
    ),
    "a page fault within a call": (
        stack(("exc_page_fault", KERNEL), ("ksys_read", KERNEL), ("do_syscall_64", KERNEL), ("f", PROGRAM)),
        ("page faults", "page faults", "f"),
    ),
    "exec": (
        stack(("x", KERNEL), ("__x64_sys_execve", KERNEL), ("do_syscall_64", KERNEL)),
        ("start", "exec", ""),
    ),
    "an interrupt": (
        stack(("handle_softirqs", KERNEL), ("asm_sysvec_apic_timer_interrupt", KERNEL), ("f", PROGRAM)),
        ("function", "f", ""),
    ),
    "nothing": ([], ("function", "[unknown]", "")),
}


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_is_one_cause(name: str) -> None:
    frames, (kind, named, caller) = STACKS[name]
    found = cause_of("p", frames)
    assert (found.process, found.kind, found.name, found.caller) == ("p", kind, named, caller)


def text(*events: tuple[str, int, float, str]) -> list[str]:
    """Lines of `perf script`: process, thread, seconds, event with its frames behind `|`."""
    lines = []
    for process, tid, at, event in events:
        first, *frames = event.split("|")
        first += "" if first.startswith("PERF_RECORD") else ":"
        lines += [
            f"{process}  {tid}/{tid}  {at:.9f}:   {first} ",
            *(f"\t    1f {frame}" for frame in frames),
            "",
        ]
    return lines


READ = f"schedule ({KERNEL})|ksys_read ({KERNEL})|do_syscall_64 ({KERNEL})|read ({LIBC})|fill ({PROGRAM})"
WAIT4 = f"schedule ({KERNEL})|kernel_wait4 ({KERNEL})|do_syscall_64 ({KERNEL})"


def sleeping(reason: str) -> str:
    return f"sched:sched_switch: prev_comm=p prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=x|{reason}"


def test_blocked_time_is_that_of_its_call_and_a_cpus_that_of_its_samples() -> None:
    timeline = timeline_of(
        text(
            ("p", 1, 1.0, "PERF_RECORD_COMM exec: p:1/1"),
            ("p", 1, 1.2, f"cpu-clock|f+0x1f ({PROGRAM})"),
            ("p", 1, 1.5, sleeping(READ)),
            ("p", 1, 1.5, "PERF_RECORD_SWITCH OUT"),
            ("p", 1, 2.0, "PERF_RECORD_SWITCH IN"),
            ("p", 1, 2.1, "PERF_RECORD_SWITCH OUT preempt"),
            ("p", 1, 2.4, "PERF_RECORD_SWITCH IN"),
            ("p", 1, 2.5, "PERF_RECORD_EXIT(1:1):(0:0)"),
        )
    )
    found = causes_of(timeline)
    assert {(c.kind, c.name, c.caller): pytest.approx(s) for c, s in found.items()} == {
        ("function", "f", ""): 0.7,
        ("call", "read", "fill"): 0.5,
        ("waiting for a CPU", "waiting for a CPU", ""): 0.3,
    }


def test_the_path_goes_through_the_child_that_was_waited_for_and_the_thread_that_woke() -> None:
    timeline = timeline_of(
        text(
            ("sh", 1, 1.0, "PERF_RECORD_COMM exec: sh:1/1"),
            ("sh", 1, 1.1, "PERF_RECORD_FORK(2:2):(1:1)"),
            ("sh", 1, 1.2, sleeping(WAIT4)),
            ("sh", 2, 1.3, "PERF_RECORD_COMM exec: work:2/2"),
            ("work", 2, 1.35, "PERF_RECORD_FORK(2:3):(2:2)"),
            (
                "work",
                2,
                1.4,
                sleeping(f"schedule ({KERNEL})|__x64_sys_futex ({KERNEL})|do_syscall_64 ({KERNEL})"),
            ),
            ("work", 3, 1.5, f"cpu-clock|helper ({PROGRAM})"),
            ("work", 3, 1.8, "sched:sched_wakeup: comm=work pid=2 prio=120 target_cpu=001"),
            ("work", 2, 1.9, "PERF_RECORD_SWITCH IN"),
            ("work", 2, 1.95, f"cpu-clock|last ({PROGRAM})"),
            ("work", 2, 2.0, "PERF_RECORD_EXIT(2:2):(1:1)"),
            ("sh", 1, 2.1, "PERF_RECORD_SWITCH IN"),
            ("sh", 1, 2.2, "PERF_RECORD_EXIT(1:1):(0:0)"),
        )
    )
    assert [(s.tid, round(s.from_ns / 1e9, 3), round(s.to_ns / 1e9, 3)) for s in path_of(timeline)] == [
        (1, 1.0, 1.1),
        (2, 1.1, 1.35),
        (3, 1.35, 1.8),
        (2, 1.8, 1.9),
        (2, 1.9, 2.0),
        (1, 2.0, 2.1),
        (1, 2.1, 2.2),
    ]
    found = causes_of(timeline)
    assert sum(found.values()) == pytest.approx(1.2)
    assert Cause("work", "call", "futex") not in found


TIDS = st.integers(1, 4)
EVENTS = st.one_of(
    st.just("PERF_RECORD_SWITCH OUT"),
    st.just("PERF_RECORD_SWITCH OUT preempt"),
    st.just("PERF_RECORD_SWITCH IN"),
    st.builds("PERF_RECORD_FORK({0}:{0}):({1}:{1})".format, TIDS, TIDS),
    st.builds("sched:sched_wakeup: comm=p pid={} prio=1".format, TIDS),
    st.builds("PERF_RECORD_EXIT({0}:{0}):({1}:{1})".format, TIDS, TIDS),
    st.sampled_from([sleeping(READ), sleeping(WAIT4), f"cpu-clock|f ({PROGRAM})", "cpu-clock"]),
    st.just("PERF_RECORD_COMM exec: q:1/1"),
)


@given(st.lists(st.tuples(TIDS, st.integers(0, 3), EVENTS), max_size=40))
def test_any_timeline_has_a_path_without_gaps_whose_causes_add_up(made: list[tuple[int, int, str]]) -> None:
    at, events = 100, []
    for tid, later, event in made:
        at += later
        events.append(("p", tid, at / 10, event))
    timeline = timeline_of(text(*events))
    path = path_of(timeline)
    assert all(s.from_ns <= s.to_ns for s in path)
    assert all(one.to_ns == other.from_ns for one, other in pairwise(path))
    length = (path[-1].to_ns - path[0].from_ns) / 1e9 if path else 0.0
    assert sum(causes_of(timeline).values()) == pytest.approx(length)


@given(st.lists(st.text(max_size=60), max_size=30))
def test_any_text_is_a_timeline(lines: list[str]) -> None:
    causes_of(timeline_of(lines))


def test_a_thread_that_was_joined_has_its_time_on_the_path_and_a_name_may_be_blank() -> None:
    """The end of a thread wakes the one that joins it by no event."""
    blocked = (
        "sched:sched_switch: prev_state=S|futex_wait ([kernel.kallsyms])|__x64_sys_futex ([kernel.kallsyms])"
    )
    lines = text(
        ("    ", 5, 1.0, "PERF_RECORD_COMM exec:     :5/5"),
        ("    ", 5, 1.1, "PERF_RECORD_FORK(5:6):(5:5)"),
        ("    ", 5, 1.2, blocked),
        ("    ", 6, 1.3, "cpu-clock|alpha (/bin/p)"),
        ("    ", 6, 2.0, "PERF_RECORD_EXIT(5:6):(5:5)"),
        ("    ", 5, 2.0001, "PERF_RECORD_SWITCH IN"),
        ("    ", 5, 2.1, "PERF_RECORD_EXIT(5:5):(1:1)"),
    )
    timeline = timeline_of([line.replace(" 6/6 ", " 5/6 ") for line in lines])
    found = causes_of(timeline)
    assert sum(s for c, s in found.items() if c.name == "futex") < 0.001
    assert sum(s for c, s in found.items() if c.name == "alpha") > 0.8
    assert timeline.lost == 0


def test_lines_of_no_known_form_are_lost_events() -> None:
    assert timeline_of(["p 1/1 1.0: cpu-clock:", "a name that", "ends here"]).lost == 2


def test_code_made_at_run_time_is_of_one_place_in_all_processes() -> None:
    names = set()
    for pid in (7, 8):
        lines = text(
            ("p", pid, 1.0, f"PERF_RECORD_COMM exec: p:{pid}/{pid}"),
            ("p", pid, 1.1, f"cpu-clock|[unknown] (/tmp/perf-{pid}.map)"),
            ("p", pid, 1.2, f"PERF_RECORD_EXIT({pid}:{pid}):(1:1)"),
        )
        names |= {cause.name for cause in causes_of(timeline_of(lines))}
    assert names == {"[unknown] in perf.map"}
