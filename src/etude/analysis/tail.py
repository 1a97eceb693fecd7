"""Percentiles of a test: of its responses, where its trials reported them as histograms, else of its trials.

The two differ: a percentile of the responses is the time of one response, a percentile of the trials the time of a
whole run, and ten runs say little about their own p90.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from etude.errors import InputError
from etude.results.histograms import BadHistogram, Histogram, decode
from etude.results.series import Floats, Series, Whole
from etude.stats.describe import DEFAULT_SHARES, Percentile, percentiles
from etude.stats.resampling import FEWEST_TRIALS, Histograms, merged_percentile

SECONDS = 1e-9
"""Seconds per unit of the latencies: the histograms count nanoseconds."""

OF_RESPONSES = ("latency", "elapsed")
"""Metrics whose percentiles are those of the responses, where there are any."""


@dataclass(frozen=True)
class Tail:
    """Percentiles of one metric of one test, in its unit."""

    percentiles: tuple[Percentile, ...]
    of: Literal["responses", "trials"]
    unit: str
    trials: int
    """Number of included trials with windows, or with a value."""
    count: int
    """Number of responses, or of trials."""
    without: int
    """Number of included trials without a response or value."""


def tail_of(
    series: Series,
    metric: str,
    shares: Sequence[float] = DEFAULT_SHARES,
    confidence: float = 0.95,
    *,
    subtract: float = 0.0,
) -> Tail:
    """Percentiles of the included trials, at `shares` (0.99 for p99), with intervals, and reasons for missing ones.

    If `metric` is a time (latency, elapsed) and trials have windows with latencies, the percentiles are of the merged
    responses, with intervals from resampling whole trials, at least ten. Else they are of the trials' values, with
    intervals between order statistics for the effective number of trials; `subtract` (a shell's start) is subtracted
    from each value.
    Raises InputError for a latency that is no histogram.
    """
    found = responses(series) if metric in OF_RESPONSES else None
    kept = int(np.count_nonzero(series.kept))
    if found is not None:
        merged = tuple(_merged(found, share, confidence) for share in shares)
        trials, count = found.counts.shape[0], round(float(found.counts.sum()))
        return Tail(merged, "responses", "s", trials, count, kept - trials)
    values, column = series.sample(metric) - subtract, series.column(metric)
    size = int(values.size)
    unit = column.unit if column else "1"
    of_trials = percentiles(values, shares, confidence=confidence, dependent=True)
    return Tail(of_trials, "trials", unit, size, size, kept - size)


def responses(series: Series) -> Histograms | None:
    """Latencies of the included trials (s), one row per trial that has any, all with the same classes; else None.

    Histograms of different precision are merged: each keeps its classes, at their largest values.
    Raises InputError for a latency that is no histogram.
    """
    if not series.windows:
        return None
    trials = []
    for number, kept, windows in zip(series.trials.tolist(), series.kept, series.windows, strict=True):
        if kept:
            held = [_latency(series.test, number, i, window) for i, window in enumerate(windows or ())]
            held = [counted for counted in held if counted.counts.size]
            if held:
                trials.append(_together(held))
    if not trials:
        return None
    classes = np.unique(np.concatenate([values for values, _ in trials]))
    counts = np.zeros((len(trials), classes.size))
    for row, (values, times) in zip(counts, trials, strict=True):
        row[np.searchsorted(classes, values)] = times
    return Histograms(classes * SECONDS, counts)


def _latency(test: str, trial: int, place: int, window: Mapping[str, Any]) -> Histogram:
    where = f"test {test!r}, trial {trial}, window {place + 1}"
    if not isinstance(window, Mapping):
        raise InputError(
            f"{where}: expected an object with duration_s and latency; docs/reference/formats.md, windows"
        )
    text = window.get("latency")
    if text is None:
        return Histogram(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    if not isinstance(text, str):
        raise InputError(
            f"{where}: latency: expected an HdrHistogram as base64 text, not {type(text).__name__}"
        )
    try:
        return decode(text)
    except BadHistogram as error:
        raise InputError(
            f"{where}: latency: {error}; expected a compressed HdrHistogram of version 2 as base64 (HISTFA…)"
        ) from None


def _together(windows: Sequence[Histogram]) -> tuple[Whole, Floats]:
    values, place = np.unique(np.concatenate([w.values for w in windows]), return_inverse=True)
    times: Floats = np.zeros(values.size)
    np.add.at(times, place, np.concatenate([w.counts for w in windows]))
    return values, times


def _merged(found: Histograms, share: float, confidence: float) -> Percentile:
    count, trials = round(float(found.counts.sum())), found.counts.shape[0]
    name = f"p{100.0 * share:.6g}"
    if count * min(share, 1.0 - share) < 1.0 - 1e-9:
        needed = round(1.0 / min(share, 1.0 - share))
        return Percentile(share, None, None, f"{name} needs {needed} or more responses, not {count}")
    value, interval = merged_percentile(found, share, confidence=confidence)
    reason = (
        None
        if interval
        else f"an interval needs responses of {FEWEST_TRIALS} or more trials, not of {trials}"
    )
    return Percentile(share, value, interval, reason)
