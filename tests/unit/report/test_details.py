"""Sentences behind a comparison, and where the time of a test went."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from etude.report.comparisons import Comparison, Secondary
from etude.report.details import cache_line, detail_lines, p_text, time_line
from etude.report.timespent import time_spent
from etude.results.samples import trials_of
from etude.results.series import Series
from etude.results.series_of import series_of_trials
from etude.stats.compare import Ratio, paired_ratio, unpaired_ratio
from etude.stats.equivalence import equivalent_pairs
from etude.stats.intervals import Interval
from etude.stats.ranks import wilcoxon
from support.builders import measurement

GENERATOR = np.random.default_rng(5)
BASE = GENERATOR.normal(1.0, 0.01, 20)
OTHER = BASE * GENERATOR.normal(1.05, 0.005, 20)


def compared(ratio: Ratio, **changes: object) -> Comparison:
    made = Comparison("a", "b", "elapsed", "s", 1.0, ratio, None, 0, None, None, 0.0, 0, 0.0, False)
    return replace(made, **changes)  # type: ignore[arg-type]


def said(c: Comparison) -> str:
    return "\n".join(detail_lines(c))


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.03, "p = .03"),
        (0.5, "p = .5"),
        (0.00001, "p < .0001"),
        (0.0001, "p = .0001"),
        (1.0, "p = 1"),
        (None, "no p: nothing varies"),
    ],
)
def test_p_values_are_short_and_never_zero(p: float | None, text: str) -> None:
    assert p_text(p) == text


def test_p_is_of_the_ratio_and_the_difference_has_its_own_interval() -> None:
    c = compared(paired_ratio(BASE, OTHER), difference=Interval(0.04, 0.06))
    assert detail_lines(c)[:2] == [
        "H0 (a ratio of 1) is rejected: p < .0001 (paired t on log ratios).",
        "Difference of the means: 40.00 ms … 60.00 ms (95 %).",
    ]


def test_a_p_that_many_comparisons_made_large_does_not_reject() -> None:
    ratio = Ratio(1.05, 1.001, 1.1, 20, "paired", 0.95, 1.0, 0.0233, 19.0)
    assert 0.04 < (ratio.p or 0) < 0.06
    told = said(compared(replace(ratio, standard_error=0.02), adjusted_p=0.09))
    assert "H0 (a ratio of 1) is not rejected: p = " in told
    assert "by Holm over all comparisons p = .09)." in told


def test_ranks_smallest_difference_and_sameness_are_told() -> None:
    same = equivalent_pairs(BASE, OTHER, margin=0.1)
    c = compared(paired_ratio(BASE, OTHER), shift=wilcoxon(OTHER, BASE, ratio=True), equivalence=same)
    told = said(c)
    assert re.search(
        r"By ranks \(Hodges–Lehmann, Wilcoxon\): 1\.04\d* × \(1\.04\d*–1\.0[45]\d*, p < \.0001\)", told
    )
    assert re.search(r"So many pairs of this spread find a difference of 0\.\d+ % four times in five", told)
    assert "The same within 10 %? Yes: they are the same within it (90 %: " in told


def test_unpaired_says_which_test_it_was() -> None:
    told = said(compared(unpaired_ratio(BASE, OTHER)))
    assert "Welch's t on logarithms" in told
    assert "So many trials of this spread" in told


def test_other_metrics_are_counted_and_the_found_ones_named() -> None:
    strong, weak = paired_ratio(BASE, OTHER), paired_ratio(BASE, BASE[::-1])
    c = compared(strong, secondary=(Secondary("user", strong, 0.001), Secondary("faults", weak, 0.8)))
    assert re.search(
        r"Of 2 other metrics 1 differs \(Benjamini–Hochberg at 5 %\): user 1\.04\d* × \(.*adjusted p = \.001\)\.",
        said(c),
    )
    none = compared(strong, secondary=(Secondary("faults", weak, 0.8),))
    assert "Of 1 other metric none differ (Benjamini–Hochberg at 5 %)." in said(none)


def spent(**metrics: tuple[float, ...]) -> Series:
    units = {"pressure_io_some": "s", "others_cpu": "s"}
    rows = [
        measurement(
            trial=n, metrics={name: [values[n], units.get(name, "s")] for name, values in metrics.items()}
        )
        for n in range(len(next(iter(metrics.values()))))
    ]
    return series_of_trials("a", trials_of(rows), {})


def test_what_does_not_vary_cannot_be_tested() -> None:
    told = said(compared(unpaired_ratio([1.5] * 5, [1.6] * 5)))
    assert told == "H0 (a ratio of 1) cannot be tested: nothing varies."


def test_where_the_time_went_is_in_shares_of_elapsed() -> None:
    found = time_spent(spent(elapsed=(2.0, 4.0), user=(1.0, 2.0), system=(0.5, 0.1)))
    assert found is not None
    assert time_line(found) == (
        "where the time went: user 50 %, system 10 %, waiting 40 %, device not measured (--probe pressure), "
        "others' CPU not measured (--probe others)"
    )


def test_what_probes_saw_is_in_it() -> None:
    metrics = {
        "elapsed": (2.0,),
        "user": (1.0,),
        "system": (0.5,),
        "pressure_io_some": (0.4,),
        "others_cpu": (0.1,),
    }
    found = time_spent(spent(**metrics))
    assert found is not None
    assert "some task waited for a device 20 %, others' CPU 5.0 %" in time_line(found)


def test_several_cpus_leave_no_waiting_to_tell() -> None:
    found = time_spent(spent(elapsed=(1.0,), user=(1.5,), system=(0.3,)))
    assert found is not None
    assert "1.8 CPUs at work, so that waiting is not known" in time_line(found)


def test_without_cpu_time_nothing_is_told() -> None:
    assert time_spent(spent(elapsed=(1.0,), user=(0.5,))) is None


def cached(*caches: dict[str, object] | None) -> str | None:
    rows = [measurement(trial=n, cache=cache) for n, cache in enumerate(caches, 1)]
    return cache_line(series_of_trials("a", trials_of(rows), {}))


def test_what_was_done_about_caches_and_what_was_left_is_a_line() -> None:
    done = {"declared": "drop", "performed": "drop", "cooling_s": 0.25, "bytes": 2048, "resident_bytes": 0}
    undone = {"declared": "drop", "performed": None, "why": "not root"}
    assert cached(done, done, undone) == (
        "caches: drop before 2 of 3 trials, 250.0 ms each, then 0 B of 2.000 KiB in memory"
    )
    assert cached(done, done | {"resident_bytes": 1024}) == (
        "caches: drop before 2 of 2 trials, 250.0 ms each, then 0 B … 1.000 KiB of 2.000 KiB in memory"
    )
    blind = {"declared": "warm", "performed": "warm", "cooling_s": 0.0}
    assert cached(blind) == (
        "caches: warm before 1 of 1 trial, what was in memory is not known: no data set was named"
    )
    assert cached(undone) == "caches: drop before 0 of 1 trial"
    assert cached(None, None) is None
