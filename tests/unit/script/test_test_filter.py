"""Some tests of a script: they run as in the whole script, and of the others nothing happens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.script.machine import Machine
from etude.script.parse import parse_text
from etude.script.state import State
from etude.script.world import SelectedTests
from support.worlds import NotedWorld

SCRIPT = """\
SYSTEM before
TEST a 2
  PRESETUP p
  SYSTEM within a
  ECHO in a
  EXEC a
  POSTCLEANUP q
DONE
ECHO between
INTERLEAVE
TEST b 2 20 1 judge
  CACHE warm
  SETUP s
  EXEC b
DONE
TEST c 3
  EXEC c
DONE
DONE
FOREACH X d e
  TEST %X% 1
    SETUP s
    EXEC %X%
    CLEANUP c
  DONE
DONE
SYSTEM after
"""
GROUPS = (("a",), ("b", "c"), ("d",), ("e",))
OUTSIDE = ["SYSTEM before", "ECHO between", "SYSTEM after"]


def story(only: frozenset[str] | None, text: str = SCRIPT) -> NotedWorld:
    world, state = NotedWorld(), State(seed=3)
    Machine(parse_text(text), state, world if only is None else SelectedTests(world, only, state)).run()
    return world


def of(line: str) -> str | None:
    """The test that a line of the story is about."""
    if line in ("SYSTEM within a", "ECHO in a"):
        return "a"
    if line.startswith(("trial ", "end of ")):
        return line.split(" of ")[-1][0]
    return line[line.rindex("[") + 1] if line.endswith("]") else None


@given(st.sets(st.sampled_from(GROUPS)))
def test_it_is_the_story_of_the_whole_without_the_lines_of_the_others(groups: set[tuple[str, ...]]) -> None:
    only = frozenset(name for names in groups for name in names)
    whole, found = story(None), story(only)
    assert found.story == [line for line in whole.story if of(line) is None or of(line) in only]
    assert found.begun == [name for name in whole.begun if name in only]


def test_of_no_test_only_what_stands_outside_happens() -> None:
    assert story(frozenset()).story == OUTSIDE


@pytest.mark.parametrize("line", ["COPY x @h:y", "CHECKPOINT f", "REBOOT"])
def test_what_stands_within_another_test_does_not_happen(line: str) -> None:
    world = story(frozenset("z"), f"TEST a 1\n  {line}\n  EXEC a\nDONE\nTEST z 1\nEXEC z\nDONE\n")
    assert [text for text in world.story if "restart" in text or "COPY" in text] == []
    assert world.saved == []
