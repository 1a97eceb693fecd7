"""What limits at each cell: of a soft minimum the scarce one, of a flat surface nothing."""

from __future__ import annotations

import pytest

from etude.present.sentences.surface import limit_text, limits_text
from etude.surface.ranges import limits
from support.golden import Golden
from support.made_surfaces import DISKS, FS, NFSDS, power, soft_minimum, surface


def test_of_a_soft_minimum_the_scarce_one_limits() -> None:
    for limit in limits(surface((DISKS, NFSDS), soft_minimum).filled):
        disks, nfsds = (float(f.levels[n]) for f, n in zip((DISKS, NFSDS), limit.cell, strict=True))
        if 120 * nfsds < 0.8 * 180 * disks:
            assert limit.factor == "nfsds", limit_text(limit)
        elif 120 * nfsds > 1.3 * 180 * disks:
            assert limit.factor == "disks", limit_text(limit)
        assert limit.sure


def test_elasticity_is_the_exponent_of_a_power_law(golden: Golden) -> None:
    found = {each.name: each for each in limits(surface((DISKS, NFSDS), power).filled)}
    one = found["disks=1 nfsds=1"]
    assert (one.factor, one.elasticity, one.gain) == ("disks", pytest.approx(0.5), pytest.approx(2**0.5 - 1))
    last = found["disks=4 nfsds=100"]
    assert last.beyond
    assert (last.factor, last.elasticity) == ("disks", pytest.approx(0.5))
    golden(limit_text(last))


def test_where_nothing_helps_nothing_that_was_varied_limits(golden: Golden) -> None:
    found = limits(surface((DISKS, FS), lambda disks, fs: 100 if fs == "xfs" else 50).filled)
    assert {each.factor for each in found} == {None}
    assert "12 of 12" in limits_text(found)
    golden(f"{limits_text(found)}\n{limit_text(found[0])}")


def test_what_makes_it_worse_does_not_limit_and_a_cost_falls() -> None:
    assert {each.factor for each in limits(surface((DISKS,), lambda d: 1 / d).filled)} == {None}
    found = limits(surface((DISKS,), lambda d: 1 / d, better="lower").filled, "lower")
    assert {each.factor for each in found} == {"disks"}
    assert found[0].gain == pytest.approx(0.5)
    assert found[0].elasticity == pytest.approx(1.0)


def test_a_gain_within_the_errors_is_not_sure(golden: Golden) -> None:
    found = limits(surface((DISKS, NFSDS), power, sd=0.3).filled)
    assert not any(each.sure for each in found)
    golden(limits_text(found))


def test_a_failed_neighbour_is_no_next_level() -> None:
    found = {e.name: e for e in limits(surface((DISKS, NFSDS), power, failed=[(1, 0)]).filled)}
    assert found["disks=1 nfsds=1"].factor == "nfsds"
    assert "disks=2 nfsds=1" not in found


def test_the_size_of_a_step_is_no_merit() -> None:
    """From three disks to four is a third more, from one daemon to two is twice as many: that adds more, for more."""
    found = {each.name: each for each in limits(surface((DISKS, NFSDS), power).filled)}
    assert found["disks=3 nfsds=1"].factor == "disks"
    assert found["disks=3 nfsds=1"].gain < 2**0.25 - 1


def test_where_the_next_level_is_unknown_nothing_is_said_to_limit_or_not() -> None:
    space = surface((DISKS, NFSDS), power)
    others = [cell for cell in space.space if cell not in ((0, 0), (3, 7))]
    assert limits(surface((DISKS, NFSDS), power, failed=others).filled) == ()
