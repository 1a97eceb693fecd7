"""When boots stop: after exactly so many in a row as may find nothing new, and never otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.machine.boot.record import Record
from etude.machine.boot.resume import count_boot, has_too_many_boots, progress

RECORD = Record(words=[], state="/s", results="/r", directory="/", environment={}, program=["x"])


def boots_until_stop(found: list[str], most_boots: int) -> int | None:
    """The number of the boot that is one too many."""
    record = replace(RECORD, most_boots=most_boots)
    for number, each in enumerate(found, 1):
        record = count_boot(record, each)
        if has_too_many_boots(record):
            return number
    return None


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 6))
def test_boots_stop_at_the_first_one_that_is_too_many_without_progress(steps: list[bool], most: int) -> None:
    at, found, expected, same = 0, [], None, 0
    for number, step in enumerate([True, *steps], 1):
        at += step
        found.append(f"state {at}")
        same = 1 if step else same + 1
        if same == most + 1 and expected is None:
            expected = number
    assert boots_until_stop(found, most) == expected


@given(st.integers(1, 6), st.integers(1, 6))
def test_a_script_that_goes_round_in_a_circle_stops(length: int, most: int) -> None:
    found = [f"state {i % length}" for i in range(length + most)]
    assert boots_until_stop(found, most) == length + most


def test_a_script_that_always_comes_further_never_stops() -> None:
    assert boots_until_stop([f"state {i}" for i in range(3000)], 1) is None


def test_progress_is_the_state_and_the_whole_lines_of_results(kept: Any) -> None:
    def now() -> str:
        return progress(kept.state, kept.directory)

    first = now()
    kept.come_to({"counter": 1})
    assert now() == first
    kept.come_to({"counter": 2})
    second = now()
    assert second != first
    kept.come_to({"counter": 2}, lines=1)
    third = now()
    assert third != second
    with open(kept.directory / "t" / "results.jsonl", "a") as file:
        file.write('{"torn')
    assert now() == third


def test_when_a_state_was_written_is_no_progress(kept: Any) -> None:
    first = progress(kept.state, kept.directory)
    kept.state.write_text(kept.state.read_text().replace("at some time", "at another"))
    assert progress(kept.state, kept.directory) == first


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"state"'])
def test_what_is_no_state_is_refused(kept: Any, text: str) -> None:
    kept.state.write_text(text)
    with pytest.raises(InputError, match=r"state\.json: "):
        progress(kept.state, kept.directory)
