"""Which cell is next: by the rules, from the samples alone, each cell once, and an end where there is enough."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.surface import next_configuration
from etude.surface.factors import Configuration, Factor, Space
from etude.surface.next_configuration import (
    LEAST_SPREAD,
    MapComplete,
    Plan,
    Rules,
    Visit,
    Wait,
    contradiction,
    decide,
    learned_at,
    middle_configuration,
    nearest_response,
    planned_configurations,
    predicted_samples,
)
from etude.surface.samples import Sample
from support.profiles import examples

GRID = Space(
    (Factor("a", "log", (1.0, 2.0, 4.0)), Factor("b", "linear", (1.0, 2.0, 3.0, 4.0))), frozenset({(2, 3)})
)
KINDS = Space((Factor("kind", "categorical", ("x", "y")), Factor("n", "log", (1.0, 10.0, 100.0))))
PLANS: dict[str, Rules] = {
    "full": Rules(),
    "in-order": Rules("in-order"),
    "one-at-a-time": Rules("one-at-a-time"),
    "d-optimal": Rules("d-optimal", 7),
    "adaptive": Rules("adaptive", 6),
    "skip": Rules(skip=True, within=0.3, checks=2),
    "error": Rules("adaptive", error=0.05),
    "count": Rules(count=4),
}
Response = Callable[[Configuration], float]


def product(cell: Configuration) -> float:
    return 100 * math.exp(0.4 * cell[0] + 0.1 * cell[1])


def noisy(cell: Configuration) -> float:
    return product(cell) * math.exp(0.2 * float(np.random.default_rng([3, *cell]).standard_normal()))


def measured(cell: Configuration, value: float, away: float = 1.02) -> Sample:
    return Sample(cell, "measured", value, value / away, value * away, 0.95, 10.0, 3)


def failed(cell: Configuration) -> Sample:
    return Sample(cell, "failed", None, 0.0, math.inf, 0.95, 1.0, 0, False, "it died")


def bounded(cell: Configuration) -> Sample:
    return Sample(cell, "bounded", None, 5000.0, math.inf, 0.95, 10.0, 2, False, "beyond all")


def mapped(
    space: Space, rules: Rules, of: Callable[[Configuration], Sample], samples: list[Sample] | None = None
) -> tuple[list[Sample], str]:
    """Samples in their order until there is enough, and why it is."""
    samples = list(samples or [])
    while isinstance(decision := decide(space, rules, samples), Visit):
        assert decision.cell in set(space)
        assert len(samples) < space.size
        samples.append(of(decision.cell))
    return samples, decision.why


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_visits_its_own_cells_each_once_and_ends(name: str) -> None:
    samples, why = mapped(GRID, PLANS[name], lambda cell: measured(cell, product(cell)))
    cells = [sample.cell for sample in samples]
    assert len(set(cells)) == len(cells)
    assert set(cells) <= set(planned_configurations(GRID, PLANS[name]))
    assert why


@pytest.mark.parametrize(("name", "count", "why"), [
    ("full", 11, "every configuration"), ("in-order", 11, "every configuration"),
    ("one-at-a-time", 6, "every configuration"),
    ("count", 4, "4 configurations"), ("d-optimal", 7, "every configuration"), ("adaptive", 6, "6 configurations"),
])  # fmt: skip
def test_a_plan_has_as_many_cells_as_it_says(name: str, count: int, why: str) -> None:
    samples, said = mapped(GRID, PLANS[name], lambda cell: measured(cell, noisy(cell)))
    assert len(samples) == count
    assert why in said


def test_one_at_a_time_is_the_middle_and_what_differs_in_one_factor() -> None:
    cells = planned_configurations(GRID, PLANS["one-at-a-time"])
    assert cells[0] == middle_configuration(GRID) == (1, 2)
    assert all(sum(a != b for a, b in zip(cell, cells[0], strict=True)) == 1 for cell in cells[1:])
    assert planned_configurations(GRID, Rules("one-at-a-time", base=(0, 0)))[0] == (0, 0)


def test_the_middle_is_a_cell_that_is_there() -> None:
    assert middle_configuration(replace(GRID, without=frozenset({(1, 2)}))) in {
        (1, 1),
        (1, 3),
        (0, 2),
        (2, 2),
    }


def test_in_order_goes_through_all_and_begins_at_the_nearest_response() -> None:
    """As the paper: no surrogate says anything."""
    samples: list[Sample] = []
    for cell in KINDS:
        decision = decide(KINDS, Rules("in-order"), samples)
        assert isinstance(decision, Visit)
        assert (decision.cell, decision.spread) == (cell, None)
        assert decision.expected == nearest_response(KINDS, cell, samples)
        samples.append(measured(cell, 10.0 * (1 + len(samples))))


def test_the_nearest_is_of_the_same_category_and_without_one_it_is_the_middle_of_all() -> None:
    samples = [measured((0, 0), 10.0), measured((0, 2), 1000.0), failed((0, 1))]
    assert nearest_response(KINDS, (0, 1), samples[:1]) == pytest.approx(10.0)
    assert nearest_response(KINDS, (1, 2), samples) == pytest.approx(100.0), "the median of logs"
    assert nearest_response(KINDS, (1, 2), [*samples, measured((1, 0), 7.0)]) == pytest.approx(7.0)
    assert nearest_response(KINDS, (1, 2), [failed((1, 1))]) is None


def test_the_first_cell_has_no_expectation_the_second_the_first_ones_response_a_later_one_a_prediction() -> (
    None
):
    first = decide(GRID, Rules(), [])
    assert isinstance(first, Visit)
    assert (first.expected, first.spread, first.why) == (None, None, "the first")
    one = [measured(first.cell, 120.0)]
    second = decide(GRID, Rules(), one)
    assert isinstance(second, Visit)
    assert (second.expected, second.spread) == (pytest.approx(120.0), None)
    samples = one
    while isinstance(later := decide(GRID, Rules(), samples), Visit) and later.spread is None:
        samples = [*samples, measured(later.cell, product(later.cell))]
    assert isinstance(later, Visit)
    assert later.spread is not None
    assert later.spread >= LEAST_SPREAD
    assert later.expected == pytest.approx(product(later.cell), rel=0.5)


def test_skipping_leaves_out_what_is_known_and_only_after_predictions_came_true() -> None:
    samples, why = mapped(GRID, PLANS["skip"], lambda cell: measured(cell, product(cell)))
    assert 4 + 2 <= len(samples) < GRID.size
    assert "predicted well enough" in why
    left = predicted_samples(GRID, samples, 0.95)
    assert {each.cell for each in left} == set(GRID) - {each.cell for each in samples}
    for each in left:
        assert each.value == pytest.approx(product(each.cell), rel=0.3)


def test_nothing_is_skipped_where_predictions_do_not_come_true() -> None:
    samples, _ = mapped(GRID, replace(PLANS["skip"], within=0.02), lambda cell: measured(cell, noisy(cell)))
    assert len(samples) == GRID.size


def test_an_adaptive_map_ends_with_the_error_that_was_wanted() -> None:
    rules = Rules("adaptive", error=0.05)
    samples, why = mapped(GRID, rules, lambda cell: measured(cell, product(cell)))
    assert len(samples) < GRID.size
    assert why.endswith("% off on average")
    samples, _ = mapped(GRID, replace(rules, error=0.0001), lambda cell: measured(cell, noisy(cell)))
    assert len(samples) == GRID.size


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("other", [failed, bounded], ids=["failed", "bounded"])
def test_cells_that_gave_no_value_are_not_visited_again(
    name: str, other: Callable[[Configuration], Sample]
) -> None:
    def of(cell: Configuration) -> Sample:
        return other(cell) if sum(cell) % 2 else measured(cell, product(cell))

    samples, _ = mapped(GRID, PLANS[name], of)
    cells = [sample.cell for sample in samples]
    assert len(set(cells)) == len(cells)


@pytest.mark.parametrize("name", PLANS)
def test_a_map_of_which_nothing_can_be_measured_ends(name: str) -> None:
    samples, _ = mapped(GRID, PLANS[name], failed)
    assert len({sample.cell for sample in samples}) == len(samples)
    assert predicted_samples(GRID, samples, 0.95) == ()


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("away", [1.0, 1.02, 3.0], ids=["exact", "near", "wide"])
def test_a_constant_response_is_mapped_to_its_end(name: str, away: float) -> None:
    samples, _ = mapped(GRID, PLANS[name], lambda cell: measured(cell, 100.0, away))
    for each in predicted_samples(GRID, samples, 0.95):
        assert each.value == pytest.approx(100.0, rel=0.05)
        assert 0 < each.low <= each.value <= each.high < math.inf


def test_of_two_samples_of_a_cell_the_last_counts() -> None:
    samples = [measured((0, 0), 10.0), measured((2, 2), 20.0), failed((1, 1)), measured((0, 0), 15.0)]
    assert nearest_response(GRID, (0, 1), samples) == pytest.approx(15.0)
    assert isinstance(decide(GRID, Rules(), samples), Visit)


def test_a_space_of_one_cell_and_one_of_one_factor_with_one_level() -> None:
    space = Space((Factor("a", "linear", (3.0,)), Factor("b", "categorical", ("x",))))
    for plan in (Rules(), Rules("in-order"), Rules("one-at-a-time"), Rules("d-optimal", 1), Rules(skip=True)):
        samples, _ = mapped(space, plan, lambda cell: measured(cell, 5.0))
        assert [sample.cell for sample in samples] == [(0, 0)]


def test_responses_of_0_are_no_reason_to_stop() -> None:
    samples, _ = mapped(GRID, Rules(), lambda cell: replace(measured(cell, 1.0), value=0.0, low=0.0))
    assert len(samples) == GRID.size


@settings(max_examples=examples(12))
@given(st.sampled_from(sorted(PLANS)), st.integers(0, 2**32))
def test_a_map_that_is_interrupted_anywhere_goes_on_as_it_would_have(name: str, seed: int) -> None:
    """A decision follows from the rules and the samples alone: no other memory is needed."""
    draw = random.Random(seed)
    kinds = {cell: draw.choice((measured, measured, measured, failed, bounded)) for cell in GRID}

    def of(cell: Configuration) -> Sample:
        return measured(cell, noisy(cell)) if kinds[cell] is measured else kinds[cell](cell)  # type: ignore[operator]

    whole, why = mapped(GRID, PLANS[name], of)
    at = draw.randint(0, len(whole))
    assert mapped(GRID, PLANS[name], of, whole[:at]) == (whole, why)


@pytest.mark.parametrize(("rules", "key"), [
    (Rules("d-optimal"), "plan"), (Rules("adaptive"), "plan"), (Rules(count=9), "count"), (Rules(error=0.1), "error"),
    (Rules("in-order", skip=True), "skip"), (Rules(base=(0, 0)), "base"), (Rules("adaptive", 3), None),
    (Rules("adaptive", error=0.1), None), (Rules("d-optimal", 8, skip=True), None), (Rules(), None),
])  # fmt: skip
def test_rules_that_contradict_each_other_are_named(rules: Rules, key: str | None) -> None:
    found = contradiction(rules, 8)
    assert (found and found[0]) == key


def test_every_plan_is_known() -> None:
    from typing import get_args

    assert set(get_args(Plan)) == {rules.plan for rules in PLANS.values()}
    assert isinstance(decide(GRID, Rules(count=1), [failed((0, 0))]), MapComplete)


def ahead(rules: Rules, samples: list[Sample], width: int) -> tuple[list[Configuration], str]:
    """Cells that are begun one after the other before any of them has ended, `width` at most, and why no more are."""
    begun: list[Configuration] = []
    while len(begun) < width and isinstance(decision := decide(GRID, rules, samples, begun), Visit):
        begun.append(decision.cell)
    return begun, "" if isinstance(decision, Visit) else decision.why


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("width", [2, 8])
def test_cells_under_way_are_not_visited_and_the_map_ends_only_after_they_have(name: str, width: int) -> None:
    samples: list[Sample] = []
    under_way: list[Configuration] = []
    while True:
        decision = decide(GRID, PLANS[name], samples, under_way)
        if isinstance(decision, MapComplete):
            break
        if isinstance(decision, Wait):
            assert under_way
        else:
            assert decision.cell not in {*under_way, *(sample.cell for sample in samples)}
            under_way.append(decision.cell)
            assert len(under_way) <= width
        if isinstance(decision, Wait) or len(under_way) == width:
            cell = under_way.pop(len(samples) % len(under_way))
            samples.append(measured(cell, noisy(cell)))
    assert under_way == []
    assert {each.cell for each in samples} <= set(planned_configurations(GRID, PLANS[name]))
    if PLANS[name].count is not None:
        assert len(samples) == PLANS[name].count


def test_as_many_are_begun_as_were_asked_for_and_no_more() -> None:
    assert "6 configurations" in ahead(Rules("adaptive", 6), [], 20)[1]
    assert len(ahead(Rules("adaptive", 6), [], 20)[0]) == 6
    assert len(ahead(Rules("adaptive", 6), [measured((0, 0), 10.0), failed((1, 1))], 20)[0]) == 4
    assert isinstance(decide(GRID, Rules(count=2), [measured((0, 0), 10.0)], [(1, 1)]), Wait)


def test_cells_begun_together_are_apart_and_not_the_same_again() -> None:
    """Without it, the second would be the neighbour of the first: where least was known."""
    samples = [measured(cell, product(cell)) for cell in ((0, 0), (0, 3), (2, 0), (2, 2), (1, 1))]
    line = Space((Factor("n", "linear", tuple(float(n) for n in range(40))),))
    some = [measured((at,), 100 + at) for at in (0, 1, 2, 3, 39)]
    begun: list[Configuration] = []
    while len(begun) < 3:
        decision = decide(line, Rules("adaptive", 30), some, begun)
        assert isinstance(decision, Visit)
        begun.append(decision.cell)
    places = sorted(cell[0] for cell in begun)
    assert all(after - before >= 5 for before, after in itertools.pairwise(places)), places
    assert len(set(ahead(Rules(), samples, 6)[0])) == 6


LINE = Space((Factor("n", "linear", tuple(float(n) for n in range(12))),))


def test_nothing_is_begun_that_cells_under_way_will_make_known() -> None:
    """Skipping looks at what predictions will be worth then: of a gap, its middle is enough."""
    values = {at: 100 * math.exp(0.3 * math.sin(at)) for at in (0, 1, 2, 3, 4, 5, 11)}
    samples = [replace(measured((at,), value), expected=value, spread=0.03) for at, value in values.items()]
    rules = Rules(skip=True, within=0.3, checks=2)
    first = decide(LINE, rules, samples)
    assert isinstance(first, Visit)
    waits = decide(LINE, rules, samples, [first.cell])
    assert isinstance(waits, Wait)
    assert "4 configurations" in waits.why
    assert isinstance(decide(LINE, replace(rules, within=0.2), samples, [first.cell]), Visit)


def test_a_visit_expects_what_samples_say_whatever_is_under_way() -> None:
    samples = [measured(cell, product(cell)) for cell in ((0, 0), (0, 3), (2, 0), (2, 2), (1, 1))]
    alone = decide(GRID, Rules(), samples)
    assert isinstance(alone, Visit)
    others = [cell for cell in GRID if cell != alone.cell and cell not in {each.cell for each in samples}]
    beside = decide(GRID, Rules(), samples, others)
    assert beside == alone


def test_a_cell_that_is_repeated_counts_as_under_way() -> None:
    done = [failed(cell) for cell in GRID]
    assert isinstance(decide(GRID, Rules(), done, [(0, 0)]), Wait)
    assert isinstance(decide(GRID, Rules(), done), MapComplete)


def costing(cell: Configuration) -> Sample:
    return replace(measured(cell, product(cell)), cost_s=10.0 * 4 ** cell[1])


def test_of_the_last_cells_the_one_that_takes_longest_is_begun_first() -> None:
    samples = [costing(cell) for cell in GRID if sum(cell) % 2 == 0]
    left = [cell for cell in GRID if sum(cell) % 2]
    begun = [left.pop()]
    for _ in range(len(left)):
        decision = decide(GRID, Rules(), samples, begun)
        assert isinstance(decision, Visit)
        begun.append(decision.cell)
    last = begun[len(left) // 2 + 1 :]
    assert [cell[1] for cell in last] == sorted((cell[1] for cell in last), reverse=True)
    expected = decide(GRID, Rules("in-order"), samples, begun[:1])
    assert isinstance(expected, Visit)
    assert expected.cell == min(begun[1:]), "in order is in order"


def test_what_teaches_most_for_its_cost_is_first_where_time_is_short() -> None:
    samples = [measured(cell, product(cell)) for cell in ((0, 0), (0, 3), (2, 0), (2, 2), (1, 1))]
    free = decide(GRID, Rules(), samples)
    assert isinstance(free, Visit)
    bound = decide(GRID, Rules(), samples, (), lambda cell: 1000.0 if cell == free.cell else 1.0)
    assert isinstance(bound, Visit)
    assert bound.cell != free.cell


def test_of_many_samples_the_last_few_only_count_as_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A surrogate is not fitted anew after each; they are as cells under way."""
    assert [learned_at(n) for n in (0, 1, 255, 256, 257, 511, 512, 543, 544, 10_000)] == [
        0, 1, 255, 256, 256, 496, 512, 512, 544, 9728,
    ]  # fmt: skip
    assert [learned_at(n, 511) for n in (0, 3, 9, 31, 100, 300, 9999)] == [0, 3, 8, 28, 96, 288, 9728]
    assert [learned_at(n, 31) for n in (7, 100, 256)] == [7, 100, 256]
    monkeypatch.setattr(next_configuration, "EACH", 16)
    space = Space(
        (Factor("a", "linear", tuple(map(float, range(9)))), Factor("b", "log", (1.0, 2.0, 4.0, 8.0, 16.0)))
    )
    order = np.random.default_rng(2).permutation(space.size)[:33]
    samples = [measured(cell, product(cell)) for cell in (list(space)[at] for at in order)]
    visit = decide(space, Rules(), samples)
    assert visit == decide(space, Rules(), samples[:32], [samples[32].cell])
    assert visit == decide(space, Rules(), [*samples[:32], measured(samples[32].cell, 1.0)])
