"""Sentences behind a comparison, and where the time of a test went."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from etude.analysis.comparison import Comparison, Secondary
from etude.analysis.time_breakdown import time_spent
from etude.present.sentences.details import cache_line, detail_lines, p_text, time_line
from etude.results.series import Series
from etude.stats.equivalence import equivalence_of
from etude.stats.intervals import Interval
from etude.stats.ranks import wilcoxon
from etude.stats.ratio import Ratio, paired_ratio, unpaired_ratio
from etude.units.formatting import percent
from support.builders import measurement, series_of_rows
from support.golden import Golden

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
        (0.0497, "p = .0497"),
        (0.04996, "p = .04996"),
        (0.0501, "p = .05"),
    ],
)
def test_p_values_are_short_and_never_zero(p: float, text: str) -> None:
    assert p_text(p) == text


def test_p_is_of_the_ratio_and_the_difference_has_its_own_interval(golden: Golden) -> None:
    c = compared(paired_ratio(BASE, OTHER), difference=Interval(0.04, 0.06))
    _, hypothesis, difference, *_ = detail_lines(c)
    assert "p < .0001" in hypothesis
    assert "40.00 ms … 60.00 ms (95 %)" in difference
    golden(said(c))


def test_a_p_that_many_comparisons_made_large_does_not_reject(golden: Golden) -> None:
    ratio = replace(Ratio(1.05, 1.001, 1.1, 20, "paired", 0.95, 1.0, 0.0233, 19.0), standard_error=0.02)
    assert (ratio.p or 0) < 0.05
    alone, one_of_three = compared(ratio), compared(ratio.among(3))
    assert (alone.differs, one_of_three.differs) == (True, False)
    assert one_of_three.adjusted_p == pytest.approx(3 * (ratio.p or 0))
    rejected, kept = (detail_lines(c)[1] for c in (alone, one_of_three))
    golden(f"{rejected}\n{kept}")


def test_a_p_of_a_widened_error_says_so() -> None:
    plain, widened = (detail_lines(compared(paired_ratio(BASE, OTHER, factor=f)))[1] for f in (1.0, 1.12))
    assert ("1.12" in plain, "1.12" in widened) == (False, True)


def test_both_ends_of_a_difference_are_in_the_unit_of_the_larger() -> None:
    c = compared(paired_ratio(BASE, OTHER), difference=Interval(-0.016448, 0.000149))
    assert "-16.45 ms … 0.1490 ms (95 %)" in detail_lines(c)[2]


def test_ranks_smallest_difference_and_sameness_are_told(golden: Golden) -> None:
    same = equivalence_of(paired_ratio(BASE, OTHER), margin=0.1)
    c = compared(paired_ratio(BASE, OTHER), shift=wilcoxon(OTHER, BASE, ratio=True), equivalence=same)
    _, _, ranks, smallest, sameness = detail_lines(c)
    assert re.search(r"Wilcoxon\): 1\.04\d* × \(95 %: 1\.04\d*–1\.0[45]\d*; p < \.0001\)", ranks)
    assert percent(c.ratio.smallest_found() or 0.0) in smallest
    assert same.verdict == "the same"
    assert re.search(r"10 %.*\(90 %: ", sameness)
    fine = equivalence_of(paired_ratio(BASE, OTHER), margin=0.0475)
    assert fine.verdict == "undecided"
    golden(f"{said(c)}\n{detail_lines(replace(c, equivalence=fine))[-1]}")


def test_unpaired_says_which_test_it_was(golden: Golden) -> None:
    told = said(compared(unpaired_ratio(BASE, OTHER)))
    assert "Welch's t" in told
    golden(told)


def test_other_metrics_are_counted_and_the_found_ones_named(golden: Golden) -> None:
    strong, weak = paired_ratio(BASE, OTHER), paired_ratio(BASE, BASE[::-1])
    c = compared(strong, secondary=(Secondary("user", strong, 0.001), Secondary("faults", weak, 0.8)))
    some = detail_lines(c)[-1]
    assert re.search(r" 2 .* 1 .*: user 1\.04\d* × \(.*p = \.001\)", some)
    assert "faults" not in some
    none = detail_lines(compared(strong, secondary=(Secondary("faults", weak, 0.8),)))[-1]
    assert "faults" not in none
    golden(f"{some}\n{none}")


def test_metrics_in_which_the_reference_differs_from_itself_and_those_without_a_ratio_are_no_finding(
    golden: Golden,
) -> None:
    strong = paired_ratio(BASE, OTHER)
    unsteady = Secondary("tree_peak_memory", strong, 0.001, unsteady=True)
    c = compared(strong, secondary=(unsteady, Secondary("user", strong, 0.001)), uncompared=("system",))
    found, judged, without = detail_lines(c)[-3:]
    assert "tree_peak_memory" not in found
    assert "tree_peak_memory" in judged
    assert "system" in without
    golden(f"{found}\n{judged}\n{without}")


def test_other_metrics_that_differ_without_varying_are_named(golden: Golden) -> None:
    one = np.ones(20)
    same, twice = paired_ratio(one, one), paired_ratio(one, 2 * one)
    assert twice.p is None
    weak = Secondary("faults", paired_ratio(BASE, BASE[::-1]), 0.8)
    exact = (Secondary("written", twice, None), Secondary("memory", same, None), weak)
    *_, tested, untested = detail_lines(compared(paired_ratio(BASE, OTHER), secondary=exact))
    assert "written" in untested
    assert "memory" not in tested + untested
    golden(untested)


def spent(**metrics: tuple[float, ...]) -> Series:
    units = {"pressure_io_some": "s", "others_cpu": "s"}
    rows = [
        measurement(
            trial=n, metrics={name: [values[n], units.get(name, "s")] for name, values in metrics.items()}
        )
        for n in range(len(next(iter(metrics.values()))))
    ]
    return series_of_rows(rows)


def test_what_does_not_vary_cannot_be_tested(golden: Golden) -> None:
    c = compared(unpaired_ratio([1.5] * 5, [1.6] * 5))
    assert c.ratio.p is None
    assert len(detail_lines(c)) == 2
    assert len(detail_lines(replace(c, typical=c.ratio))) == 2
    golden(f"{said(c)}\n{p_text(None)}")


def test_where_the_time_went_is_in_shares_of_elapsed(golden: Golden) -> None:
    found = time_spent(spent(elapsed=(2.0, 4.0), user=(1.0, 2.0), system=(0.5, 0.1)))
    assert found is not None
    line = time_line(found)
    for part in ("user 50 %", "system 10 %", "waiting 40 %", "--probe pressure", "--probe others"):
        assert part in line
    golden(line)


def test_what_probes_saw_is_in_it(golden: Golden) -> None:
    metrics = {
        "elapsed": (2.0,),
        "user": (1.0,),
        "system": (0.5,),
        "pressure_io_some": (0.4,),
        "others_cpu": (0.1,),
    }
    found = time_spent(spent(**metrics))
    assert found is not None
    assert (found.device, found.others) == (0.4, 0.1)
    line = time_line(found)
    for part in ("device 20 %", "CPU 5.0 %"):
        assert part in line
    golden(line)


def test_several_cpus_leave_no_waiting_to_tell(golden: Golden) -> None:
    found = time_spent(spent(elapsed=(1.0,), user=(1.5,), system=(0.3,)))
    assert found is not None
    line = time_line(found)
    assert "1.8 CPUs" in line
    assert not re.search("waiting .*%", line)
    golden(line)


def test_without_cpu_time_nothing_is_told() -> None:
    assert time_spent(spent(elapsed=(1.0,), user=(0.5,))) is None


def cached(*caches: dict[str, object] | None) -> str | None:
    rows = [measurement(trial=n, cache=cache) for n, cache in enumerate(caches, 1)]
    return cache_line(series_of_rows(rows))


def test_what_was_done_about_caches_and_what_was_left_is_a_line(golden: Golden) -> None:
    done = {"declared": "drop", "performed": "drop", "cooling_s": 0.25, "bytes": 2048, "resident_bytes": 0}
    undone = {"declared": "drop", "performed": None, "why": "not root"}
    half = done | {"resident_bytes": 1024}
    blind = {"declared": "warm", "performed": "warm", "cooling_s": 0.0}
    lines = [cached(done, done, undone), cached(done, half), cached(blind), cached(undone)]
    facts = (
        ("drop", "2 of 3", "250.0 ms", " 0 B of 2.000 KiB"),
        ("drop", "2 of 2", "250.0 ms", " 0 B … 1.000 KiB of 2.000 KiB"),
        ("warm", "1 of 1"),
        ("drop", "0 of 1"),
    )
    for line, those in zip(lines, facts, strict=True):
        assert [fact for fact in those if fact not in (line or "")] == []
    assert cached(None, None) is None
    golden("\n".join(map(str, lines)))
