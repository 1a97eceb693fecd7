"""A signal at any step: what was measured stays, all is undone once, and the exit code says which signal."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.errors import Interrupted
from etude.experiment.bench import SignalWatch
from etude.experiment.plan import Plan, make_plan
from etude.experiment.run import run
from etude.experiment.test import Test
from etude.results.reader import load_results
from support.builders import hooked, plan
from support.fakes import World, check_undone, is_hook, told

PLANS: dict[str, Callable[[], Plan]] = {
    "one test": lambda: plan(*hooked("a")),
    "two tests": lambda: plan(*hooked("a", "b"), schedule="blocks"),
    "in turn": lambda: plan(*hooked("a", "b")),
    "duet": lambda: plan(*hooked("a", "b"), schedule="duet"),
    "workers": lambda: plan(*hooked("a", workers=3)),
}
MOMENTS = ("before", "after")


def interrupted(plan: Plan, directory: Path, number: int, moment: str, signals: int = 1) -> World:
    """Run the plan with a signal just before or after its launch of that number."""

    def come(now: int, world: World) -> None:
        if now == number:
            for _ in range(signals):
                world.signal(signal.SIGTERM)

    world = World(**{moment: come})
    with pytest.raises(Interrupted) as error:
        run(plan, directory=directory, make_engine=world.make_engine)
    assert error.value.exit_code == 128 + signal.SIGTERM
    assert "SIGTERM" in str(error.value)
    assert f"--resume {directory}" in str(error.value)
    return world


def measuring(plan: Plan, directory: Path) -> int:
    """How many launches it takes up to the last conclude: after it there is nothing left to stop."""
    world = World()
    run(plan, directory=directory, make_engine=world.make_engine)
    return max(i for i, line in enumerate(world.story, 1) if not line.endswith("cleanup"))


def undoing(launch: object) -> bool:
    return told(launch).endswith(("conclude", "cleanup"))  # type: ignore[arg-type]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", PLANS)
def test_a_signal_at_any_launch_undoes_all_once_and_loses_nothing(
    tmp_path: Path, name: str, moment: str
) -> None:
    asked = PLANS[name]()
    for number in range(1, measuring(asked, tmp_path / "whole") + 1):
        world = interrupted(asked, tmp_path / str(number), number, moment)
        if name != "duet":  # its twins prepare and conclude as the reference does
            check_undone(world)
        assert all(engine.closed for engine in world.engines)
        assert all(undoing(launch) for launch in world.log[number:]), "only undoing goes on"
        results = load_results(tmp_path / str(number))
        made = [m for rows in results.measurements.values() for m in rows]
        assert len(made) == sum(len(launch.workers) for launch in world.log if not is_hook(launch))
        assert results.experiment["sittings"][0]["how_ended"].startswith("ended by SIGTERM")


@pytest.mark.parametrize("name", PLANS)
def test_a_trial_that_a_signal_ended_is_on_disk_but_not_kept(tmp_path: Path, name: str) -> None:
    asked = PLANS[name]()
    world = World()
    run(asked, directory=tmp_path / "whole", make_engine=world.make_engine)
    last = max(i for i, launch in enumerate(world.log, 1) if not is_hook(launch))
    interrupted(asked, tmp_path / "ended", last, "before")
    rows = load_results(tmp_path / "ended").measurements.values()
    ended = [m for test in rows for m in test if m.cancelled]
    assert ended
    assert {(m.kept, m.why) for m in ended} == {(False, "cancelled")}
    interrupted(asked, tmp_path / "done", last, "after")
    rows = load_results(tmp_path / "done").measurements.values()
    assert not [m for test in rows for m in test if m.cancelled]


def test_one_signal_ends_a_launch_and_two_what_undoes_it(tmp_path: Path) -> None:
    world = World()
    run(plan(*hooked("a"), trials=1), directory=tmp_path / "whole", make_engine=world.make_engine)
    assert world.patience == [int(undoing(launch)) for launch in world.log]


def test_undoing_goes_on_to_its_end_after_a_second_signal(tmp_path: Path) -> None:
    asked = plan(*hooked("a"))
    last = measuring(asked, tmp_path / "whole")
    world = interrupted(asked, tmp_path / "two", last, "before", signals=2)
    assert world.story[last - 1 :] == ["a conclude", "a cleanup"]


def test_a_command_is_not_started_when_its_prepare_was_ended(tmp_path: Path) -> None:
    world = interrupted(plan(*hooked("a")), tmp_path, 2, "before")
    assert world.story == ["a setup", "a prepare", "a conclude", "a cleanup"]


def test_repetitions_within_the_engine_keep_what_was_done(tmp_path: Path) -> None:
    def third(launch: object) -> float:
        third.calls += 1  # type: ignore[attr-defined]
        if third.calls == 5:  # type: ignore[attr-defined]
            world.signal(signal.SIGINT)
        return 0.001

    third.calls = 0  # type: ignore[attr-defined]
    world = World({"a": third})
    with pytest.raises(Interrupted) as error:
        run(make_plan(["a"], trials=10), directory=tmp_path, make_engine=world.make_engine)
    assert error.value.exit_code == 130
    rows = load_results(tmp_path).measurements["a"]
    assert [m.trial for m in rows] == [0, 1, 2, 3, 4]
    assert [m.why for m in rows] == ["first run", None, None, None, "cancelled"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_watched_signals_are_counted_and_wake_whoever_waits(number: signal.Signals) -> None:
    former = signal.getsignal(number)
    with SignalWatch() as watch:
        assert watch.fd is not None
        signal.raise_signal(number)
        signal.raise_signal(signal.SIGTERM)
        assert (watch.signal, watch.count) == (number, 2)
    assert signal.getsignal(number) is former
    assert watch.fd is None


def test_a_flood_of_signals_blocks_nobody() -> None:
    with SignalWatch() as watch:
        for _ in range(70_000):
            watch._note(signal.SIGINT, None)
        assert watch.count == 70_000


def test_a_test_without_hooks_is_interrupted_as_well(tmp_path: Path) -> None:
    world = interrupted(plan(Test("a", ("a",)), Test("b", ("b",)), schedule="blocks"), tmp_path, 3, "before")
    assert len(world.log) == 3
