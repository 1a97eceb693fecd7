"""Each kind of warning: on a series made for it, not on a clean one, and one cause gives one warning."""

import math
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etude.analysis.subject import WorkDifference
from etude.analysis.warnings import KINDS, Thresholds, series_warnings, work_warnings
from etude.analysis.warnings.facts import NoTrialMade, OtherWork, RecordedSentence
from etude.analysis.warnings.warning import warning
from etude.present.sentences.warning_numbers import numbers_of
from etude.present.sentences.warnings import advice, found_text, warning_text
from etude.results.series import Column, Failure, Series
from etude.results.trial_join import joins_of
from etude.stats.shape import outlier_places
from etude.stats.warmup import level_shift
from support.profiles import examples

DEFAULT = Thresholds()
MIB = float(1 << 20)

# Noise of 2 % without any pattern, the same in every test.
NOISE = 1.0 + 0.02 * np.random.default_rng(2).standard_normal(1000)


def series(values, unit="s", kind="cost", *, kept=None, more=None, **members):
    values = np.asarray(values, dtype=float)
    n = values.size
    kept = np.ones(n, dtype=bool) if kept is None else np.asarray(kept)
    columns = {"elapsed": Column(unit, kind, values)} | (more or {})
    return Series("a", np.arange(1, n + 1), kept, columns, **members)


def told(made, metric="elapsed", **options):
    return series_warnings(made, metric, **({"thresholds": DEFAULT} | options))


def kinds(values, **options):
    return [w.kind for w in told(values if isinstance(values, Series) else series(values), **options)]


def only(made, **options):
    (warning,) = told(made if isinstance(made, Series) else series(made), **options)
    return warning


def chosen(*items):
    return Thresholds.parse(items)


@pytest.mark.parametrize("n", [10, 20, 30, 100, 1000])
def test_a_clean_series_is_not_warned_of(n):
    memory = Column("B", "cost", 4e9 + 3 * MIB * NOISE[::-1][:n])
    made = series(NOISE[:n], more={"memory_available": memory}, why=["first run"] + [None] * (n - 1))
    assert told(made, precision=0.5, memory_bytes=1 << 34) == []


def test_every_kind_has_a_rank_and_is_listed_by_importance():
    ranks = [kind.rank for kind in KINDS.values()]
    assert ranks == sorted(set(ranks))


def test_a_warning_is_a_line_of_test_finding_and_advice():
    failed = warning("failed", "a", "", NoTrialMade("it broke", "a.log"))
    assert warning_text(failed).split(": ")[0::2] == ["a", "it broke"]
    assert advice(failed).endswith(" a.log")
    assert warning_text(warning("note", "", "", RecordedSentence("cut short"))) == "cut short"


# What changes in the course of a series


def test_a_drift_is_told_with_its_size_and_nothing_else_is(golden):
    found, falls = (only(NOISE[:30] * np.linspace(*ends, 30)) for ends in ((1.0, 1.12), (1.12, 1.0)))
    assert (found.kind, found.metric) == (falls.kind, falls.metric) == ("drift", "elapsed")
    assert re.search(r" 1\d(\.\d)? % ", found_text(found))
    assert "30 trials" in found_text(found)
    assert "Theil-Sen" in found_text(found)
    assert (found.facts.slower, falls.facts.slower) == (True, False)
    assert advice(found) != advice(falls)
    golden(f"{warning_text(found)}\n{warning_text(falls)}")


def test_drift_has_a_size_a_level_and_another_way():
    x = NOISE[:30] * np.linspace(1.0, 1.06, 30)
    assert kinds(x) == ["drift"]
    assert kinds(x, thresholds=chosen("drift=8%")) == []
    assert kinds(x, thresholds=chosen("trend=1e-9")) == []
    assert "least squares" in found_text(only(x, thresholds=chosen("drift-by=least-squares")))


def test_a_warm_up_is_told_with_the_number_of_trials_to_set_aside():
    for n in (12, 29, 30, 100):
        x = NOISE[:n].copy()
        x[:3] *= 1.3
        found, first = only(x), level_shift(x).first
        assert found.kind == "warm-up"
        assert found.trials == tuple(range(1, first + 1))
        assert (found.facts.first, numbers_of(found)["runs"]) == (first, first + 1)
        assert f"--warmup {first + 1}" in advice(found)


def test_warm_up_thresholds_decide():
    x = NOISE[:20].copy()
    x[:3] *= 1.1
    assert kinds(x) == ["warm-up"]
    assert "warm-up" not in kinds(x, thresholds=chosen("warm-up=50%", "outliers=1e-12"))
    assert "warm-up" not in kinds(x, thresholds=chosen("warm-up-level=1e-12", "outliers=1e-12"))
    y = NOISE[:40].copy()
    y[:6] *= 1.1
    assert kinds(y) == ["warm-up"]
    assert "warm-up" not in kinds(y, thresholds=chosen("warm-up-penalty=90"))


def test_an_end_that_chance_makes_is_no_level():
    """The last three trials are low, but some such trials are nothing rare."""
    x = [0.97, 1.03, 1.05, 1.05, 1.09, 0.98, 1.03, 0.98, 0.93, 0.96]
    assert kinds(x, thresholds=chosen("warm-up-level=99%")) == ["late-level"]
    assert kinds(x) == []


def test_outliers_that_all_stand_at_one_end_are_another_level():
    x = NOISE[:30].copy()
    x[:2] = 1.9, 1.5
    found = only(x)
    assert (found.kind, found.trials) == ("warm-up", (1, 2))
    found = only(x[::-1])
    assert (found.kind, found.trials) == ("late-level", (29, 30))
    assert "trial 29" in advice(found)


def test_a_late_level_is_told_with_the_trial_at_which_it_began(golden):
    x = NOISE[:40].copy()
    x[30:] *= 1.1
    found = only(x)
    assert found.kind == "late-level"
    assert found.trials == tuple(range(31, 41))
    assert "trial 31" in advice(found)
    golden(f"{warning_text(found)}\n{warning_text(only(x[::-1]))}")


def test_a_series_that_drifts_behind_its_warm_up_never_settles(golden):
    x = NOISE[:60] * np.linspace(1.0, 1.08, 60)
    x[:5] *= 1.8
    found = only(x)
    assert found.kind == "never-steady"
    assert "first 5 trials" in found_text(found)
    last = only(x[::-1])
    assert (last.kind, last.facts.first, last.facts.last) == ("never-steady", 0, 5)
    golden(warning_text(found))


@pytest.mark.parametrize("n", [10, 14, 20, 40])
def test_a_late_level_is_told_with_the_trial_that_it_begins_at(n):
    x = NOISE[:n].copy()
    x[-4:] *= 1.1
    found = only(x)
    assert (found.kind, found.trials) == ("late-level", tuple(range(n - 3, n + 1)))
    assert found.facts.last == 4
    assert f"trial {n - 3}," in advice(found)


def test_outliers_behind_a_warm_up_have_their_own_numbers():
    x = NOISE[:40].copy()
    x[:4] *= 1.5
    x[25] *= 1.5
    level, far = told(series(x))
    assert (level.kind, far.kind) == ("warm-up", "outliers")
    assert far.trials == (26,)


def test_outliers_at_the_end_of_a_drift_are_no_second_change_of_course():
    x = NOISE[:40] * np.linspace(1.0, 1.3, 40)
    x[-2:] *= 2.5
    assert kinds(x) == ["drift", "outliers"]


def test_a_line_is_called_a_drift_though_its_first_half_is_another_level():
    x = NOISE[:20] * np.linspace(1.0, 1.3, 20)
    assert kinds(x) == ["drift"]


# Leaks


def test_a_leak_is_told_in_bytes_a_trial_and_not_as_a_drift_too(golden):
    free = 4e9 + MIB * NOISE[:30] - 2.0 * MIB * np.arange(30)
    made = series(NOISE[30:60], more={"memory_free": Column("B", "cost", free)})
    found = only(made)
    assert (found.kind, found.metric) == ("leak", "memory_free")
    assert re.search(r" (2\.0|1\.99)\d* MiB a trial", found_text(found))
    golden(warning_text(found))
    assert kinds(made, metric="memory_free") == ["leak"]
    assert kinds(made, thresholds=chosen("leak=100MiB")) == []


def test_available_memory_is_preferred_and_memory_that_grows_is_no_leak():
    steady, falling = 4e9 + MIB * NOISE[:30], 4e9 - 2.0 * MIB * np.arange(30)
    columns = {"memory_free": Column("B", "cost", falling), "memory_available": Column("B", "cost", steady)}
    assert kinds(series(NOISE[30:60], more=columns)) == []
    rising = {"memory_available": Column("B", "cost", falling[::-1])}
    assert kinds(series(NOISE[30:60], more=rising)) == []


def test_the_shipped_hooks_free_memory_shows_a_leak_and_is_one_machines_whatever_the_workers():
    falling = {"free_memory": Column("B", "cost", 4e9 - 2.0 * MIB * np.arange(30))}
    assert kinds(series(NOISE[30:60], more=falling)) == ["leak"]
    assert joins_of("free_memory", "B") == joins_of("memory_free", "B")


def test_any_metric_can_be_watched_for_what_changes_in_the_course_of_the_trials():
    handles = Column("1", "count", 100.0 + 3.0 * np.arange(30))
    level = Column("B/s", "rate", np.repeat([1.2, 1.0], [5, 25]) * NOISE[100:130])
    more = {"handles": handles, "rate": level, "even": Column("1", "count", np.full(30, 4.0))}
    made = series(NOISE[30:60], more=more)
    assert told(made) == []
    found = told(made, watched=["handles", "rate", "even", "elapsed"])
    assert [(each.kind, each.metric) for each in found] == [("drift", "handles"), ("warm-up", "rate")]
    (unknown,) = told(made, watched=["handels"])
    assert (unknown.kind, unknown.metric) == ("note", "handels")
    falling = {"memory_free": Column("B", "cost", 4e9 - 2.0 * MIB * np.arange(30))}
    steady = {"memory_available": Column("B", "cost", 4e9 + MIB * NOISE[:30])}
    watched = told(series(NOISE[30:60], more=falling | steady), watched=["memory_free"])
    assert [(each.kind, each.metric) for each in watched] == [("leak", "memory_free")]


def test_memory_before_a_reboot_is_no_part_of_a_leak():
    free = np.concatenate((4e9 - 50 * MIB * np.arange(19), 2e9 + MIB * NOISE[:21]))
    sittings = np.repeat([1, 2], [19, 21])
    more = {"memory_free": Column("B", "cost", free)}
    assert kinds(series(NOISE[40:80], more=more)) == ["leak"]
    assert kinds(series(NOISE[40:80], more=more, sittings=sittings)) == []


def test_memory_that_another_process_takes_in_steps_is_no_leak():
    """A machine on which others work: steps that last, of which every third series of 20 has a trend."""
    rng = np.random.default_rng(8)
    told = 0
    for _ in range(100):
        walk = np.cumsum(3.0 * MIB * rng.standard_normal(20) * (rng.random(20) < 0.3))
        told += kinds(series(NOISE[:20], more={"memory_free": Column("B", "cost", 4e9 + walk)})) == ["leak"]
    assert told <= 10


# Shapes


def test_outliers_are_told_with_up_to_five_trial_numbers_and_kept(golden):
    x = NOISE[:100].copy()
    x[[3, 20]] *= 1.5
    found = only(x)
    assert (found.kind, found.metric, found.trials) == ("outliers", "elapsed", (4, 21))
    assert re.match(r"2 .* 100 .* 4 and 21\b.* 5\d %", found_text(found))
    x[[8, 11, 14, 30, 33]] *= (1.6, 1.9, 2.3, 2.8, 3.5)
    many = only(x)
    assert many.trials == (4, 9, 12, 15, 21, 31, 34)
    assert "4, 9, 12, 15, 21 and 2 more" in found_text(many)
    golden(f"{warning_text(found)}\n{warning_text(many)}")
    y = NOISE[:100].copy()
    y[50] = 1.1
    assert kinds(y) == ["outliers"]
    assert kinds(y, thresholds=chosen("outliers=1e-6")) == []


def test_many_far_values_are_a_distribution_and_no_list_of_outliers(golden):
    x = NOISE[:50].copy()
    x[2::7] *= np.geomspace(1.3, 9.0, 7)
    found = only(x)
    assert (found.kind, found.trials) == ("heavy-tail", ())
    assert (found.facts.count, found.facts.of) == (7, 50)
    golden(warning_text(found))
    assert kinds(x, thresholds=chosen("outlier-share=50%")) == ["outliers"]
    few = NOISE[:12].copy()
    few[[3, 7]] *= 2.0, 5.0
    assert kinds(few) == ["outliers"], "two are never a distribution"


def test_a_value_close_to_the_median_is_no_outlier():
    x = 1.0 + 0.0005 * (NOISE[:40] - 1.0)
    x[20] = 1.006
    assert "outliers" not in kinds(x)
    assert kinds(x, thresholds=chosen("outlier-distance=0.1%")) == ["outliers"]
    x[20] = 1.012
    assert kinds(x) == ["outliers"]


def test_outliers_keep_their_numbers_behind_trials_that_are_set_aside():
    x = NOISE[:40].copy()
    x[[0, 20]] = 9.0
    kept = np.arange(40) > 0
    assert only(series(x, kept=kept, why=["first run"] + [None] * 39)).trials == (21,)


def test_quick_trials_are_outliers_only_if_they_are_without_logarithms_too():
    quick = NOISE[:40].copy()
    quick[20] = 0.5
    assert kinds(quick) == ["outliers"]
    skewed = np.exp(-np.random.default_rng(2).gamma(2.0, 0.35, 60))  # a tail to the left on logarithms
    assert outlier_places(skewed).size
    assert "outliers" not in kinds(skewed)


def test_two_groups_are_told_with_centres_and_counts_and_not_as_outliers(golden):
    rng = np.random.default_rng(4)
    x = rng.permutation(np.concatenate((rng.normal(1.0, 0.01, 12), rng.normal(1.1, 0.01, 8))))
    found = only(x)
    assert found.kind == "bimodal"
    assert re.search(r"12 of 20 trials .* 8 .* 1\.099", found_text(found))
    assert kinds(x, thresholds=chosen("bimodal=20%")) == []
    golden(warning_text(found))


def test_groups_whose_trials_stay_together_are_one_warning(golden):
    rng = np.random.default_rng(5)
    x = rng.normal(1.0, 0.01, 60) + 0.2 * (np.arange(60) // 4 % 2)
    found = only(x)
    assert found.kind == "bimodal"
    golden(warning_text(found))


def sluggish(n, rho=0.8, spread=0.05):
    z = np.random.default_rng(0).standard_normal(n)
    for i in range(1, n):
        z[i] = rho * z[i - 1] + math.sqrt(1 - rho * rho) * z[i]
    return 1.0 + spread * z


def test_neighbours_that_are_alike_are_told_with_what_they_are_worth(golden):
    x = sluggish(100, 0.6)
    found = only(x)
    assert found.kind == "autocorrelated"
    assert "100 trials" in found_text(found)
    golden(warning_text(found))
    assert kinds(x, thresholds=chosen("worth=0.05")) == []
    assert kinds(x, thresholds=chosen("autocorrelation=1e-12")) == []


def test_two_outliers_side_by_side_are_not_told_as_dependence_as_well():
    x = NOISE[:40].copy()
    x[20:22] = 1.9, 1.6
    assert kinds(x) == ["outliers"]
    y = sluggish(100, 0.6)
    y[50:52] = 9.0, 7.0
    assert kinds(y) == ["autocorrelated", "outliers"]


def test_a_drift_is_not_told_as_dependence_as_well():
    assert kinds(NOISE[:100] * np.linspace(1.0, 1.5, 100)) == ["drift"]


def test_a_trial_too_short_for_its_clock_is_told_with_how_much_longer_it_must_be(golden):
    x = np.array([0.06, 0.05, 0.06, 0.07, 0.06, 0.05, 0.07, 0.06, 0.06, 0.05, 0.07, 0.06])
    found = only(x)
    assert found.kind == "too-short"
    assert "6 ticks of 10" in found_text(found)
    assert "17 times" in advice(found)
    golden(warning_text(found))
    assert kinds(x, thresholds=chosen("ticks=5")) == ["coarse-clock"]


def test_a_step_as_large_as_the_spread_is_a_coarse_clock(golden):
    x = 100.0 + np.array([0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1], dtype=float)
    assert kinds(x) == ["coarse-clock"]
    of_time, of_rate = only(x), only(series(x, "1/s", "rate"))
    assert advice(of_time) != advice(of_rate)
    golden(f"{warning_text(of_time)}\n{warning_text(of_rate)}")


def test_counts_and_bytes_come_in_steps_by_nature():
    x = np.array([3, 4, 3, 3, 4, 3, 3, 3, 4, 3, 3, 4], dtype=float)
    assert kinds(series(x, "1", "count")) == []
    assert kinds(series(4096 * x, "B")) == []


def test_not_normal_is_told_with_its_power_only_when_asked_and_where_it_matters(golden):
    x = 0.8 + 0.15 * np.random.default_rng(1).weibull(0.9, 30)
    quiet = chosen("outliers=1e-12", "warm-up=500%")
    found = only(x, thresholds=quiet)
    assert found.kind == "not-normal"
    assert " 36 % " in found_text(found)
    golden(warning_text(found))
    assert kinds(x, thresholds=chosen("outliers=1e-12", "normality=1e-9")) == []
    assert kinds(x, thresholds=chosen("outliers=1e-12", "skewness=1")) == []


def test_equal_values_are_told_as_that_and_nothing_else(golden):
    found = only([0.01] * 30, precision=0.05)
    assert found.kind == "all-equal"
    assert re.search(r" 30 .* elapsed .* 10\.00 ms", found_text(found))
    golden(warning_text(found))
    assert kinds(series([7.0] * 30, "1", "count")) == kinds(series([7.0] * 30, "B")) == []


# Trials


def test_too_few_trials_are_told_and_below_six_that_the_median_has_no_interval(golden):
    few, fewer = only(NOISE[:8]), only(NOISE[:5])
    assert few.kind == fewer.kind == "too-few"
    assert "median" not in found_text(few)
    assert "median" in found_text(fewer)
    golden(f"{warning_text(few)}\n{warning_text(fewer)}")
    assert kinds(NOISE[:8], thresholds=chosen("few=5")) == []
    assert kinds(NOISE[:10]) == []


def test_no_value_at_all_is_told_with_the_reason(golden):
    column = Column("1", "count", np.full(12, np.nan), "no hardware counters")
    made = series(NOISE[:12], more={"cycles": column})
    found, unkept = only(made, metric="cycles"), told(series(NOISE[:12], kept=[False] * 12))[0]
    assert (found.kind, found.metric) == ("too-few", "cycles")
    assert found_text(found).endswith(f": {column.reason}")
    assert (unkept.kind, unkept.metric) == ("too-few", "elapsed")
    golden(f"{warning_text(found)}\n{warning_text(unkept)}")
    assert kinds(made, metric="unheard-of") == []


def test_missing_values_are_counted(golden):
    x = NOISE[:20].copy()
    x[[3, 5]] = np.nan
    x[7] = np.inf
    found = only(x)
    assert (found.kind, found.metric) == ("missing-values", "elapsed")
    assert found_text(found).startswith("3 of 20 ")
    golden(warning_text(found))


def test_failures_are_told_with_their_trials_and_whether_these_are_kept(golden):
    failures = [Failure(t, w, "exit status 1") for t in (4, 9) for w in (0, 1)]
    kept = ~np.isin(np.arange(1, 21), (4, 9))
    found = only(
        series(NOISE[:20], kept=kept, failures=failures, why=[None if k else "failed" for k in kept])
    )
    assert (found.kind, found.trials) == ("failed", (4, 9))
    assert re.match(r"2 of 20 .*\(exit status 1; ", found_text(found))
    with_kept = only(series(NOISE[:20], failures=failures))
    assert (with_kept.kind, with_kept.trials) == ("failed", (4, 9))
    assert found_text(with_kept) != found_text(found)
    golden(f"{warning_text(found)}\n{warning_text(with_kept)}")


def test_a_metric_that_matched_in_no_trial_is_of_the_first_rank():
    nothing = Column("1/s", "rate", np.full(20, np.nan), "the pattern matched nothing in the output")
    found = told(series(NOISE[:20], more={"rate": nothing, "energy_cpu": nothing}))
    assert [(w.kind, w.metric, w.facts.of) for w in found] == [("no-match", "rate", 20)]
    assert found[0].rank < KINDS["failed"].rank
    assert [w.kind for w in told(series(NOISE[:20], more={"rate": nothing}), "rate")] == ["no-match"]


def test_a_metric_that_matched_in_some_trials_has_missing_values():
    some = np.where(np.arange(20) == 7, 1.0, np.nan)
    column = Column("1", "count", some, "the pattern matched nothing in the output")
    (found,) = told(series(NOISE[:20], more={"calls": column}))
    assert (found.kind, found.metric, numbers_of(found)) == (
        "missing-values",
        "calls",
        {"count": 19, "of": 20},
    )


def test_values_that_are_not_to_be_joined_are_no_pattern_without_a_match():
    column = Column("s", "cost", np.full(20, np.nan), "not joined: …", joined="none")
    assert told(series(NOISE[:20], more={"p99": column})) == []


def test_failing_in_several_ways_is_its_own_kind(golden):
    failures = [Failure(4, 0, "exit status 1"), Failure(6, 0, "killed by signal 9 (SIGKILL)")]
    found = only(series(NOISE[:20], failures=failures))
    assert found.kind == "mixed-failures"
    assert ", ".join(f"1 × {each.how}" for each in failures) in found_text(found)
    golden(warning_text(found))


def test_trials_set_aside_are_told_unless_it_was_planned(golden):
    kept = np.arange(20) > 1
    why = ["first run", "incomplete"] + [None] * 18
    found = only(series(NOISE[:20], kept=kept, why=why))
    assert not told(series(NOISE[:20], kept=kept, why=["first run", "calibration"] + [None] * 18))
    assert (found.kind, found.trials) == ("set-aside", (2,))
    assert re.match(r"1 of 20 .*\(incomplete: ", found_text(found))
    golden(warning_text(found))


def test_what_an_interrupt_ended_has_not_failed():
    kept = np.arange(21) < 20
    failures = [Failure(21, 0, "ended", of_experiment=True)]
    found = only(series(NOISE[:21], kept=kept, failures=failures, why=[None] * 20 + ["cancelled"]))
    assert (found.kind, found.trials) == ("set-aside", (21,))
    assert re.match(r"1 of 21 .*\(cancelled: ", found_text(found))


def test_a_precision_that_was_not_reached_is_told_with_what_would_reach_it(golden):
    found = only(NOISE[:20], precision=0.005)
    assert found.kind == "not-converged"
    assert "± 0.85 %" in found_text(found)
    assert "0.50 %" in found_text(found)
    golden(warning_text(found))
    wider = only(NOISE[:20], precision=0.005, factor=2.0)
    assert found_text(wider) != found_text(found)
    assert kinds(NOISE[:20], precision=0.05) == []


def test_a_precision_that_cannot_be_told_has_a_reason(golden):
    reasons = []
    for values in ([1.0], [-1.0, 1.0] * 10):
        (found,) = [w for w in told(series(values), precision=0.1) if w.kind == "not-converged"]
        reasons.append(warning_text(found))
    golden("\n".join(reasons))


def test_data_as_large_as_the_memory_are_told_of_the_nearest_metric(golden):
    read = Column("B", "cost", np.full(20, 0.9 * 2**34))
    written = Column("B", "cost", np.full(20, 0.6 * 2**34))
    made = series(NOISE[:20], more={"storage_written": written, "storage_read": read})
    found = only(made, memory_bytes=1 << 34)
    assert (found.kind, found.metric) == ("memory-cliff", "storage_read")
    assert re.search(r" 0\.90 .* 16\.00 GiB", found_text(found))
    golden(warning_text(found))
    assert kinds(made) == kinds(made, memory_bytes=1 << 36) == kinds(made, memory_bytes=1 << 30) == []
    assert kinds(made, memory_bytes=1 << 34, thresholds=chosen("memory-low=0.95")) == []


def test_different_work_comes_first_of_all():
    between = WorkDifference("output", "b", "a", printed_bytes=(1, 2))
    within = WorkDifference("output", "a")
    first, second = work_warnings([between, within])
    assert (first.facts, second.facts) == (OtherWork(between), OtherWork(within))
    assert re.findall(r"\d B", found_text(first)) == ["1 B", "2 B"]
    assert advice(first) != advice(second)
    assert first.rank == min(kind.rank for kind in KINDS.values())


# Whatever is given

usual = st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float)
extreme = st.floats(allow_nan=False, allow_infinity=False)
anything = st.floats()


@settings(max_examples=examples(150))
@given(
    st.one_of(
        *(st.lists(v, max_size=40) for v in (usual, extreme, anything, st.sampled_from([1.0, 1.0, 2.0])))
    ),
    st.sampled_from(["cost", "rate", "ratio", "count", "binary"]),
    st.sampled_from(["s", "B", "1", "1/s"]),
    st.none() | st.floats(1e-6, 1.0),
)
@example([1.7e308, -1.7e308, 5e-324, 0.0, 1.6e308, -1.5e308] * 6, "cost", "s", 0.05)
@example([5e-324, 1e-323] * 20, "cost", "s", 0.05)
@example([1.0] * 39 + [1.7e308], "rate", "1/s", 0.05)
@pytest.mark.filterwarnings("error")
def test_any_series_gets_warnings_that_are_one_line_each(values, kind, unit, precision):
    columns = {
        name: Column("B", "cost", np.array(values, dtype=float)) for name in ("memory_free", "peak_memory")
    }
    made = series(values, unit, kind, more=columns)
    found = told(made, precision=precision, memory_bytes=1 << 30)
    found += told(made, metric="memory_free", precision=precision)
    for each in found:
        assert each.kind in KINDS
        assert "\n" not in warning_text(each)
        assert "nan" not in warning_text(each).split()
    assert [w.rank for w in told(made)] == sorted(w.rank for w in told(made))


def test_a_warning_carries_all_trials_that_it_speaks_of() -> None:
    values = np.random.default_rng(4).normal(1.0, 0.005, 120)
    far = [4, 11, 19, 26, 33, 47, 52]
    values[far] = 2.0
    made = Series("a", np.arange(1, 121), np.ones(120, dtype=bool), {"elapsed": Column("s", "cost", values)})
    (outliers,) = [
        w for w in series_warnings(made, "elapsed", thresholds=Thresholds()) if w.kind == "outliers"
    ]
    assert outliers.trials == tuple(n + 1 for n in far)


def test_what_the_kernel_warned_of_and_throttling_are_told_of_in_kept_trials_only(golden):
    def said(level, text, throttled=0):
        return {"messages": [{"ns": 1, "level": level, "text": text}], "throttled": throttled}

    kernel = [said(3, "excluded"), None, said(6, "mounted"), said(4, "sda fails"), said(2, "worse", 7)]
    made = series([1.0, 1.1, 1.2, 1.05, 1.15], kept=[False, True, True, True, True], kernel=kernel)
    [found] = [w for w in told(made) if w.kind == "kernel"]
    first, second = made.trials.tolist()[3:]
    assert f"{first}: sda fails" in found_text(found)
    assert re.search(rf"\b7 times .*\b{second}$", found_text(found))
    assert found.trials == (first, second)
    golden(warning_text(found))
    calm = series([1.0] * 5, kernel=[said(6, "mounted"), *[None] * 4])
    assert not [w for w in told(calm) if w.kind == "kernel"]


def test_a_data_set_as_large_as_the_memory_is_told_of_and_its_control_group_counts(golden):
    cold = {"declared": "drop", "performed": "drop", "bytes": 3 << 30}
    made = series(NOISE[:20], caches=[cold] * 20)
    found = only(made, memory_bytes=4 << 30)
    assert (found.kind, found.metric) == ("memory-cliff", "")
    assert " 0.75 of " in found_text(found)
    golden(warning_text(found))
    assert kinds(made) == kinds(made, memory_bytes=16 << 30) == kinds(made, memory_bytes=1 << 30) == []
    limited = series(NOISE[:20], caches=[cold | {"memory_bytes": 2 << 30}] * 20)
    assert " 1.50 of " in found_text(only(limited, memory_bytes=64 << 30))
    unkept = series(NOISE[:20], kept=np.array([False] + [True] * 19), caches=[cold] + [None] * 19)
    assert "memory-cliff" not in kinds(unkept, memory_bytes=4 << 30)


def test_caches_that_are_not_as_declared_are_told_of_with_the_first_reason(golden):
    cold = {"declared": "drop", "performed": "drop"}
    half = cold | {"wrong": "50.0% of the data set is still in memory"}
    undone = {"declared": "drop", "performed": None, "why": "excluded"}
    kept = np.array([False, True, True, True, True])
    made = series([1.0, 1.1, 1.2, 1.05, 1.15], kept=kept, caches=[undone, cold, half, undone, cold])
    [found] = [w for w in told(made) if w.kind == "caches"]
    assert re.search(r"'drop' .* 2 of 4 .*\b3: 50\.0%", found_text(found))
    assert found.trials == (3, 4)
    golden(warning_text(found))
    assert not [
        w for w in told(series([1.0] * 5, kept=kept, caches=[undone, *[cold] * 4])) if w.kind == "caches"
    ]


def test_a_level_that_comes_back_is_no_warm_up(golden):
    """No run before the first trial takes away what is there at the end, too."""
    noise = 1.0 + 0.01 * np.random.default_rng(3).standard_normal(50)
    noise[:7] *= 2.3
    noise[40:] *= 1.9
    (found,) = [each for each in told(series(noise)) if each.kind in ("warm-up", "late-level")]
    assert found.kind == "late-level"
    assert found.trials == (*range(1, 8), *range(41, 51))
    assert found.facts.shift == pytest.approx(1.3, abs=0.05)
    assert found.facts.shift_last == pytest.approx(0.9, abs=0.05)
    assert (found.facts.first, found.facts.last) == (7, 10)
    golden(warning_text(found))
