"""A rehearsed map: what it costs, and how often its cells are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from etude.errors import InputError
from etude.peak.rehearse import Place
from etude.peak.task import Criterion, Goal, Task
from etude.surface.factors import Factor, Space
from etude.surface.next_configuration import Rules
from etude.surface.rehearsal import Bounds, drawn_surface, rehearse_maps

SPACE = Space((Factor("workers", "log", (1.0, 2.0, 4.0)), Factor("disk", "categorical", ("hdd", "ssd"))))
TASK = Task(Goal((Criterion("mean", 0.04),)), 50.0, 5000.0, within=0.2, seed=3)
CHEAP = Place(fixed_cost_s=10.0)


def test_all_cells_are_measured_and_most_are_right_at_the_cost_of_their_trials() -> None:
    found = rehearse_maps(SPACE, Rules(), TASK, "posterior", 2, place=CHEAP, processes=2)
    assert [each.measured for each in found] == [6, 6]
    assert [each.predicted for each in found] == [0, 0]
    assert sum(each.near for each in found) >= 11
    for each in found:
        assert each.trials >= 6 * 2
        assert each.spent_s > 10.0 * each.trials
    assert found[0].curve != found[1].curve
    dear = rehearse_maps(SPACE, Rules(), TASK, "posterior", 2, place=replace(CHEAP, fixed_cost_s=500.0))
    assert all(more.spent_s > less.spent_s for more, less in zip(dear, found, strict=True))


def test_what_comes_out_follows_from_the_seed_over_any_number_of_processes() -> None:
    rules = Rules(count=2)
    here, there = (
        rehearse_maps(SPACE, rules, TASK, "binsearch", 2, place=CHEAP, processes=count) for count in (1, 2)
    )
    assert here == there
    other = rehearse_maps(SPACE, rules, replace(TASK, seed=4), "binsearch", 2, place=CHEAP, processes=1)
    assert other != here


def test_a_budget_ends_a_rehearsed_map() -> None:
    (found,) = rehearse_maps(
        SPACE, Rules(), TASK, "posterior", 1, place=CHEAP, bounds=Bounds(1.0), processes=1
    )
    assert (found.measured, found.trials) == (1, 1)


def test_surfaces_are_smooth_and_within_the_loads() -> None:
    line = Space((Factor("n", "linear", tuple(float(n) for n in range(41))),))
    cells = list(line)
    rough = []
    for seed in range(20):
        peaks = drawn_surface(line, cells, TASK, np.random.default_rng(seed))
        assert (peaks >= 75.0).all()
        assert (peaks <= 5000.0 / 1.5).all()
        logs = np.log(peaks)
        rough.append(np.diff(logs).std() / logs.std())
    assert np.median(rough) < 0.5


def test_a_space_that_nobody_waits_for_is_refused_in_one_line() -> None:
    large = Space((Factor("n", "linear", tuple(float(n) for n in range(500))),))
    with pytest.raises(
        InputError, match=r"^nothing rehearsed: the surface has 500 configurations; expected 400[^\n]*$"
    ):
        rehearse_maps(large, Rules(), TASK, "posterior", 1)
