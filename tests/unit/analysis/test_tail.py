"""Percentiles of responses from windows, or of trials; and their ratio."""

import re

import numpy as np
import pytest

from etude.analysis.tail import responses, tail_of
from etude.errors import InputError
from etude.results.histograms import encode
from etude.results.series import Column, Series
from support.builders import measurement, series_of_rows

NS = 1e9


def window(values_s, **options):
    whole = np.rint(np.asarray(values_s) * NS).astype(np.int64)
    return {"duration_s": 10.0, "offered": 5, "started": 5, "completed": 5, "failed": 0} | {
        "latency": encode(whole, **({"digits": 3} | options))
    }


def series(windows=(), kept=None, elapsed=None, test="a"):
    n = len(windows) or len(elapsed)
    values = np.full(n, 10.0) if elapsed is None else np.asarray(elapsed)
    return Series(
        test=test,
        trials=np.arange(1, n + 1),
        kept=np.ones(n, dtype=bool) if kept is None else np.array(kept),
        columns={"elapsed": Column("s", "cost", values), "peak_memory": Column("B", "cost", values * 1e6)},
        windows=windows,
    )


def drawn(seed, trials=12, size=4000, factor=1.0):
    rng = np.random.default_rng(seed)
    return [factor * np.exp(rng.normal(-6.0, 0.5, size)) for _ in range(trials)]


def test_percentiles_are_those_of_all_responses_together():
    samples = drawn(1)
    tail = tail_of(series([[window(x[:1000]), window(x[1000:])] for x in samples]), "elapsed")
    assert (tail.of, tail.unit, tail.trials, tail.count, tail.without) == ("responses", "s", 12, 48000, 0)
    together = np.concatenate(samples)
    for found in tail.percentiles:
        assert found.value == pytest.approx(np.quantile(together, found.share), rel=2e-3)
        assert found.interval.low < found.value < found.interval.high
        assert found.reason is None


def test_intervals_are_as_wide_as_trials_lie_apart():
    alike = series([[window(x)] for x in drawn(2)])
    levels = np.exp(np.random.default_rng(3).normal(0.0, 0.2, 12))
    apart = series([[window(level * x)] for level, x in zip(levels, drawn(2), strict=True)])
    widths = [tail_of(s, "latency", (0.5,)).percentiles[0].interval.half_width for s in (alike, apart)]
    assert widths[1] > 5.0 * widths[0]


def test_histograms_of_different_precision_go_together():
    x, y = drawn(4, 2)
    tail = tail_of(series([[window(x)], [window(y, digits=2, lowest=1000)]]), "elapsed", (0.5,))
    assert tail.percentiles[0].value == pytest.approx(np.median(np.concatenate((x, y))), rel=0.01)


def test_trials_that_are_not_kept_or_have_no_response_do_not_count():
    windows = [[window(x)] for x in drawn(5, 6)]
    windows[0] = [window([100.0] * 9999)]
    windows[1] = [window([])]
    windows[2] = None
    windows[3] = [{"duration_s": 10.0, "latency": None}, *windows[3]]
    tail = tail_of(series(windows, kept=[False, True, True, True, True, True]), "elapsed")
    assert (tail.trials, tail.count, tail.without) == (3, 12000, 2)
    assert tail.percentiles[3].value < 1.0


def test_what_too_few_cannot_tell_has_a_reason():
    few = tail_of(series([[window(x)] for x in drawn(6, 4, 200)]), "elapsed").percentiles
    assert few[0].value is not None
    assert few[0].interval is None
    assert re.findall(r"\d+", few[0].reason) == ["10", "4"]
    assert few[3].value is None
    assert re.findall(r"[\d.]+", few[3].reason) == ["99.9", "1000", "800"]


def test_without_windows_percentiles_are_those_of_trials():
    tail = tail_of(series(elapsed=np.linspace(1.0, 2.0, 21)), "elapsed")
    assert (tail.of, tail.unit, tail.trials) == ("trials", "s", 21)
    assert tail.percentiles[0].value == 1.5
    assert tail.percentiles[2].value is None
    assert re.findall(r"\d+", tail.percentiles[2].reason) == ["99", "100", "21"]


def test_other_metrics_than_times_are_of_trials_also_with_windows():
    tail = tail_of(series([[window(x)] for x in drawn(7, 6)]), "peak_memory", (0.5,))
    assert (tail.of, tail.unit, tail.percentiles[0].value) == ("trials", "B", 1e7)


def test_a_metric_that_is_not_there_has_no_percentile():
    tail = tail_of(series(elapsed=[1.0, 2.0]), "joules")
    assert all(p.value is None and p.reason for p in tail.percentiles)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"latency": "HISTF"}, "'a', trial 2, window 1: latency: .*base64"),
        ({"latency": 5}, r"window 1: latency: .*\bint\b"),
        ("text", "window 1: "),
    ],
)
def test_a_latency_that_is_no_histogram_is_told_in_one_line(broken, said):
    windows = [[window(drawn(13, 1)[0])], [broken]]
    with pytest.raises(InputError, match=said) as refused:
        tail_of(series(windows), "elapsed")
    assert "\n" not in str(refused.value)


def test_windows_of_measurements_come_through():
    rows = [measurement(trial=i + 1, windows=[window(x)]) for i, x in enumerate(drawn(14, 5, 500))]
    found = responses(series_of_rows(rows))
    assert found.counts.sum() == 2500.0
    assert found.counts.shape[0] == 5
