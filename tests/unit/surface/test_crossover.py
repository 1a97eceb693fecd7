"""Where one level overtakes another: exact for power laws, with an interval from their errors."""

from __future__ import annotations

import pytest

from etude.present.sentences.surface import crossover_text
from etude.surface.factors import Factor
from etude.surface.ranges import crossovers, level_crossovers
from support.made_surfaces import DISKS, NFSDS, Z, surface

TWO = Factor("fs", "categorical", ("ext4", "xfs"))


def crossing(fs: str, n: float) -> float:
    """Both are straight lines in log-log; xfs overtakes at n = 10."""
    return float(100 * n**0.3 if fs == "ext4" else 100 * 10**-0.2 * n**0.5)


def test_power_laws_cross_where_they_do() -> None:
    (found,) = crossovers(surface((TWO, NFSDS), crossing).filled)
    assert (found.over, found.under, found.along) == ("xfs", "ext4", "nfsds")
    assert found.at == pytest.approx(10.0)


def test_the_interval_is_where_the_difference_is_within_its_error() -> None:
    (found,) = crossovers(surface((TWO, NFSDS), crossing, sd=0.02).filled)
    away = 10 ** (Z * 0.02 * 2**0.5 / (0.2 * 2.302585092994046))
    assert (found.low, found.high) == (pytest.approx(10 / away, rel=1e-4), pytest.approx(10 * away, rel=1e-4))
    (wide,) = crossovers(surface((TWO, NFSDS), crossing, sd=0.5).filled)
    assert (wide.low, wide.high) == (None, None)
    assert "(? … ?)" in crossover_text(wide)


def test_of_a_cost_the_lower_one_overtakes() -> None:
    (found,) = crossovers(surface((TWO, NFSDS), crossing).filled, "lower")
    assert (found.over, found.under) == ("ext4", "xfs")


def test_a_linear_factor_is_crossed_at_its_linear_place() -> None:
    (found,) = crossovers(surface((TWO, DISKS), lambda fs, d: 2 ** (d - 2.25) if fs == "xfs" else 1.0).filled)
    assert found.at == pytest.approx(2.25)


def test_each_setting_of_the_others_has_its_own_and_a_tie_is_none() -> None:
    third = Factor("size", "ordered", ("small", "large"))
    mapped = surface((TWO, NFSDS, third), lambda fs, n, s: crossing(fs, n if s == "small" else n / 4))
    assert {each.setting: each.at for each in crossovers(mapped.filled)} == {
        "size=small": pytest.approx(10.0),
        "size=large": pytest.approx(40.0),
    }
    assert crossovers(surface((TWO, NFSDS), lambda fs, n: n).filled) == ()


def test_any_factor_can_be_asked_for_and_ties_between_are_halved() -> None:
    mapped = surface((DISKS, NFSDS), lambda d, n: 1 + d if n < 4 else 3.0 if n == 4 else 5 - d, sd=0.001)
    (found,) = level_crossovers(mapped.filled, 0, (0, 3), 1)
    assert (found.over, found.under) == ("1", "4")
    assert found.at == pytest.approx(4.0), "the middle, in log, of 2 and 8"


def test_a_level_of_which_nothing_is_known_is_skipped() -> None:
    (found,) = crossovers(surface((TWO, NFSDS), crossing, failed=[(0, 3), (1, 4)]).filled)
    assert found.at == pytest.approx(10.0)
