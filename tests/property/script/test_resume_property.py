"""Any script stopped at any instruction, its state written and read, goes on exactly as if it had not been stopped."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable
from itertools import count

from hypothesis import example, given, settings
from hypothesis import strategies as st

from etude.errors import CommandFailed, Restarting
from etude.results.model import FIRST_RUN
from etude.script.checkpoint import state_fits
from etude.script.machine import Machine
from etude.script.parse import parse_text
from etude.script.program import Program, ScriptError
from etude.script.state import RunningTest, State, reset_trial, to_data
from support.profiles import examples
from support.worlds import NotedWorld, reload, reloaded

MOST_STEPS = 120
names = st.sampled_from(["A", "B", "C"])
words = st.sampled_from(["x", "y", "1", "2", "%A%", "%B%", "%THREADS%", "$HOME$"])
conditions = st.builds(
    "{} {} {}".format, names, st.sampled_from(["=", "!=", "!="]), st.sampled_from(["x", "1", "2"])
)

simple = st.one_of(
    st.builds("VAR {}={}".format, names, words),
    st.builds("ENV {}={}".format, names, words),
    st.builds("ECHO {}".format, words),
    st.builds("VAREX {}=%THREADS% * 2".format, names),
    st.builds("SYSTEM {}".format, words),
    st.just("CHECKPOINT f"),
    st.builds("REBOOT {}".format, st.sampled_from(["", "other"])),
)
within = st.one_of(
    simple,
    *(
        st.builds(f"{d} {{}}".format, words)
        for d in ("PRESETUP", "SETUP", "EXEC", "EXEC", "CLEANUP", "POSTCLEANUP")
    ),
    st.sampled_from(["CACHE warm", "CACHE reboot", "CACHE drop data", "BOOT other"]),
    st.sampled_from(["AGE ONCE /mnt", "AGE /mnt", "FILL /mnt to=1%"]),
    st.just("PURPOSE why"),
)
threads = st.sampled_from(["THREADS=1", "THREADS=3"])


def block(line: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Some lines, with control flow around some of them."""

    def around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        body = st.lists(inner, min_size=1, max_size=3).map("\n".join)
        return st.one_of(
            st.builds("IF {}\n{}\nELSE\n{}\nFI".format, conditions, body, body),
            st.builds("FOREACH {} {} {}\n{}\nDONE".format, names, words, words, body),
            st.builds("FOR {}=1 TO {}\n{}\nDONE".format, names, st.integers(1, 3), body),
            st.builds("VAR C=3\nWHILE C > 1\nVAREX C=$C - 1\n{}\nDONE".format, body),
        )

    return st.lists(st.recursive(line, around, max_leaves=4), min_size=2, max_size=5).map("\n".join)


stops = st.sampled_from(["", " MAX=4 2 judge", " TIME=2s 1 judge"])
tests = st.builds("TEST t-%A% {}{}\n{}\nDONE".format, st.integers(1, 2), stops, block(within))
interleaves = st.lists(tests, min_size=1, max_size=3).map(
    lambda found: "INTERLEAVE\n" + "\n".join(found) + "\nDONE"
)
parts = st.one_of(block(st.one_of(simple, threads)), tests, tests, interleaves, st.just("FASTFAIL tell"))


def named_apart(text: str) -> str:
    """The tests of a script numbered: the check of a script refuses two of one name."""
    numbers = count()
    return re.sub(r"(?m)^TEST t", lambda _: f"TEST t{next(numbers)}", text)


scripts = st.lists(parts, min_size=2, max_size=5).map(
    lambda found: named_apart("\n".join(["VAR A=x", "VAR B=1", "VAR C=2", *found]))
)


def fails_sometimes(point: str, line: str, test: RunningTest | None) -> str | None:
    """A failure that depends on nothing but what is in the state."""
    key = f"{point} {line} {test.name if test else ''} {test.made if test else 0}"
    return "it failed" if zlib.crc32(key.encode()) % 7 == 0 else None


def play_in_parts(program: Program, cut: Callable[[int], bool]) -> tuple[list[str], str]:
    """The story and the ending, with the state written and read before each step for which `cut` holds."""
    state, story = State(seed=5), []
    world = NotedWorld(fails_sometimes, story=story)
    try:
        machine = Machine(program, state, world)
        for step in range(MOST_STEPS):
            if machine.done:
                return story, "done"
            if cut(step):
                assert state_fits(program, machine.state)
                machine = Machine(program, reloaded(machine.state), world)
            machine.step()
    except (CommandFailed, ScriptError) as error:
        return story, str(error)
    return story, "endless"


@settings(max_examples=examples(120))
@given(scripts, st.integers(0, 60))
def test_a_script_stopped_anywhere_goes_on_as_if_it_had_not_been(text: str, at: int) -> None:
    program = parse_text(text)
    whole = play_in_parts(program, lambda step: False)
    assert play_in_parts(program, lambda step: step == at) == whole
    assert play_in_parts(program, lambda step: True) == whole, "stopped before each of its steps"


def play_with_restarts(program: Program) -> tuple[list[str], str]:
    """The story and the ending, each restart ending the machine, which goes on from the state that was kept."""
    state, world = State(seed=5), NotedWorld(fails_sometimes, restarts=True)
    machine, steps = Machine(program, state, world), 0
    while not machine.done:
        try:
            machine.step()
        except Restarting:
            machine = Machine(program, reload(world.saved[-1][1]), world)
        except (CommandFailed, ScriptError) as error:
            return world.story, str(error)
        if (steps := steps + 1) > 4 * MOST_STEPS:
            return world.story, "endless"
    return world.story, "done"


@settings(max_examples=examples(120))
@given(scripts)
def test_a_script_goes_on_behind_each_restart_as_if_the_machine_had_only_paused(text: str) -> None:
    program = parse_text(f"{text}\nECHO %RESTORE%" if "REBOOT" not in text else text)
    whole, ending = play_in_parts(program, lambda step: False)
    found, found_ending = play_with_restarts(program)
    if "endless" not in (ending, found_ending):
        assert (found, found_ending) == (whole, ending)


def exec_fails_sometimes(point: str, line: str, test: RunningTest | None) -> str | None:
    """A failure of a measured trial that depends on nothing but how many there were."""
    if test is None or point != "EXEC" or test.set_aside:
        return None
    return "it failed" if zlib.crc32(f"{test.name} {test.made}".encode()) % 7 == 0 else None


def play_killed(program: Program, kills: Iterable[tuple[int, int]]) -> NotedWorld | None:
    """The world behind a script's end. `kills`: after so many steps, and which of the states that may be on disk then
    is gone on from."""
    world = NotedWorld(exec_fails_sometimes)
    world.safe.append(json.dumps(to_data(State(seed=5))))
    machine, left = Machine(program, State(seed=5), world), iter([*kills, (5 * MOST_STEPS, 0)])
    after, age = next(left)
    try:
        for step in count():
            if machine.done:
                return world
            if step == after:
                if (found := next(left, None)) is None:
                    return None
                state = reload(world.safe[max(world.oldest, len(world.safe) - 1 - age)])
                after, age = step + found[0], found[1]
                reset_trial(state)
                machine = Machine(program, state, world)
            machine.step()
    except ScriptError:
        return None
    except CommandFailed:
        pass
    return world


def trials(world: NotedWorld) -> dict[str, list[str | None]]:
    return {test: [t.why for t in found if t.why != FIRST_RUN] for test, found in world.on_disk.items()}


kill = st.tuples(st.integers(1, 60), st.integers(0, 5))
body = "{}PRESETUP p\nVAR A=%A%.\nSETUP s\nEXEC e %A%\nCLEANUP c\nPOSTCLEANUP q\nDONE"
headers = st.builds("TEST @ {}{}".format, st.integers(1, 3), stops)
measured = st.builds("{}\n{}".format, headers, st.sampled_from(["", "CACHE warm\n"]).map(body.format))
together = st.lists(measured, min_size=2, max_size=3).map(
    lambda found: "INTERLEAVE\n" + "\n".join(found) + "\nDONE"
)
campaigns = st.lists(st.one_of(measured, together), min_size=1, max_size=3).map(
    lambda found: (
        "VAR A=\n"
        + "".join(f"{line.replace('@', f't{n}')}\n" for n, line in enumerate("\n".join(found).splitlines()))
    )
)


TORN = f"""VAR A=
INTERLEAVE
TEST t1 2 MAX=4 2 judge
{body.format("")}
TEST t9 1
{body.format("")}
DONE
"""
"""Killed between the two trials of its last block, and gone on with from a state of the block before."""
AFTER_ANOTHER = f"""VAR A=
TEST t0 1 MAX=4 2 judge
{body.format("")}
INTERLEAVE
TEST t9 1
{body.format("")}
TEST t17 1
{body.format("")}
DONE
"""
"""A test of two trials before a block of one each."""


@settings(max_examples=examples(60))
@example(TORN, [(54, 2)])
@example(AFTER_ANOTHER, [(16, 1)])
@given(campaigns, st.lists(kill, min_size=1, max_size=3))
def test_a_killed_script_makes_each_trial_once_and_ends_no_test_twice(
    text: str, kills: list[tuple[int, int]]
) -> None:
    program = parse_text(text)
    whole, killed = play_killed(program, ()), play_killed(program, kills)
    if whole is None or killed is None:
        return
    assert trials(killed) == trials(whole)
    ends = [line for line in killed.story if line.startswith("end of ")]
    assert sorted(ends) == sorted(set(ends))
    for found in killed.on_disk.values():
        assert len({trial.number for trial in found}) == len(found)
