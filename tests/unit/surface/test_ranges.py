"""Up to where more of a factor helps, and how much of it a target takes."""

from __future__ import annotations

import pytest

from etude.present.sentences.surface import break_even_lines, break_even_text, range_text
from etude.surface.ranges import break_evens, effective_ranges
from support.golden import Golden
from support.made_surfaces import DISKS, FS, NFSDS, power, soft_minimum, surface


def test_daemons_work_until_the_disks_are_busy(golden: Golden) -> None:
    ranges = {
        overall.factor: (overall, each)
        for overall, each in effective_ranges(surface((DISKS, NFSDS), soft_minimum).filled)
    }
    overall, each = ranges["nfsds"]
    assert [(r.setting, r.levels[r.low], r.levels[r.high]) for r in each] == [
        ("disks=1", "1", "2"),
        ("disks=2", "1", "4"),
        ("disks=3", "1", "8"),
        ("disks=4", "1", "8"),
    ]
    assert (overall.levels[overall.low], overall.levels[overall.high]) == ("1", "8")
    assert not overall.open
    disks, per_nfsds = ranges["disks"]
    assert per_nfsds[0].none, "one daemon keeps one disk busy"
    assert disks.open
    assert "5.0 %" in range_text(per_nfsds[0])
    golden(f"{range_text(per_nfsds[0])}\n{range_text(disks)}")


def test_what_does_nothing_at_first_has_a_lower_bound() -> None:
    ((overall, _),) = effective_ranges(surface((NFSDS,), lambda n: max(n, 4.0)).filled)
    assert (overall.levels[overall.low], overall.levels[overall.high]) == ("4", "100")


def test_many_small_changes_are_not_none() -> None:
    """100, 104, 108, 112: no two neighbours differ by 5 %, but the ends do."""
    ((overall, _),) = effective_ranges(surface((DISKS,), lambda d: 96 + 4 * d).filled)
    assert not overall.none
    assert (overall.levels[overall.low], overall.levels[overall.high]) == ("2", "3")
    ((overall, _),) = effective_ranges(
        surface((DISKS,), lambda d: {1: 63.5, 2: 60.7, 3: 58.1, 4: 60.0}[int(d)]).filled
    )
    assert (overall.levels[overall.low], overall.levels[overall.high]) == ("1", "2")


@pytest.mark.parametrize(
    ("response", "turn", "rises"),
    [
        ((100, 120, 140, 120), 2, True),
        ((140, 100, 120, 140), 1, False),
        ((100, 120, 130, 140), None, True),
        ((100, 104, 120, 118), None, True),
    ],
)
def test_a_response_that_turns_within_its_range_is_known(
    response: tuple[int, ...], turn: int | None, rises: bool
) -> None:
    ((_, (found,)),) = effective_ranges(surface((DISKS,), lambda d: float(response[int(d) - 1])).filled)
    assert (found.turn, found.rises) == (turn, rises)


def test_little_is_a_choice() -> None:
    mapped = surface((NFSDS,), lambda n: 100 * n**0.01)
    ((overall, _),) = effective_ranges(mapped.filled)
    assert overall.none
    ((overall, _),) = effective_ranges(mapped.filled, 0.001)
    assert (overall.low, overall.high) == (0, 7)


def test_what_the_intervals_still_allow_beyond_is_said() -> None:
    def steps(n: float) -> float:
        return 100.0 if n >= 8 else 50.0

    ((sharp, _),) = effective_ranges(surface((NFSDS,), steps, sd=0.001).filled)
    ((wide, _),) = effective_ranges(surface((NFSDS,), steps, sd=0.1).filled)
    assert sharp.levels[sharp.high] == wide.levels[wide.high] == "8"
    assert sharp.could_be < 0.01
    assert wide.could_be == pytest.approx(0.319, abs=0.002)
    assert "the intervals allow 32 %" in range_text(wide)


def test_a_change_that_the_intervals_do_not_show_is_not_said_to_be_shown(golden: Golden) -> None:
    def steps(n: float) -> float:
        return 50.0 if n < 8 else 100.0 if n < 100 else 107.0

    ((overall, _),) = effective_ranges(surface((NFSDS,), steps, sd=0.05).filled)
    assert overall.levels[overall.high] == "100"
    assert overall.levels[overall.shown] == "8"
    golden(range_text(overall))


def test_a_categorical_factor_has_no_range() -> None:
    assert effective_ranges(surface((FS,), lambda fs: float(len(fs))).filled) == ()


def test_the_smallest_level_that_reaches_a_target(golden: Golden) -> None:
    found = break_evens(surface((DISKS, NFSDS), power, sd=0.02).filled, "nfsds", 200.0)
    assert {each.setting: each.level for each in found} == {
        "disks=1": "16",
        "disks=2": "4",
        "disks=3": "2",
        "disks=4": "1",
    }
    at_one = found[0]
    assert (at_one.earliest, at_one.surely) == ("16", "32"), "at 16 it is 200 exactly: not surely"
    (never,) = break_evens(surface((DISKS,), lambda d: d, sd=0.02).filled, "disks", 4.1)
    assert (never.level, never.earliest, never.surely) == (None, "4", None)
    golden(break_even_text(never))
    (less,) = break_evens(surface((DISKS,), lambda d: 1 / d).filled, "disks", 0.4, "lower")
    assert less.level == "3"
    with pytest.raises(KeyError):
        break_evens(surface((DISKS,), lambda d: d).filled, "discs", 4.1)


def test_many_settings_are_counted(golden: Golden) -> None:
    found = break_evens(surface((DISKS, NFSDS), power).filled, "disks", 200.0)
    (line,) = break_even_lines(found)
    assert line.startswith("disks: 200 ")
    golden(line)
    few = break_evens(surface((DISKS,), lambda d: d).filled, "disks", 2.0)
    assert break_even_lines(few) == (break_even_text(few[0]),)


def test_settings_in_which_a_factor_does_nothing_do_not_count_overall() -> None:
    mapped = surface((NFSDS, FS), lambda n, fs: max(n, 4.0) if fs == "xfs" else 1000.0)
    ((overall, each),) = effective_ranges(mapped.filled)
    assert [r.none for r in each] == [True, False, True]
    assert overall.levels[overall.low] == "4"
