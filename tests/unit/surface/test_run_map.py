"""Cell after cell: what fails is marked and the map goes on, nothing is measured twice, and time is kept to."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from etude.errors import CommandFailed, InputError, MachineRefuses
from etude.surface.factors import Configuration
from etude.surface.map_store import MapStore
from etude.surface.next_configuration import Rules, Visit
from etude.surface.run_map import Display, MapBudget, findings
from etude.surface.samples import Sample
from support.charting import SPACE, Made, lines, mapped, product, unknown
from support.golden import Golden


@pytest.mark.parametrize("error", [CommandFailed, MachineRefuses, InputError])
def test_a_cell_that_cannot_be_measured_is_marked_and_the_map_goes_on(
    tmp_path: Path, error: type[Exception]
) -> None:
    response = Made(lambda cell: error("no server") if cell[1] else product(cell))
    kept = mapped(tmp_path, response)
    assert sorted(response.cells) == list(SPACE)
    bad = {sample.cell: sample for sample in kept.samples() if sample.state == "failed"}
    assert set(bad) == {cell for cell in SPACE if cell[1]}
    assert {sample.why for sample in bad.values()} == {"no server"}


def test_three_failures_and_nothing_measured_is_the_end_in_one_line(tmp_path: Path) -> None:
    response = Made(lambda cell: CommandFailed("broken"))
    with pytest.raises(CommandFailed) as error:
        mapped(tmp_path, response)
    assert re.fullmatch(r".*\b3\b.*: broken", str(error.value))
    assert len(response.cells) == 3


def test_three_failures_are_not_the_end_where_something_was_measured(tmp_path: Path) -> None:
    response = Made(lambda cell: CommandFailed("it died") if len(response.cells) > 1 else product(cell))
    kept = mapped(tmp_path, response)
    assert [sample.state for sample in kept.samples()] == ["measured"] + ["failed"] * 5


def test_an_error_of_another_kind_ends_it(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        mapped(tmp_path, Made(lambda cell: ZeroDivisionError()))


def test_the_budget_ends_the_map_and_bounds_each_cell(tmp_path: Path) -> None:
    response = Made()
    kept = mapped(tmp_path, response, means=MapBudget({}, budget_s=25.0))
    assert [asked.left_s for asked in response.asked] == [25.0, 15.0, 5.0]
    assert "budget" in kept.document["surface"]["why"]
    more = Made()
    kept = mapped(tmp_path, more, means=MapBudget({}, budget_s=45.0))
    assert [asked.left_s for asked in more.asked] == [15.0, 5.0], "with what was spent in earlier sessions"


def test_a_cell_has_its_own_budget_and_the_rest_of_the_maps(tmp_path: Path) -> None:
    response = Made()
    mapped(tmp_path, response, means=MapBudget({}, budget_s=25.0, cell_s=12.0))
    assert [asked.left_s for asked in response.asked] == [12.0, 12.0, 5.0]
    none = Made()
    mapped(tmp_path / "b", none, Rules(count=1))
    assert none.asked[0].left_s is None


def test_what_a_failed_attempt_took_is_of_the_budget(tmp_path: Path) -> None:
    response = Made(lambda cell: unknown(cell) if len(response.cells) == 1 else product(cell))
    mapped(tmp_path, response, means=MapBudget({}, budget_s=15.0))
    assert len(response.cells) == 2


def test_the_deadline_ends_it_and_is_told_to_cells(tmp_path: Path) -> None:
    left = iter([100.0, 100.0, 50.0, 50.0, 0.5])
    response = Made()
    kept = mapped(tmp_path, response, means=MapBudget({}, left_s=lambda: next(left)))
    assert [asked.until_s for asked in response.asked] == [100.0, 50.0]
    assert "deadline" in kept.document["surface"]["why"]


def test_what_failed_for_want_of_time_is_tried_in_the_next_sitting(tmp_path: Path) -> None:
    left = iter([100.0, 100.0, 0.0, 0.0])
    response = Made(lambda cell: unknown(cell))
    assert mapped(tmp_path, response, means=MapBudget({}, left_s=lambda: next(left))).samples() == []
    again = Made()
    mapped(tmp_path, again, Rules(count=1))
    assert (again.cells, again.asked[0].place) == (response.cells, response.asked[0].place)


def test_findings_say_what_makes_a_surface_doubtful(tmp_path: Path, golden: Golden) -> None:
    def doubtful(cell: Configuration) -> Sample:
        return Sample(cell, "measured", 5.0, 4.0, 6.0, 0.95, 1.0, 2, cell != (0, 0))

    kept = mapped(tmp_path, Made(doubtful))
    unkept, _same = findings(kept.samples())
    assert "1 of 6" in unkept
    golden("\n".join(findings(kept.samples())))
    assert kept.document["surface"]["findings"] == findings(kept.samples())
    assert findings([]) == []


def test_what_happens_is_told_in_order(tmp_path: Path) -> None:
    told: list[str] = []
    display = Display(
        lambda visit: told.append(f"begins {visit.cell}"),
        told.append,
        lambda visit, sample: told.append(f"made {sample.value}, {len(lines(tmp_path))} kept"),
    )
    mapped(tmp_path, Made(), Rules("in-order", count=1), display=display)
    assert told == ["begins (0, 0)", "measures", "made 100.0, 1 kept"]


def test_a_map_learns_from_the_last_cell_whose_measurement_came_to_its_end(tmp_path: Path) -> None:
    """As it would have, had it not been ended: of what could not be measured it had learned nothing."""

    def of(cell: Configuration) -> float | BaseException:
        return CommandFailed("it died") if cell in ((0, 1), (1, 0)) else product(cell)

    mapped(tmp_path, first := Made(of), Rules("in-order", count=3))
    assert first.taught == []
    mapped(tmp_path, second := Made(of), Rules("in-order", count=4))
    assert second.taught == [first.asked[0].place]


@pytest.mark.parametrize("seed", range(4))
def test_ended_anywhere_it_goes_on_and_measures_nothing_twice(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    kinds = {cell: draw.choice(("value", "value", "failed")) for cell in SPACE}

    def of(cell: Configuration) -> float | Sample:
        return product(cell) if kinds[cell] == "value" else unknown(cell)

    def ending(cell: Configuration) -> float | Sample | BaseException:
        return KeyboardInterrupt() if draw.random() < 0.5 else of(cell)

    whole = mapped(tmp_path / "whole", Made(of)).samples()
    parts: list[Configuration] = []
    for _ in range(100):
        response = Made(ending)
        try:
            kept = mapped(tmp_path / "parts", response)
        except KeyboardInterrupt:
            parts += response.cells[:-1]
            continue
        parts += response.cells
        break
    assert kept.samples() == whole == MapStore(tmp_path / "parts").samples()
    assert parts == [sample.cell for sample in whole]


def test_a_visit_is_kept_with_what_was_expected(tmp_path: Path) -> None:
    mapped(tmp_path, response := Made())
    for line, asked in zip(lines(tmp_path), response.asked, strict=True):
        visit: Visit = asked.visit
        kept = line["surface"]
        assert (tuple(kept["cell"]), kept["expected"], kept["visit"]) == (
            visit.cell,
            visit.expected,
            visit.why,
        )
