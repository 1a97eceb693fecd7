"""What is stored of results."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError, UsageError
from etude.experiment.plan import NewLimits, make_plan
from etude.experiment.run import extend, resume, run
from etude.experiment.test import Test
from etude.peak.search_store import SearchSpec, open_store
from etude.peak.task import Criterion, Goal, Task, Trial, TrialRequest
from etude.peak.window import Window
from etude.results.readers import read_table
from etude.store.content import read_content
from etude.store.entry import machine_of
from etude.surface.next_configuration import Rules
from support.builders import measurement
from support.charting import Made, mapped
from support.fakes import World
from support.places import DATA
from support.stored import directory, snapshot


def test_what_was_not_kept_and_what_has_no_value_is_left_out(tmp_path: Path) -> None:
    place = directory(tmp_path / "r", {"sort": [1.0]})
    rows = [
        measurement("sort", 1, 9.0, kept=False, why="first run"),
        measurement("sort", 2, 1.5),
        measurement("sort", 3, None),
    ]
    write(place / "sort", rows)
    (point,) = read_content(str(place)).points
    assert point.values == (1.5,)
    assert read_content(str(place)).trials == 3


def test_a_result_was_measured_when_its_first_trial_began(tmp_path: Path) -> None:
    place = directory(tmp_path / "r", {"sort": [1.0]})
    days = (3, 2, 4)
    write(
        place / "sort",
        [measurement("sort", n, start=f"2026-01-0{day}T00:00:00Z") for n, day in enumerate(days, 1)],
    )
    (point,) = read_content(str(place)).points
    assert point.measured == datetime(2026, 1, 2, tzinfo=UTC)


def test_a_result_knows_the_command_of_its_first_trial(tmp_path: Path) -> None:
    place = directory(tmp_path / "r", {"sort": [1.0]})
    write(place / "sort", [measurement("sort", 1, command=["sort", "a b"]), measurement("sort", 2)])
    (point,) = read_content(str(place)).points
    assert point.command == "sort 'a b'"


def write(place: Path, rows: list) -> None:
    from support.builders import line

    (place / "results.jsonl").write_bytes(b"".join(map(line, rows)))


def test_results_with_no_kept_trial_are_refused(tmp_path: Path) -> None:
    place = directory(tmp_path / "r", {"sort": [1.0]})
    write(place / "sort", [measurement("sort", 1, 9.0, kept=False, why="first run")])
    with pytest.raises(InputError, match=str(place)):
        read_content(str(place))


def test_an_experiment_that_is_extended_stays_the_same_one(tmp_path: Path) -> None:
    run(make_plan(["a", "b"], trials=2, seed=1), directory=tmp_path, make_engine=world().make_engine)
    before = read_content(str(tmp_path))
    for trials in (3, 4):
        resume(tmp_path, NewLimits(trials=trials), make_engine=world().make_engine)
    extend(tmp_path, [Test("c", ("c",))], make_engine=world().make_engine)
    after = read_content(str(tmp_path))
    assert (after.origin, after.trials > before.trials) == (before.origin, True)


def world() -> World:
    return World({"a": 1.0, "b": 2.0, "c": 3.0})


def test_a_search_or_a_map_with_other_limits_stays_the_same_one(tmp_path: Path) -> None:
    searches, maps = set(), set()
    task = Task(Goal((Criterion("mean", 0.04),)), 50.0, 5000.0)
    for budget_s in (10.0, 20.0):
        sought = SearchSpec("server", replace(task, budget_s=budget_s), "linear", "s")
        with open_store(tmp_path / "peak", sought) as kept:
            kept.keep(
                TrialRequest(50.0, 1.0, "first"), Trial(50.0, 1.0, (Window(1.0, 50, 50, 0, 0.01),), 1.0)
            )
        searches.add(read_content(str(tmp_path / "peak")).origin)
    for name, count in (("one", 1), ("two", 2)):
        mapped(tmp_path / "map", Made(), Rules(count=count), name=name)
        maps.add(read_content(str(tmp_path / "map")).origin)
    assert (len(searches), len(maps)) == (1, 1)


def two_machines(tmp_path: Path) -> Path:
    """Two sessions, each on a machine of its own."""
    sittings = [
        {"sitting": 1, "boot_id": "b", "host": "one", "start": "2026-01-01T00:00:00Z", "end": None},
        {"sitting": 2, "boot_id": "c", "host": "two", "start": "2026-01-02T00:00:00Z", "end": None}
        | {"machine": snapshot("Slow 1", 2)},
    ]
    place = directory(tmp_path / "r", {"sort": [1.0]}, sittings=sittings)
    rows = [measurement("sort", n, float(n), sitting=s, host=h) for n, s, h in ((1, 1, "one"), (2, 2, "two"))]
    write(place / "sort", rows)
    return place


def test_each_machine_of_a_result_has_a_point_of_its_own(tmp_path: Path) -> None:
    first, second = read_content(str(two_machines(tmp_path))).points
    assert (first.machine.name, first.values, first.sittings) == ("one", (1.0,), (1,))
    assert (second.machine.name, second.values, second.sittings) == ("two", (2.0,), (2,))
    assert dict(second.machine.facts)["processor"] == "Slow 1"
    assert first.machine.digest != second.machine.digest


def test_several_machines_are_not_given_one_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\(one, two\)"):
        read_content(str(two_machines(tmp_path)), "both")


def test_a_machine_can_be_called_otherwise(tmp_path: Path) -> None:
    place = directory(tmp_path / "r", {"sort": [1.0]})
    known, called = (read_content(str(place), name).points[0].machine for name in (None, "lab 3"))
    assert (known.name, called.name) == ("here", "lab 3")
    assert known.digest == called.digest


def test_an_experiment_is_the_same_when_it_has_grown_or_was_moved(tmp_path: Path) -> None:
    small = read_content(str(directory(tmp_path / "a", {"sort": [1.0]})))
    grown = read_content(str(directory(tmp_path / "b", {"sort": [1.0, 2.0]})))
    other = read_content(str(directory(tmp_path / "c", {"sort": [1.0]}, start="2026-02-02T00:00:00Z")))
    assert small.origin == grown.origin != other.origin
    assert small.digest != grown.digest


@pytest.mark.parametrize("verb", ["peak", "surface"])
def test_loads_and_cells_are_named_with_their_experiment(tmp_path: Path, verb: str) -> None:
    place = directory(tmp_path / "r", {"load=175": [1.0]}, verb=verb, name="nginx")
    assert read_content(str(place)).points[0].test == "nginx: load=175"


def test_sittings_round_a_restart_of_its_own_are_one(tmp_path: Path) -> None:
    sittings = [
        {"sitting": n, "boot_id": str(n), "host": "here", "start": "2026-01-01T00:00:00Z", "end": None}
        | {"how_ended": "restarting" if n == 1 else "complete"}
        for n in (1, 2)
    ]
    place = directory(tmp_path / "r", {"sort": [1.0]}, sittings=sittings)
    write(place / "sort", [measurement("sort", n, float(n), sitting=n) for n in (1, 2)])
    (point,) = read_content(str(place)).points
    assert point.sittings == (1, 1)


def hyperfine(tmp_path: Path) -> Path:
    path = tmp_path / "out.json"
    result = {"command": "sort x", "mean": 1.5, "times": [1.0, 2.0], "exit_codes": [0, 0]}
    path.write_text(json.dumps({"results": [result]}))
    os.utime(path, (1767225600, 1767225600))
    return path


def test_a_file_of_another_program_is_stored_with_the_machine_that_is_named(tmp_path: Path) -> None:
    path = hyperfine(tmp_path)
    with pytest.raises(UsageError, match="--machine NAME"):
        read_content(str(path))
    content = read_content(str(path), "lab 3")
    point = next(each for each in content.points if each.values == (1.0, 2.0))
    assert (point.test, point.machine.name, point.machine.digest) == ("sort x", "lab 3", "")
    assert point.measured == datetime(2026, 1, 1, tzinfo=UTC), "when the file was written: no more is known"


def test_a_copied_file_is_the_same(tmp_path: Path) -> None:
    first = read_content(str(hyperfine(tmp_path)), "lab 3")
    os.utime(tmp_path / "out.json", (1, 1))
    assert read_content(str(tmp_path / "out.json"), "lab 3").origin == first.origin


SAMPLES = DATA / "readers"


def test_summaries_are_refused() -> None:
    with pytest.raises(InputError, match="summaries, no trials"):
        read_content(str(SAMPLES / "hyperfine-summaries.json"), "m")


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir() if path.suffix != ".md"))
def test_what_stats_reads_is_stored_as_long_as_it_has_trials(name: str) -> None:
    path = str(SAMPLES / name)
    if read_table(path).summary_only:
        with pytest.raises(InputError, match="holds summaries"):
            read_content(path, "m")
        return
    content = read_content(path, "m")
    assert content.trials >= 1
    assert all(point.values and len(point.sittings) in (0, len(point.values)) for point in content.points)


@given(st.integers(0, 2**21))
def test_memory_that_the_kernel_keeps_for_itself_makes_no_other_machine(less: int) -> None:
    whole = snapshot()
    known = machine_of("m", whole)
    whole["memory"]["total_bytes"] -= less
    assert machine_of("m", whole) == known


@pytest.mark.parametrize(
    ("part", "member"), [("cpu", "model"), ("cpu", "online"), ("system", "kernel_release")]
)
def test_another_processor_or_kernel_is_another_machine(part: str, member: str) -> None:
    other = snapshot()
    other[part][member] = "other"
    assert machine_of("m", other).digest != machine_of("m", snapshot()).digest


@pytest.mark.parametrize("nothing", [None, {}, {"cpu": None}, {"cpu": [], "memory": {"total_bytes": None}}])
def test_a_machine_of_which_nothing_is_known_has_no_digest(nothing: dict) -> None:
    assert machine_of("m", nothing).digest == ""


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
parts = ("system", "cpu", "memory", "frequency", "virtualisation")


@given(st.fixed_dictionaries(dict.fromkeys(parts, json_values)))
def test_any_snapshot_gives_a_machine(made: dict) -> None:
    assert all(isinstance(word, str) and word for fact in machine_of("m", made).facts for word in fact)
