"""State files: what is written is read back, and nothing else is believed."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.errors import InputError
from etude.script import checkpoint
from etude.script.parse import parse_text
from etude.script.state import State, to_data
from support.profiles import examples
from support.worlds import NotedWorld, from_data, play

SCRIPT = """\
FOREACH X a b
INTERLEAVE
FOR N=1 TO 2
TEST %X%%N% 2 MAX=5 1 judge
PRESETUP p
EXEC e
METRIC rate ([0-9]+)
CHECKPOINT s
POSTCLEANUP q
DONE
DONE
DONE
DONE
"""


def states() -> list[dict[str, Any]]:
    """States of all kinds."""
    world = NotedWorld()
    play(SCRIPT, world)
    play("TEST t 2\nEXEC e\nCHECKPOINT s\nDONE\n", world)
    return [json.loads(data) for _, data in world.saved]


STATES = states()


def saved(state: State) -> checkpoint.Checkpoint:
    return checkpoint.Checkpoint("/x/y.ap", "abc", "/x/r", state, True, ["/lib"])


@pytest.mark.parametrize("data", STATES[:5])
def test_a_state_is_read_back_as_it_was_written(tmp_path: Path, data: dict[str, Any]) -> None:
    path = tmp_path / "s.json"
    checkpoint.save(path, saved(from_data(data)))
    assert checkpoint.load(path) == saved(from_data(data))
    assert to_data(checkpoint.load(path).state) == data
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert not path.with_name(".s.json.new").exists()


def test_a_state_file_is_replaced_whole_and_never_through_a_link(tmp_path: Path) -> None:
    path, victim = tmp_path / "s.json", tmp_path / "victim"
    victim.write_text("mine")
    path.with_name(".s.json.new").symlink_to(victim)
    checkpoint.save(path, saved(State()))
    assert victim.read_text() == "mine"
    assert checkpoint.load(path) == saved(State())


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values within a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([{}]),
)


@settings(max_examples=examples(300))
@given(st.sampled_from(STATES), st.data(), odd)
def test_a_damaged_state_is_refused_or_harmless(
    data: dict[str, Any], chosen: st.DataObject, value: Any
) -> None:
    document: dict[str, Any] = {"state": copy.deepcopy(data)}
    place = chosen.draw(st.sampled_from(places(document)[1:]))
    holder: Any = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    try:
        state = from_data(document["state"])
    except InputError:
        return
    again = json.loads(json.dumps(to_data(state)))
    assert str(to_data(from_data(again))) == str(again) or value != value


@settings(max_examples=examples(200))
@given(st.binary(max_size=200))
def test_any_bytes_are_one_line(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(InputError) as caught:
        checkpoint.load(path)
    assert "\n" not in str(caught.value)


def test_a_counter_beyond_the_script_is_refused(tmp_path: Path) -> None:
    program = parse_text("ECHO a\n")
    state = checkpoint.Checkpoint("x", program.digest, "r", State(counter=9), True)
    with pytest.raises(InputError, match="changed"):
        checkpoint.check_unchanged(tmp_path, state, program)
