"""What happens in which order: set-up, prepare, exec, conclude, clean-up; and that it is undone whatever comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from etude.errors import CommandFailed, EtudeError, MachineRefuses
from etude.experiment.plan import Plan
from etude.experiment.run import run
from support.builders import hooked, plan
from support.fakes import World, check_undone, is_hook


def story(plan: Plan, directory: Path, world: World) -> list[str]:
    run(plan, directory=directory, make_engine=world.make_engine)
    return world.story


def trial(name: str) -> list[str]:
    return [f"{name} prepare", name, f"{name} conclude"]


def test_prepare_and_conclude_stand_round_each_trial_and_set_up_and_clean_up_round_all(
    tmp_path: Path,
) -> None:
    told = story(plan(*hooked("a")), tmp_path, World())
    assert told == ["a setup", *trial("a"), *trial("a"), *trial("a"), "a cleanup"]


def test_tests_in_turn_are_set_up_and_cleaned_up_one_after_the_other(tmp_path: Path) -> None:
    told = story(plan(*hooked("a", "b"), trials=1), tmp_path, World())
    assert told == [
        *["a setup", *trial("a"), *trial("a"), "a cleanup"],
        *["b setup", *trial("b"), *trial("b"), "b cleanup"],
    ]


def test_compared_tests_are_all_set_up_first_and_cleaned_up_last_in_reverse(tmp_path: Path) -> None:
    told = story(plan(*hooked("a", "b"), trials=3, schedule="blocks"), tmp_path, World())
    assert told[:2] == ["a setup", "b setup"]
    assert told[-2:] == ["b cleanup", "a cleanup"]
    between = told[2:-2]
    trials = [between[i : i + 3] for i in range(0, len(between), 3)]
    assert len(trials) == 9
    assert all(three == trial(three[1]) for three in trials)


def test_a_duet_prepares_all_parties_and_concludes_them_in_reverse(tmp_path: Path) -> None:
    told = story(plan(*hooked("a", "b"), trials=1, schedule="duet", again_every=0), tmp_path, World())
    assert told[-7:-2] == ["a prepare", "b prepare", "a|b", "b conclude", "a conclude"]


def test_hooks_run_in_an_engine_of_their_own_that_is_closed_with_the_test(tmp_path: Path) -> None:
    world = World()
    story(plan(*hooked("a", "b"), trials=1), tmp_path, world)
    assert len(world.engines) == 3
    assert all(engine.closed for engine in world.engines)


def test_hooks_are_told_their_test_and_point_and_keep_what_they_start(tmp_path: Path) -> None:
    world = World()
    story(plan(*hooked("a", environment={"LANG": "C"}), trials=1), tmp_path, world)
    first = world.log[0]
    assert first.leftovers == "keep"
    assert first.workers[0].env == {"LANG": "C", "ETUDE_TEST": "a", "ETUDE_POINT": "setup"}
    assert all(launch.leftovers == "end" for launch in world.log if not is_hook(launch))


FAILS = {"exit_status": 1}
FAILED_STORIES = {
    "a setup": ["a setup", "a cleanup"],
    "a prepare": ["a setup", "a prepare", "a conclude", "a cleanup"],
    "a": ["a setup", "a prepare", "a", "a conclude", "a cleanup"],
    "a conclude": ["a setup", "a prepare", "a", "a conclude", "a cleanup"],
}


@pytest.mark.parametrize("step", FAILED_STORIES)
def test_a_step_that_fails_ends_the_experiment_and_all_is_still_undone(tmp_path: Path, step: str) -> None:
    world = World({step: FAILS})
    with pytest.raises(CommandFailed):
        run(plan(*hooked("a")), directory=tmp_path, make_engine=world.make_engine)
    assert world.story == FAILED_STORIES[step]
    assert all(engine.closed for engine in world.engines)


def test_a_failing_hook_is_named_with_its_line_and_its_last_words(tmp_path: Path) -> None:
    def complain(launch: object) -> dict[str, Any]:
        (tmp_path / "a" / "hooks.log").write_text("mounting\nno such device\n")
        return FAILS

    world = World({"a prepare": complain})
    with pytest.raises(CommandFailed) as error:
        run(plan(*hooked("a")), directory=tmp_path, make_engine=world.make_engine)
    assert "prepare of test 'a'" in str(error.value)
    assert "exit status 1" in str(error.value)
    assert str(error.value).endswith(": no such device")


def test_a_hook_that_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    def vanish(launch: object) -> dict[str, Any]:
        (tmp_path / "a" / "hooks.log").unlink()
        return {"exit_status": None, "error": "/nowhere: no such directory"}

    world = World({"a setup": vanish})
    with pytest.raises(CommandFailed, match=r"^setup .*'a' .*\(/nowhere: no such directory\)"):
        run(plan(*hooked("a")), directory=tmp_path, make_engine=world.make_engine)


@pytest.mark.parametrize("step", ["a cleanup", "b cleanup"])
def test_a_clean_up_that_fails_keeps_no_other_from_running(tmp_path: Path, step: str) -> None:
    world = World({step: FAILS})
    with pytest.raises(CommandFailed, match=f"cleanup of test '{step[0]}' failed"):
        run(
            plan(*hooked("a", "b"), trials=1, schedule="blocks"),
            directory=tmp_path,
            make_engine=world.make_engine,
        )
    assert [line for line in world.story if "cleanup" in line] == ["b cleanup", "a cleanup"]
    assert all(engine.closed for engine in world.engines)


def test_a_conclude_that_fails_keeps_no_other_partys_from_running(tmp_path: Path) -> None:
    world = World({"b conclude": iter([{}, FAILS])})
    duet = plan(*hooked("a", "b"), trials=1, schedule="duet")
    with pytest.raises(CommandFailed, match=r"^conclude .*'b'"):
        run(duet, directory=tmp_path, make_engine=world.make_engine)
    story = world.story
    started = [line for line in story if line.endswith("prepare")]
    ended = [line for line in story if line.endswith("conclude")]
    assert sorted(line.split()[0] for line in started) == sorted(line.split()[0] for line in ended)


def test_an_engine_that_dies_at_any_launch_leaves_nothing_undone(tmp_path: Path) -> None:
    compared = plan(*hooked("a", "b"), trials=2, schedule="blocks")
    whole = len(story(compared, tmp_path / "whole", World()))
    for number in range(1, whole + 1):

        def die(now: int, world: World, number: int = number) -> None:
            if now == number:
                raise MachineRefuses("the engine died")

        world = World(before=die)
        with pytest.raises(EtudeError):
            run(compared, directory=tmp_path / str(number), make_engine=world.make_engine)
        check_undone(world)
