"""In which order trials are made, and which of them are excluded."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import CommandFailed, EtudeError, MachineRefuses, UsageError
from etude.experiment.plan import block_order, disjoint_cpus, make_plan
from etude.experiment.run import run
from etude.experiment.test import Test
from etude.results.model import Measurement
from etude.results.reader import load_results
from etude.results.results import Results
from support.fakes import World, around, is_hook

A, B, C = (Test(name, (name,)) for name in "abc")


def results(directory: Path, world: World, *tests: Test, **options: object) -> Results:
    asked = make_plan(tests, **{"trials": 8, "seed": 1, **options})  # type: ignore[arg-type]
    return run(asked, directory=directory, make_engine=world.make_engine).results


def blocks(found: Results) -> dict[int, list[str]]:
    """The tests of each block in the order in which they ran."""
    rows = sorted((m for rows in found.measurements.values() for m in rows), key=lambda m: m.start_ns)
    return {b: [m.test for m in group] for b, group in itertools.groupby(rows, key=lambda m: m.block)}


def test_each_block_holds_each_test_once_and_some_the_reference_against_itself_early_ones_more_often(
    tmp_path: Path,
) -> None:
    found = blocks(results(tmp_path, World(), A, B, C, trials=18))
    assert sorted(found) == list(range(19))
    for block, tests in found.items():
        again = ["a (again)"] if block in (2, 4, 6, 8, 10, 12, 16) else []
        assert sorted(tests) == sorted(["a", "b", "c", *again])


def test_order_within_a_block_is_its_place_in_time(tmp_path: Path) -> None:
    found = results(tmp_path, World(), A, B)
    order = {(m.block, m.order): m.test for rows in found.measurements.values() for m in rows}
    for block, tests in blocks(found).items():
        assert [order[block, place] for place in range(len(tests))] == tests


def test_the_order_depends_on_the_seed_alone(tmp_path: Path) -> None:
    orders = [
        blocks(results(tmp_path / name, World(times), A, B, seed=seed))
        for name, seed, times in (("1", 1, {}), ("again", 1, {"a": 3.0}), ("2", 2, {}))
    ]
    assert orders[0] == orders[1] != orders[2]


@given(st.integers(0, 2**32))
def test_both_orders_occur_within_few_blocks(seed: int) -> None:
    orders = {tuple(t.name for t in block_order([A, B], block, seed)) for block in range(1, 51)}
    assert orders == {("a", "b"), ("b", "a")}


def test_no_order_is_preferred() -> None:
    orders = Counter(tuple(t.name for t in block_order([A, B, C], block, 1)) for block in range(6000))
    assert len(orders) == 6
    assert max(orders.values()) < 1150 > 1000 > 850 < min(orders.values())


@given(st.integers(1, 16), st.integers(1, 4), st.integers(0, 9))
def test_a_duets_cpus_are_disjoint_and_equally_many(cpus: int, parties: int, block: int) -> None:
    if cpus < parties:
        with pytest.raises(MachineRefuses, match=f"{cpus} CPUs? .*duet of {parties}"):
            disjoint_cpus(range(cpus), parties, block, 1)
        return
    shares = disjoint_cpus(range(cpus), parties, block, 1)
    assert {len(share) for share in shares} == {cpus // parties}
    dealt = [cpu for share in shares for cpu in share]
    assert len(set(dealt)) == len(dealt)


def test_no_party_of_a_duet_owns_the_better_cpus() -> None:
    shares = {disjoint_cpus([0, 1], 2, block, 1)[0] for block in range(20)}
    assert shares == {(0,), (1,)}


def test_a_duet_is_one_launch_on_disjoint_cpus_with_the_twins_in_their_own(tmp_path: Path) -> None:
    world = World()
    found = results(tmp_path, world, A, B, schedule="duet")
    both = [launch for launch in world.log if len(launch.workers) == 2]
    assert [launch.workers[0].argv + launch.workers[1].argv for launch in both] == [
        *[("a", "b"), ("a", "b"), ("a", "a")] * 4,
    ]
    for launch in both:
        first, second = (worker.cpus for worker in launch.workers)
        assert first
        assert second
        assert not set(first) & set(second)
        assert len(first) == len(second) == 2
    assert [m.block for m in found.measurements["a (again)"]] == [2, 4, 6, 8]
    assert [m.block for m in found.measurements["a (again, beside)"]] == [2, 4, 6, 8]


def test_a_duet_needs_as_many_cpus_as_parties(tmp_path: Path) -> None:
    with pytest.raises(MachineRefuses, match=r"1 CPU .*duet of 2"):
        results(tmp_path, World(cpus=(0,)), A, B, schedule="duet")


@pytest.mark.parametrize(
    ("tests", "says"), [((A,), "two or more commands"), ((A, Test("b", ("b",), inner=9)), "inner")]
)
def test_what_no_duet_can_be_made_of_is_refused_at_once(
    tmp_path: Path, tests: tuple[Test, ...], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        make_plan(tests, schedule="duet")


def test_a_duet_with_a_shell_measures_the_shell_as_well(tmp_path: Path) -> None:
    world = World({"/bin/sh": 0.003})
    found = results(tmp_path, world, A, B, schedule="duet", shell="/bin/sh")
    assert sum(m.kept for m in found.measurements["/bin/sh -c :"]) == 8


def test_tests_in_turn_run_one_after_the_other_and_are_not_compared(tmp_path: Path) -> None:
    world = World()
    found = results(tmp_path, world, A, B, schedule="in-turn", trials=3, check_output="each")
    assert world.story == ["a"] * 4 + ["b"] * 4
    assert found.names("again") == ()


def first_runs(found: Results) -> list[Measurement]:
    return [m for rows in found.measurements.values() for m in rows if m.why == "first run"]


@pytest.mark.parametrize("schedule", ["blocks", "in-turn", "duet"])
def test_the_first_run_of_each_test_is_set_aside_with_its_output(tmp_path: Path, schedule: str) -> None:
    world = World({"a": {"stdout": "said"}})
    found = results(tmp_path, world, A, B, schedule=schedule)
    firsts = first_runs(found)
    assert {(m.test, m.trial, m.block, m.kept) for m in firsts} == {("a", 0, 0, False), ("b", 0, 0, False)}
    assert {m.test: m.stdout and m.stdout["tail"] for m in firsts} == {"a": "said", "b": ""}
    later = [m for rows in found.measurements.values() for m in rows if m.kept]
    assert len(later) >= 16
    assert all(m.stdout is None for m in later)
    assert (tmp_path / "a" / "logs" / "0000-0.stdout").read_text() == "said"


def test_output_of_each_trial_is_captured_on_request(tmp_path: Path) -> None:
    found = results(tmp_path, World({"a": {"stdout": "said"}}), A, check_output="each")
    assert all(m.stdout and m.stdout["tail"] == "said" for m in found.measurements["a"])


NOTHING_BETWEEN = [
    ({}, {}, True),
    ({"prepare": "true"}, {}, False),
    ({"conclude": "true"}, {}, False),
    ({"setup": "true", "cleanup": "true"}, {}, True),
    ({}, {"check_output": "each"}, False),
    ({}, {"shell": "/bin/sh"}, False),
    ({"workers": 2}, {}, True),
]


@pytest.mark.parametrize(("options", "of_plan", "within"), NOTHING_BETWEEN)
def test_a_fixed_count_runs_within_the_engine_when_nothing_must_happen_in_between(
    tmp_path: Path, options: dict[str, object], of_plan: dict[str, object], within: bool
) -> None:
    world = World()
    found = results(tmp_path, world, Test("a", ("a",), **options), trials=5, **of_plan)  # type: ignore[arg-type]
    repeats = [launch.repeat for launch in world.log if not is_hook(launch) and launch.repeat]
    assert [repeat.count for repeat in repeats] == ([5] if within else [])
    kept = [m for m in found.measurements["a"] if m.kept and m.worker == 0]
    assert [(m.trial, m.block) for m in kept] == [(n, n) for n in range(1, 6)]
    assert {m.test for m in kept} == {"a"}


def test_compared_tests_never_repeat_within_the_engine(tmp_path: Path) -> None:
    world = World()
    results(tmp_path, world, A, B, trials=5)
    assert not [launch for launch in world.log if launch.repeat]


@pytest.mark.parametrize("patterned", [False, True])
def test_a_repetition_that_fails_stops_there_with_its_trial_on_disk(tmp_path: Path, patterned: bool) -> None:
    def outcomes() -> object:
        yield 0.001
        yield from [0.001] * 2
        yield {"exit_status": 7, "stderr": "first\nno luck\n"}

    test = Test("a", ("a",), prepare="true" if patterned else None)
    with pytest.raises(CommandFailed) as error:
        results(tmp_path, World({"a": outcomes()}), test, trials=9)
    assert str(error.value).startswith("a: trial 3: ")
    assert "7: no luck" in str(error.value)
    assert "--ignore-failure" in str(error.value)
    assert [(m.kept, m.why) for m in load_results(tmp_path).measurements["a"]][-2:] == [
        (True, None),
        (False, "failed"),
    ]


def test_a_repetition_that_meets_a_full_disk_is_the_machines_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from etude.engine import Repeated
    from support.fakes import FakeEngine

    monkeypatch.setattr(FakeEngine, "repeat", lambda *_: Repeated(3, "journal: no space left on device"))
    with pytest.raises(MachineRefuses, match=r"journal: no space left.*--resume") as error:
        results(tmp_path, World(), A, trials=9)
    assert error.value.exit_code == 5


def test_progress_within_the_engine_is_told(tmp_path: Path) -> None:
    seen: list[int] = []
    run(
        make_plan([A], trials=4),
        directory=tmp_path,
        make_engine=World({"a": around(0.1)}).make_engine,
        observe=lambda event, ledger: seen.append(event.done) if event.what == "progress" else None,
    )
    assert seen == [1, 2, 3, 4]


def test_two_tests_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match=r"'a'.* -n"):
        make_plan([A, A])


def test_a_schedule_that_does_not_exist_is_refused() -> None:
    with pytest.raises(EtudeError, match=r"'odd'.*in-turn, blocks or duet"):
        make_plan([A], schedule="odd")
