"""bench/pool: a surface over simulated nodes has the cells that were asked for, and its span is what the nodes took."""

from __future__ import annotations

import importlib

import pytest

from support.places import BENCH

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    pool_maps = importlib.import_module("pool.maps")
    pool_scale = importlib.import_module("pool.scale")


@pytest.mark.more
@pytest.mark.parametrize("aware", [True, False], ids=["aware", "naive"])
def test_a_map_over_nodes_measures_as_many_cells_as_were_asked_for(aware: bool) -> None:
    made = pool_maps.made(pool_maps.Asked("DB_TP", 0, 6, 3, aware))
    assert made.samples == 6
    assert made.busy_s / 3 <= made.span_s <= made.busy_s
    assert 0 < made.error < 1


@pytest.mark.more
def test_of_a_map_of_many_cells_each_is_measured_and_the_controllers_time_counts() -> None:
    cost = pool_scale.mapped(3, 12)
    assert 12 <= cost.samples <= 15, "a cell that its neighbours contradict is measured again"
    assert cost.span_s >= cost.work_s / 3
    assert 0 < cost.slowest_s <= cost.cpu_s
    assert 0 < cost.efficiency <= 1
    assert pool_scale.row(cost).reached is None, "too few cells to judge by"
