"""Trials over time: each value in the order in which it was made, what is warned of marked, blocks and boots shaded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from etude.analysis.subject import Subject
from etude.analysis.verdict import Verdict, verdict
from etude.errors import InputError, UsageError
from etude.figures.axes import MOST_POINTS, Unit, threshold_lines, unit_for, y_axis
from etude.figures.data import GREY, Axis, Band, Curve, Figure, Layer, Panel, Point, label
from etude.figures.plot_options import PlotOptions
from etude.figures.sources import Sample, shown_metric, single_metric, trial_values
from etude.present.sentences.warnings import group_text
from etude.results.series import Flags, Series, Whole

MOST_PANELS = 6
MOST_SHADED = 40
"""More blocks than this would be stripes."""

ALARM = 6
"""Black: the colour of no test here, of which there are fewer."""

LEVELS = ("warm-up", "late-level", "never-steady")
"""Warnings that call the first or the last trials another level."""


def timeline(samples: Sequence[Sample], wish: PlotOptions) -> Figure:
    """A panel for each test on a common axis of blocks, or of trials where there are none.

    Raises:
        InputError: no test has values of single trials; UsageError: there are too many tests.
    """
    metric = single_metric(samples, wish, "--kind timeline")
    shown = [
        (s, s.series)
        for s in samples
        if s.series is not None and np.isfinite(trial_values(s.series, metric)).any()
    ]
    if not shown:
        raise InputError(f"{samples[0].file}: nothing to plot: no trial has a value of {metric}")
    if len(shown) > MOST_PANELS:
        raise UsageError(
            f"{len(shown)} tests below each other cannot be read; choose at most {MOST_PANELS} with --test"
        )
    base = samples[0].unit(metric)
    middles = (float(np.nanmedian(trial_values(series, metric))) for _, series in shown)
    unit = unit_for(middles, base, wish)
    verdicts = _verdicts(shown, metric)
    notes: list[str] = []
    panels = []
    shared = len({sample.file for sample, _ in shown}) == 1 and _share_blocks([series for _, series in shown])
    for colour, (sample, series) in enumerate(shown):
        assert sample.subject is not None
        judged = verdicts[id(sample.subject)]
        layers = _layers(series, metric, unit, colour, judged, shared, wish, notes)
        y = y_axis(shown_metric(metric, wish), unit, wish)
        thresholds = threshold_lines(wish.thresholds, unit, "y")
        panels.append(Panel(y, (*layers, *thresholds), title=label(sample.name)))
        notes += [
            f"{group.kind}: {group_text(group)}"
            for group in judged.warnings
            if not group.tests and group.first.test == series.test and group.first.metric in ("", metric)
        ]
    word = "block" if shared else "trial"
    axis = Axis(label(wish.x_label if wish.x_label is not None else f"{word}, in order of time"))
    return Figure(
        axis,
        tuple(panels),
        label(wish.title, 120),
        "above" if wish.key == "best" else wish.key,
        tuple(dict.fromkeys(notes)),
        "timeline",
    )


def _share_blocks(found: Sequence[Series]) -> bool:
    """True if each block holds trials of several of the tests."""
    numbers = [set(series.blocks.tolist()) if series.blocks is not None else set() for series in found]
    return len(found) > 1 and all(numbers) and all(len(numbers[0] & each) * 2 > len(each) for each in numbers)


def _verdicts(shown: Sequence[tuple[Sample, Series]], metric: str) -> dict[int, Verdict]:
    subjects: dict[int, Subject] = {id(s.subject): s.subject for s, _ in shown if s.subject is not None}
    return {key: verdict(subject, [metric]) for key, subject in subjects.items()}


def _layers(
    series: Series,
    metric: str,
    unit: Unit,
    colour: int,
    judged: Verdict,
    shared: bool,
    wish: PlotOptions,
    notes: list[str],
) -> Iterator[Layer]:
    values = trial_values(series, metric) / unit.divisor
    places = _places(series) if shared else np.arange(1, series.trials.size + 1)
    yield from _shades(series, places, shared)
    there = np.isfinite(values) & ((values > 0) if "y" in wish.log else True)
    failed = np.isin(series.trials, [f.trial for f in series.failures])
    odd = series.kept & _named(series, metric, judged, ("outliers",))
    ends = series.kept & _named(series, metric, judged, LEVELS) & ~odd
    plain = there & series.kept & ~failed & ~odd & ~ends
    step = max(1, -(-int(plain.sum()) // MOST_POINTS))
    if step > 1:
        notes.append(f"{label(series.test)}: one of {step} trials is drawn, and all that are warned of")
        plain[np.delete(np.arange(plain.size), np.flatnonzero(plain)[::step])] = False
    groups: tuple[tuple[str, Flags, int, str], ...] = (
        ("kept", plain, colour, "dots"),
        ("level shift", there & ends & ~failed, colour, "hollow"),
        ("excluded", there & ~series.kept & ~failed, GREY, "hollow"),
        ("failed", there & failed, ALARM, "crosses"),
        ("outlier", there & series.kept & odd & ~failed, ALARM, "hollow"),
    )
    for name, flags, hue, look in groups:
        points = tuple(Point(float(x), float(y)) for x, y in zip(places[flags], values[flags], strict=True))
        if points:
            yield Curve("" if name == "kept" else name, points, hue, look)  # type: ignore[arg-type]


def _named(series: Series, metric: str, judged: Verdict, kinds: Collection[str]) -> Flags:
    """The trials that warnings of these kinds speak of."""
    trials = [
        trial
        for warning in judged.every
        if warning.kind in kinds and (warning.test, warning.metric) == (series.test, metric)
        for trial in warning.trials
    ]
    found: Flags = np.isin(series.trials, trials)
    return found


def _places(series: Series) -> Whole:
    """Blocks one after the other, also over sessions."""
    assert series.blocks is not None
    if series.sittings is None or not series.sittings.size:
        return series.blocks
    found, ahead = series.blocks.copy(), 0
    for sitting in dict.fromkeys(series.sittings.tolist()):
        there = series.sittings == sitting
        if int(series.blocks[there].min()) <= ahead:
            found[there] += ahead
        ahead = int(found[there].max())
    return found


def _shades(series: Series, places: Whole, shared: bool) -> Iterator[Band]:
    """Every other boot or session, each named; where there is one only, every other block that tests share."""
    for level, names in (("boot", series.labels.get("boot")), ("sitting", series.sittings)):
        if names is None or len(set(map(str, names))) < 2:
            continue
        yield from _stretches(level, list(map(str, names)), places)
        return
    numbers = sorted(set(places.tolist()))
    if shared and 1 < len(numbers) <= MOST_SHADED:
        for number in numbers[1::2]:
            yield Band(number - 0.5, number + 0.5)


def _stretches(level: str, names: Sequence[str], places: Whole) -> Iterator[Band]:
    starts = [n for n in range(len(names)) if n == 0 or names[n] != names[n - 1]]
    for count, (start, end) in enumerate(zip(starts, [*starts[1:], len(names)], strict=True), 1):
        span = places[start:end]
        if count % 2 == 0:
            yield Band(float(span.min()) - 0.5, float(span.max()) + 0.5, f"{level} {count}")
