"""bench/surface/run.py: all mappers have the same systems, what maps came to is judged and laid out right."""

import importlib
import math
import subprocess
import sys

import pytest

from support.places import BENCH

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    searches, surface = map(importlib.import_module, ("surface.searches", "surface.run"))

FOUR = surface.FOUR


def found(hours=1.0, wrong=0, told=0, missed=0):
    errors = (None,) * wrong + (0.01,) * (32 - wrong - told)
    return searches.Found(hours, errors, ((0.02, True),) * (told - missed) + ((0.2, False),) * missed)


def maps(**changes):
    whole = {
        (mapper, name): [found(hours)]
        for mapper, hours in (
            ("binsearch+seed", 50.0),
            ("ours", 6.0),
            ("ours+skip", 4.0),
            ("mlrsearch", 20.0),
        )
        for name in FOUR
    }
    return (
        whole
        | {("ours+skip", name): [found(4.0, told=20)] for name in FOUR}
        | {tuple(key.split("/")): [each] for key, each in changes.items()}
    )


def verdicts(whole):
    every = surface.Everything(whole, {}, {}, {})
    return [row.reached for row in surface.reached(every)]


def of_predictions(whole):
    """By surface, and of all together: whether intervals of predicted cells hold the peak."""
    rows = surface.mapped_whole(whole, FOUR)[4:]
    return dict(zip((*FOUR, "all"), (row.reached for row in rows), strict=True))


def test_all_mappers_map_the_same_systems_and_other_numbers_others():
    one, other = (searches.system_of(searches.Job(name, "Web", 5, 2)) for name in ("ours", "binsearch"))
    assert (one.law, one.seed) == (other.law, other.seed)
    seeds = {
        searches.system_of(searches.Job("ours", *rest)).seed
        for rest in (("Web", 5, 2), ("Mail", 5, 2), ("Web", 6, 2), ("Web", 5, 3))
    }
    assert len(seeds) == 4


@pytest.mark.more
def test_the_cells_that_can_be_paid_for_are_the_same_for_both():
    _, of = searches.worked(searches.Job("ours", "batches", 5, 0, cells=5))
    assert set(of) == {"ours", "binsearch+seed"}
    assert {len(each.errors) for each in of.values()} == {5}
    assert len(of["ours"].predicted) == 175
    assert of["binsearch+seed"].predicted == ()


def test_hours_and_cells_are_judged():
    assert set(verdicts(maps())) <= {True, None}
    whole = maps(**{"ours/Mail": found(20.0, wrong=3), "ours+skip/Web": found(9.0, told=20, missed=2)})
    rows = surface.mapped_whole(whole, FOUR)
    assert [(row.reach, row.reached) for row in rows[:3]] == [
        ("≤ 0.15 ×", False),
        ("≥ 95 %", False),
        ("≤ 0.10 ×", False),
    ]
    assert of_predictions(whole) == {
        "DB_TP": True,
        "Web": False,
        "Mail": True,
        "SPECsfs97": True,
        "all": True,
    }
    assert verdicts(whole).count(False) > 3


def test_a_surface_of_which_no_cell_was_predicted_judges_no_interval():
    assert of_predictions(maps(**{"ours+skip/Web": found(4.0)}))["Web"] is None
    assert math.isnan(surface.covered([found()]))


def test_the_paper_stands_beside_in_figure_8():
    lines = surface.figure_8(maps(), FOUR)
    assert "47.6 h" in lines[0]
    assert "| ours | 0.12 | 0.12 | 0.12 | 0.12 |" in lines


@pytest.mark.more
@pytest.mark.parametrize("options", [("--maps", "0"), ("--seed", "-1")], ids=["maps", "seed"])
def test_what_cannot_be_meant_is_said(options):
    words = [sys.executable, str(BENCH / "surface" / "run.py"), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
