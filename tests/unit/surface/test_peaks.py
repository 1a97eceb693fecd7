"""A peak rate as the response: where a cell's search begins, how far off it may be, and what it gives."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from etude.errors import InputError, UsageError
from etude.machine.resources.resource import Setting
from etude.peak.search_store import SearchStore
from etude.peak.sources import of_harness as source_of
from etude.peak.task import Answer, Criterion, Goal, Task
from etude.surface.factors import Factor, Space
from etude.surface.map_store import MapStore, define_map, open_map
from etude.surface.next_configuration import Rules, Visit
from etude.surface.peaks import SEARCH, of_harness, of_simulation, sample_of, simulated, task_of
from etude.surface.response import ConfigurationRequest
from etude.surface.run_map import Display, MapBudget, run_map

GOAL = Goal((Criterion("mean", 0.04),))
TASK = Task(GOAL, 50.0, 5000.0, 100.0)
CLIENTS = Task(GOAL, 1.0, 50.0, whole=True, closed=True)
SHAPES = (("knee", 0.7), ("ramp", 0.3))


def visit(expected: float | None, spread: float | None = 0.1) -> Visit:
    return Visit((0,), expected, spread, "")


@pytest.mark.parametrize(("task", "expected", "load", "spread"), [
    (TASK, 700.0, 700.0, 0.1), (TASK, 7e5, 5000.0, None), (TASK, 0.1, 50.0, None), (TASK, None, 100.0, None),
    (CLIENTS, 7.4, 7.0, 0.1), (CLIENTS, 900.0, 50.0, None),
], ids=["within", "above", "below", "unknown", "whole", "whole, above"])  # fmt: skip
def test_a_search_begins_where_the_response_is_expected_within_the_loads_that_may_be(
    task: Task, expected: float | None, load: float | None, spread: float | None
) -> None:
    found = task_of(task, visit(expected), SHAPES)
    assert (found.seed_load, found.seed_spread, found.seed_shapes) == (load, spread, SHAPES)
    assert found.seed_trials == 0
    proven = task_of(task, replace(visit(expected), proven=True), SHAPES)
    assert proven.seed_trials == (0 if spread is None else 1), "what cannot be offered proves nothing"


@pytest.mark.parametrize(("answer", "state", "value"), [
    (Answer(300.0, 280.0, 320.0, 0.95, True, ""), "measured", 300.0),
    (Answer(None, 5000.0, math.inf, 0.95, False, ""), "bounded", None),
    (Answer(None, 0.0, 50.0, 0.95, False, ""), "bounded", None),
    (Answer(None, 0.0, math.inf, 0.95, False, "no trial"), "failed", None),
], ids=["found", "above all", "below all", "nothing"])  # fmt: skip
def test_an_answer_is_a_sample(answer: Answer, state: str, value: float | None) -> None:
    found = sample_of((1,), TASK, answer, [])
    assert (found.state, found.value, found.low, found.high) == (state, value, answer.low, answer.high)
    assert (found.kept, found.why) == (answer.kept, answer.why)


def test_a_cell_that_is_asked_again_has_its_answer_at_once(tmp_path: Path) -> None:
    system = simulated("DB_TP:3")
    asked = ConfigurationRequest(
        Visit((1, 2), 200.0, 0.2, ""), system.space.settings((1, 2)), Setting(), tmp_path, None
    )
    first = of_simulation(system, "posterior").measure(asked, lambda text: None)
    trials = SearchStore(tmp_path / SEARCH).trials()
    assert first.trials == len(trials) > 0
    assert of_simulation(system, "posterior").measure(asked, lambda text: None) == first
    assert SearchStore(tmp_path / SEARCH).trials() == trials


def test_a_search_that_is_gone_on_with_keeps_its_seed_and_takes_the_budget_of_now(tmp_path: Path) -> None:
    system = simulated("DB_TP:3")

    def asked(expected: float, left_s: float) -> ConfigurationRequest:
        return ConfigurationRequest(Visit((1, 2), expected, 0.2, ""), {}, Setting(), tmp_path, left_s)

    cut = of_simulation(system, "posterior").measure(asked(100.0, 250.0), lambda text: None)
    assert not cut.kept
    whole = of_simulation(system, "posterior").measure(asked(300.0, 1e6), lambda text: None)
    assert whole.trials > cut.trials
    assert SearchStore(tmp_path / SEARCH).task.seed_load == 100.0


def test_shapes_that_one_cell_taught_are_told_to_the_next_also_in_another_sitting(tmp_path: Path) -> None:
    def sitting(path: Path, count: int) -> None:
        system = simulated("Web:1")
        response = of_simulation(system, "posterior")
        what = define_map("Web", system.space, Rules(count=count), response, "")
        with open_map(path, what) as kept:
            run_map(kept, response, MapBudget({}), Display())

    def tasks(path: Path) -> dict[str, object]:
        return {
            file.parent.parent.name: json.loads(file.read_text())["plan"]["task"]
            for file in path.glob("*/search/experiment.json")
        }

    sitting(tmp_path / "once", 3)
    for count in (1, 2, 3):
        sitting(tmp_path / "parts", count)
    assert tasks(tmp_path / "parts") == tasks(tmp_path / "once")
    assert sum(bool(task["seed_shapes"]) for task in tasks(tmp_path / "once").values()) == 2  # type: ignore[index]
    assert MapStore(tmp_path / "parts").samples() == MapStore(tmp_path / "once").samples()


HARNESS = """
[goal]
mean = "40 ms"
[load]
lowest = 1
highest = 100
[commands]
load = "true {load} {workers}"
[reader]
kind = "windows"
[factors]
workers = 1
"""


def test_a_factor_that_the_harness_does_not_have_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "h.toml").write_text(HARNESS)
    source = source_of(str(tmp_path / "h.toml"))
    space = Space((Factor("workers", "log", (1.0,)), Factor("load", "log", (1.0,))))
    with pytest.raises(InputError, match=r"^spec\.toml: .*\bload\b.*\bh\b.*\bworkers$"):
        of_harness(source, "posterior", space, (), "spec.toml")
    assert of_harness(source, "posterior", space, ("load",), "spec.toml").unit == "1/s"


def test_a_system_that_is_not_started_here_cannot_be_confined(tmp_path: Path) -> None:
    (tmp_path / "h.toml").write_text(HARNESS)
    space = Space((Factor("workers", "log", (1.0,)),))
    response = of_harness(source_of(str(tmp_path / "h.toml")), "posterior", space, (), "spec.toml")
    asked = ConfigurationRequest(visit(None), {"workers": "1"}, Setting(words=("env",)), tmp_path / "c", None)
    with pytest.raises(InputError, match=r"spec\.toml: h .*resource"):
        response.measure(asked, lambda text: None)


@pytest.mark.parametrize(
    "words", ["Nothing", "DB_TP:x", "DB_TP:-1", "", "DB_TP:", pytest.param(f"DB_TP:{'9' * 5000}", id="long")]
)
def test_a_simulation_that_there_is_not_is_one_line(words: str) -> None:
    with pytest.raises(UsageError, match=f"--simulate {words}: "):
        simulated(words)
