"""Tests that have no ratio, or one without an interval: what is known of their difference, and why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from etude.analysis.load_subject import read_ours, read_subject
from etude.analysis.subject import Subject
from etude.analysis.verdict import verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.experiment.plan import make_plan, to_document
from etude.present.page import content_of, gather
from etude.present.sentences.comparison import no_interval_text
from support.stored import directory

ZEROS, SOME = [0.0] * 6, [1.0, 2.0, 1.0, 1.0, 2.0, 1.0]


def table(place: Path, a: list[float], b: list[float]) -> Path:
    rows = [f"{test},{value}" for test, values in (("a", a), ("b", b)) for value in values]
    place.write_text("\n".join(["test,delta", *rows]) + "\n")
    return place


@pytest.mark.parametrize("a", [ZEROS, [-1.0, -2.0, -1.0, -1.0, -3.0, -1.0]])
def test_tests_without_a_ratio_have_the_difference_of_their_means(a: list[float], tmp_path: Path) -> None:
    subject = read_subject(str(table(tmp_path / "d.csv", a, SOME)))
    assert isinstance(subject, Subject)
    (found,) = verdict(subject).without
    known = stats.ttest_ind(SOME, a, equal_var=False).confidence_interval(0.95)
    assert found.difference is not None
    assert (found.difference.low, found.difference.high) == pytest.approx((known.low, known.high))
    assert (found.tests, found.base, found.confidence) == (("b",), "a", 0.95)


def test_the_difference_of_pairs_is_paired(tmp_path: Path) -> None:
    plan = to_document(make_plan(["a", "b"], seed=1, trials=6))
    a = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    b = [x + step for x, step in zip(a, (1.0, 1.1, 0.9, 1.0, 1.2, 1.0), strict=True)]
    found = verdict(read_ours(directory(tmp_path / "r", {"a": a, "b": b}, plan=plan))).without[0].difference
    known = stats.ttest_1samp(np.subtract(b, a), 0.0).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((known.low, known.high))


def test_nothing_is_known_of_values_that_do_not_vary(tmp_path: Path) -> None:
    subject = read_subject(str(table(tmp_path / "d.csv", ZEROS, [1.0] * 6)))
    assert isinstance(subject, Subject)
    assert [each.difference for each in verdict(subject).without] == [None]


def test_the_headline_of_a_report_has_a_line_on_tests_without_a_ratio(tmp_path: Path) -> None:
    lines = []
    for name, a in (("d.csv", ZEROS), ("e.csv", [value + 1.0 for value in SOME])):
        place = str(table(tmp_path / name, a, SOME))
        found = gather([place], VerdictOptions())
        lines.append(len(content_of(found).headline))
    assert lines == [3, 1]


def test_values_that_vary_alike_are_told_from_values_that_do_not_vary(tmp_path: Path) -> None:
    plan = to_document(make_plan(["a", "b"], seed=1, trials=4))
    reasons = []
    for name, times in (("vary", [1.0, 2.0, 4.0, 1.0]), ("not", [1.0] * 4)):
        (c,) = verdict(read_ours(directory(tmp_path / name, {"a": times, "b": times}, plan=plan))).comparisons
        assert not c.varies
        reasons.append((c.same_in_pairs, no_interval_text(c)))
    assert [same for same, _ in reasons] == [True, False]
    assert reasons[0][1] != reasons[1][1]
