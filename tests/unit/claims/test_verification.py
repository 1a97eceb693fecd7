"""Two results of one claim: the ratio of both with its error, and the direction."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from etude.claims.bound import parse_bound
from etude.claims.claims_file import read_claims
from etude.claims.evidence import Finding
from etude.claims.run import Result
from etude.claims.verification import _side, change_of, other_files, verified
from etude.stats.sequential import Decision, Estimate, Evidence

RATIO = parse_bound("ratio(elapsed, B/A) <= 1.3")
MEAN = parse_bound("mean(elapsed, A) <= 5 ms")


def estimate(value: float, error: float, *, logarithmic: bool = True, degrees: float = 9.0) -> Estimate:
    return Estimate(value, error, error, degrees, logarithmic, 10, "s")


def test_the_ratio_of_two_ratios_holds_the_true_one_as_often_as_it_says() -> None:
    drawn = np.random.default_rng(1)
    truth, trials, held = math.log(1.2), 10, 0
    for _ in range(2000):
        sides = [drawn.normal(mean, 0.1, trials) for mean in (0.3, 0.3 + truth)]
        theirs, ours = (
            estimate(math.exp(s.mean()), s.std(ddof=1) / math.sqrt(trials), degrees=trials - 1.0)
            for s in sides
        )
        change = change_of(theirs, ours)
        assert change is not None
        interval = change.interval(0.05)
        held += math.log(interval.low) <= truth <= math.log(interval.high)
    assert 0.935 <= held / 2000 <= 0.965


def test_errors_of_means_are_taken_relative_to_them() -> None:
    change = change_of(estimate(2.0, 0.2, logarithmic=False), estimate(4.0, 0.0, logarithmic=False))
    assert change is not None
    assert (change.value, change.low_error) == (2.0, pytest.approx(0.1))


def test_units_and_signs_that_do_not_fit_have_no_ratio() -> None:
    assert change_of(estimate(0.0, 0.1, logarithmic=False), estimate(1.0, 0.1)) is None
    assert change_of(Estimate(1.0, 0.1, 0.1, 9.0, True, 10, "B"), estimate(1.0, 0.1)) is None


def test_each_line_that_a_script_expects_is_a_bound_of_its_own(tmp_path: Path) -> None:
    """`expect` is one bound in the file, and as many in the results as tests have an EXPECT."""
    (tmp_path / "c.toml").write_text(
        '[experiment.s]\nscript = "s.ap"\n[claim.c]\ntext = "t"\nhold = "expect"\n'
    )
    (claim,) = read_claims(tmp_path / "c.toml").claims
    texts = ("mean(elapsed, A) <= 5 ms", "mean(elapsed, B) <= 5 ms", "ratio(elapsed, B/A) <= 1.3")
    theirs, ours = (
        Result(
            claim,
            "supported",
            Decision(True, 0.01, 0.05),
            tuple(Finding(parse_bound(each), estimate(0.004, 1e-5), Evidence(0.01, 1.0)) for each in chosen),
            10,
            1.0,
            0.05,
        )
        for chosen in (texts[:2], texts[1:])
    )
    found = verified(theirs, ours).bounds
    assert [(a.bound.text, a.theirs is None, a.ours is None) for a in found] == [
        (texts[0], False, True),
        (texts[1], False, False),
        (texts[2], True, False),
    ]


def test_a_direction_is_a_side_of_one_for_a_ratio_and_of_the_bound_for_a_mean() -> None:
    assert _side(RATIO, estimate(1.2, 0.01)) == 1
    assert _side(RATIO, estimate(0.8, 0.01)) == -1
    assert _side(RATIO, estimate(1.0, 0.01)) is None
    assert _side(MEAN, estimate(0.004, 1e-5, logarithmic=False)) == 0
    assert _side(MEAN, estimate(0.006, 1e-5, logarithmic=False)) == 1


def test_files_of_one_side_only_differ_too() -> None:
    found = other_files({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"})
    assert [(f.name, f.theirs, f.ours) for f in found] == [("b", "2", "4"), ("c", "3", ""), ("d", "", "5")]


def test_a_program_elsewhere_is_compared_by_its_name() -> None:
    theirs = {"/a/x": "1", "/a/y": "2", "/a/z": "3", "/b/z": "4"}
    found = other_files(theirs, {"/c/x": "1", "/c/y": "5", "/c/z": "3"})
    assert [(f.name, f.theirs, f.ours) for f in found] == [
        ("/a/y", "2", "5"),
        ("/a/z", "3", ""),
        ("/b/z", "4", ""),
        ("/c/z", "", "3"),
    ]
