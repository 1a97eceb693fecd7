"""The best cell, what cannot be told from it, and where it lies."""

from __future__ import annotations

import math

import numpy as np

from etude.present.sentences.surface import optimum_lines
from etude.surface.summary import optimum
from support.made_surfaces import DISKS, FS, NFSDS, power, surface


def test_the_best_cell_is_found_with_its_interval() -> None:
    found = optimum(surface((DISKS, FS), lambda disks, fs: 100 * disks * (2 if fs == "xfs" else 1)))
    assert found is not None
    assert (found.name, found.best.value) == ("disks=4 fs=xfs", 800)
    assert found.best.low < 800 < found.best.high
    assert found.alike == ()
    assert found.edges == ("disks=4",), "a categorical factor has no edge"


def test_of_a_cost_the_lowest_is_best() -> None:
    found = optimum(surface((DISKS,), lambda disks: 1 / disks, better="lower", unit="s"))
    assert found is not None
    assert found.name == "disks=4"
    assert "250.0 ms" in optimum_lines(found)[0]


def test_cells_that_may_be_as_good_are_named() -> None:
    found = optimum(surface((DISKS, NFSDS), power, sd=0.05))
    assert found is not None
    assert found.name == "disks=4 nfsds=100"
    assert found.alike_names[0] == "disks=4 nfsds=64"
    assert "disks=1 nfsds=1" not in found.alike_names
    near = optimum(surface((DISKS, NFSDS), power, sd=0.0001))
    assert near is not None
    assert near.alike == ()


def test_one_in_the_middle_is_at_no_edge_and_a_predicted_one_is_said_to_be() -> None:
    mapped = surface(
        (NFSDS,), lambda n: 100 - abs(n - 8), predicted=lambda number: number == 3, guess_sd=0.001, sd=0.001
    )
    found = optimum(mapped)
    assert found is not None
    assert found.name == "nfsds=8"
    assert found.edges == ()
    assert "predicted, not measured" in optimum_lines(found)[0]


def test_a_cell_that_failed_is_never_the_best_one() -> None:
    found = optimum(surface((DISKS,), lambda disks: disks, failed=[(3,)]))
    assert found is not None
    assert found.name == "disks=3"
    assert optimum(surface((DISKS,), lambda disks: disks, failed=[(n,) for n in range(4)])) is None


def test_the_first_word_of_a_categorical_factor_is_no_edge() -> None:
    found = optimum(surface((NFSDS, FS), lambda n, fs: (2 if fs == "ext4" else 1) / (1 + abs(n - 8))))
    assert found is not None
    assert (found.name, found.edges) == ("nfsds=8 fs=ext4", ())


def test_a_cell_that_is_as_good_as_any_is_named_as_often_as_promised() -> None:
    """All 96 are equally good; without counting all comparisons one of them would be missed in half of the cases."""
    generator = np.random.default_rng(2)
    missed = 0
    for _ in range(300):
        mapped = surface(
            (DISKS, NFSDS, FS), lambda d, n, fs: 100 * math.exp(0.05 * generator.normal()), sd=0.05
        )
        found = optimum(mapped)
        assert found is not None
        missed += (0, 0, 0) not in (found.best.cell, *found.alike)
    assert missed / 300 < 0.09
