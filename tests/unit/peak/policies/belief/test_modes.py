"""Trials of one load that disagree, and what that leaves of a belief."""

from __future__ import annotations

import math
from dataclasses import replace

from etude.peak.policies.belief.evidence import Evidence
from etude.peak.policies.belief.grid import posterior_of, quicker_ones, slow_share, slower_ones, split_modes
from support.policy_simulator import task


def evidence(load: float, reading: float, order: int, sd: float = 0.1) -> Evidence:
    return Evidence(load, math.log(reading), sd**2, 8, order)


def test_trials_of_a_load_that_agree_are_of_one_mode() -> None:
    known = [evidence(100, 0.2, 0), evidence(100, 0.22, 1), evidence(300, 20.0, 2), evidence(300, 50.0, 3)]
    assert split_modes(known) == []
    assert slow_share(known) == 0


def test_trials_that_disagree_are_parted_at_the_widest_gap() -> None:
    known = [evidence(100, reading, n) for n, reading in enumerate((0.2, 0.9, 0.21, 1.0))]
    assert [each.order for each in quicker_ones(known)] == [0, 2]
    assert [each.order for each in slower_ones(known)] == [1, 3]
    # Two of the four, and of two more that count as usual.
    assert slow_share(known) == 2 / 6
    assert split_modes([replace(each, suspect=each.order % 2 == 1) for each in known]) == []


def test_a_load_that_is_too_much_says_less_where_a_slow_mode_is_known() -> None:
    known = [
        evidence(load, reading, n) for n, (load, reading) in enumerate([(90, 0.3), (200, 0.5), (260, 3.0)])
    ]

    def above(share: float) -> float:
        return 1 - float(posterior_of(task(), [replace(each, slow_share=share) for each in known]).below(260))

    assert above(0.0) < 0.05
    assert above(0.3) > 2 * above(0.1) > 2 * above(0.0)
