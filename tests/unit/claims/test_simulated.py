"""Families of simulated claims are rarely decided wrongly, and decisions take fewer trials than a fixed plan."""

from __future__ import annotations

from support.simulated_claims import errors, savings


def test_few_families_have_a_wrong_decision() -> None:
    found = errors(40, 0.02, 40, True, 7)
    assert found.wrong <= 5  # 2 expected at most; more than 5 by chance in 1 of 70 tests
    assert found.decided > found.of / 3


def test_a_clear_claim_takes_at_most_six_tenths_of_a_fixed_plan() -> None:
    fixed, last, share = savings(0.02, 0.05, 40, False, 7)
    assert fixed <= last
    assert share <= 0.6
