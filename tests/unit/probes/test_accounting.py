"""Who used the CPU: what is made of two readings and the records in between, against what really happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.probes.accounting import (
    OURS,
    TICK_NS,
    Account,
    Process,
    Readings,
    Share,
    Snapshot,
    account,
    plain_name,
)
from etude.probes.taskstats import Exit
from support.profiles import examples
from support.simulated_kernel import ENGINE, INIT, KTHREADD, OWN, Kernel

Step = tuple[str, int, int]

steps = st.lists(
    st.tuples(
        st.sampled_from(["spawn", "spawn", "clone", "run", "run", "end", "end", "reap"]),
        st.integers(0, 40),
        st.integers(1, 3 * TICK_NS),
    ),
    max_size=40,
)


def play(kernel: Kernel, story: Sequence[Step]) -> None:
    for what, who, number in story:
        if what == "spawn":
            kernel.spawn(who)
        elif what == "clone":
            kernel.clone(who)
        elif what == "run":
            kernel.run(who, number)
        elif what == "end":
            kernel.end_thread(who, number)
        else:
            kernel.reap(who)


@dataclass(frozen=True)
class Played:
    kernel: Kernel
    readings: Readings

    def account(self, **changes: object) -> Account:
        return account(Readings(**(vars(self.readings) | changes)), ENGINE, OWN)  # type: ignore[arg-type]


def measure(before: Sequence[Step], during: Sequence[Step], late: Sequence[Step] = ()) -> Played:
    """A story up to the first reading, one up to the second, and what ended while that was made."""
    kernel = Kernel()
    play(kernel, before)
    kernel.mark()
    first = kernel.snapshot()
    play(kernel, during)
    second, known = kernel.snapshot(), len(kernel.exits)
    play(kernel, [step for step in late if step[0] == "end"])
    return Played(kernel, Readings(first, tuple(kernel.exits[:known]), second, tuple(kernel.exits[known:])))


def by_name(found: Account) -> dict[str, int]:
    return {share.name: share.cpu_ns for share in found.others if share.cpu_ns}


def truth(kernel: Kernel) -> dict[str, int]:
    used = kernel.used()
    ours = used.pop("python", 0) + used.pop("etude-engine", 0)
    return used | ({OURS: ours} if ours else {})


@settings(max_examples=examples(300))
@given(steps, steps, steps)
def test_with_all_records_every_process_is_known_to_the_nanosecond(
    before: list[Step], during: list[Step], late: list[Step]
) -> None:
    played = measure(before, during, late)
    found = played.account()
    assert by_name(found) == truth(played.kernel)
    assert found.measured_ns == sum(played.kernel.used(measured=True).values())


@settings(max_examples=examples(300))
@given(steps, steps, steps)
def test_so_it_is_with_a_kernel_that_does_not_say_whose_thread_it_was(
    before: list[Step], during: list[Step], late: list[Step]
) -> None:
    played = measure(before, during, late)
    exits, lates = (
        tuple(exit_._replace(process=None, last=False) for exit_ in each)
        for each in (played.readings.exits, played.readings.late)
    )
    found = played.account(exits=exits, late=lates)
    assert by_name(found) == truth(played.kernel)
    assert found.measured_ns == sum(played.kernel.used(measured=True).values())


@settings(max_examples=examples(300))
@given(steps, steps)
def test_without_records_those_that_are_still_there_are_known_to_two_ticks(
    before: list[Step], during: list[Step]
) -> None:
    played = measure(before, during)
    found, true = by_name(played.account(exits=())), truth(played.kernel)
    alive = {process.name for process in played.readings.after.processes.values()}
    for name in found.keys() | (true.keys() & alive):
        assert abs(found.get(name, 0) - true.get(name, 0)) <= 2 * TICK_NS
    assert not found.keys() & played.kernel.used(measured=True).keys()


@given(steps, steps, st.data())
def test_lost_records_lose_time_but_invent_none(
    before: list[Step], during: list[Step], data: st.DataObject
) -> None:
    played = measure(before, during)
    every = played.readings.exits
    kept = tuple(exit_ for exit_ in every if data.draw(st.booleans()))
    found = played.account(exits=kept)
    total = sum(played.kernel.used().values()) + sum(played.kernel.used(measured=True).values())
    slack = 2 * TICK_NS * len(played.kernel.tasks)
    past = sum(played.kernel.past_ns.values()) if len(kept) < len(every) else 0
    assert sum(by_name(found).values()) + found.measured_ns <= total + slack + past


def process(
    pid: int, name: str, parent: int, ns: int = 0, *, began: int = 0, zombie: bool = False
) -> Process:
    return Process(pid, name, zombie, parent, ns // TICK_NS, began, {pid: ns})


def snapshot(*processes: Process, taken: int = 1000) -> Snapshot:
    fixed = (process(INIT, "init", 0), process(OWN, "python", INIT), process(ENGINE, "etude-engine", OWN))
    return Snapshot(taken, {each.pid: each for each in (*fixed, *processes)})


def ended(pid: int, name: str, parent: int, ns: int, *, elapsed_us: int = 10**9) -> Exit:
    return Exit(pid, pid, parent, name, elapsed_us, ns, True)


S = 1_000_000_000


def test_a_number_that_was_used_again_is_another_process_by_its_age() -> None:
    """The first end's record was lost; the one that came is of a process younger than the first reading."""
    before = snapshot(process(30, "old", INIT, 5 * S, began=0), taken=1000)
    young = ended(30, "new", INIT, 6 * S, elapsed_us=7_000_000)
    assert by_name(account(Readings(before, (young,), snapshot()), ENGINE, OWN)) == {"new": 6 * S}
    old = ended(30, "old", INIT, 6 * S, elapsed_us=10_000_000)
    assert by_name(account(Readings(before, (old,), snapshot()), ENGINE, OWN)) == {"old": S}


def test_a_number_that_was_used_again_is_another_process_by_its_start() -> None:
    before, after = (snapshot(process(30, "p", INIT, 5 * S, began=began)) for began in (10, 900))
    assert by_name(account(Readings(before, (), after), ENGINE, OWN)) == {"p": 5 * S}


def test_a_thread_s_number_that_another_process_had_is_another_thread() -> None:
    """The end of the first was recorded nowhere."""
    lost = Process(30, "lost", False, INIT, 0, 5, {30: S, 31: 5 * S})
    before, after = (Process(40, "p", False, INIT, 0, 6, {40: S, **more}) for more in ({}, {31: 2 * S}))
    readings = Readings(snapshot(lost, before), (), snapshot(after))
    assert by_name(account(readings, ENGINE, OWN)) == {"p": 2 * S}


def test_a_parent_s_number_that_was_used_again_is_another_parent() -> None:
    exits = (ended(40, "sh", ENGINE, S), ended(41, "cron-job", 40, 2 * S), ended(40, "cron", INIT, S))
    found = account(Readings(snapshot(), exits, snapshot()), ENGINE, OWN)
    assert (by_name(found), found.measured_ns) == ({"cron-job": 2 * S, "cron": S}, S)


def test_a_thread_of_nobody_knows_whom_is_not_counted_again_in_its_process() -> None:
    exits = (Exit(31, None, INIT, "p", 10**6, 2 * S),)
    before, after = (Process(30, "p", False, INIT, ticks, 5, {30: S}) for ticks in (100, 300))
    assert by_name(account(Readings(snapshot(before), exits, snapshot(after)), ENGINE, OWN)) == {"p": 2 * S}


def test_a_child_whose_end_came_just_after_its_parent_s_still_has_that_parent() -> None:
    exits = (ended(40, "sh", ENGINE, S), ended(41, "cc", 40, 2 * S))
    found = account(Readings(snapshot(), exits, snapshot()), ENGINE, OWN)
    assert (found.others, found.measured_ns) == ((), 3 * S)


def test_the_engine_of_hooks_is_ours_and_what_it_started_is_not() -> None:
    exits = (ended(51, "server", 50, S),)
    after = snapshot(process(50, "etude-engine", OWN, 2 * S), process(52, "helper", OWN, 3 * S))
    found = by_name(account(Readings(snapshot(), exits, after), ENGINE, OWN))
    assert found == {"helper": 3 * S, OURS: 2 * S, "server": S}


def test_without_an_engine_nobody_is_measured() -> None:
    exits = (ended(40, "sh", ENGINE, S), ended(3, "kthread", 0, S))
    found = account(Readings(snapshot(), exits, snapshot()), 0, OWN)
    assert (by_name(found), found.measured_ns) == ({"sh": S, "kthread": S}, 0)


def test_processes_of_one_name_are_counted_and_summed_most_first() -> None:
    exits = (ended(40, "a", INIT, S), ended(41, "b", INIT, 3 * S), ended(40, "a", INIT, S))
    found = account(Readings(snapshot(), exits, snapshot(process(44, "c", INIT, 2 * S))), ENGINE, OWN)
    assert found.others == (Share("b", 3 * S, 1), Share("a", 2 * S, 2), Share("c", 2 * S, 1))


def test_threads_that_ended_unseen_are_found_in_the_process_s_total() -> None:
    before, after = (Process(30, "p", False, INIT, ticks, 5, {30: S}) for ticks in (100, 300))
    readings = Readings(snapshot(before), (), snapshot(after))
    assert by_name(account(readings, ENGINE, OWN)) == {"p": 2 * S}


def test_a_kernel_that_keeps_no_nanoseconds_is_read_in_ticks() -> None:
    before, after = (Process(30, "p", False, INIT, ticks, 5, {30: 0}) for ticks in (100, 101))
    readings = Readings(snapshot(before), (), snapshot(after))
    assert by_name(account(readings, ENGINE, OWN)) == {"p": TICK_NS}


def test_a_circle_of_parents_ends() -> None:
    exits = (ended(40, "a", 41, S), ended(41, "b", 40, S))
    after = snapshot(process(42, "c", 43, S), process(43, "d", 42, S))
    assert len(account(Readings(snapshot(), exits, after), ENGINE, OWN).others) == 4


@pytest.mark.parametrize(
    ("name", "parent", "plain"),
    [
        ("kworker/0:1-events", KTHREADD, "kworker/0:1"),
        ("kworker/u8:2+flush-254:0", KTHREADD, "kworker/u8:2"),
        ("kworker/1:0H-kblockd", KTHREADD, "kworker/1:0H"),
        ("kworker/R-ext4-rsv", KTHREADD, "kworker/R-ext4-rsv"),
        ("kworker/0:1-events", INIT, "kworker/0:1-events"),
        ("jbd2/vda-8", KTHREADD, "jbd2/vda-8"),
        ("a\nb\x1b[0m", INIT, "a?b?[0m"),
        ("", INIT, "?"),
    ],
)
def test_names_fit_on_a_line_and_workers_of_the_kernel_lose_what_they_did_last(
    name: str, parent: int, plain: str
) -> None:
    assert plain_name(name, kernel=parent == KTHREADD) == plain
