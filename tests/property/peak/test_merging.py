"""Merging the reports of k load generators of one stream gives the stream's windows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.peak.harnesses.load_hosts import MergeReports
from etude.peak.harnesses.load_report import LoadReport
from etude.peak.window import Window, joined_windows
from etude.results.histograms import Histogram

MS = 1_000_000


@dataclass(frozen=True)
class Answer:
    """One request of a stream: the generator that sent it, the half of its window, its time, ns."""

    generator: int
    half: int
    latency_ns: int
    failed: bool


@st.composite
def streams(draw: st.DrawFn) -> tuple[int, float, list[list[Answer]]]:
    """How many generators, the length of a window, and what was answered in each."""
    generators = draw(st.integers(1, 4))
    answer = st.builds(
        Answer,
        st.integers(0, generators - 1),
        st.integers(0, 1),
        st.integers(1, 1000).map(lambda ms: ms * MS),
        st.booleans(),
    )
    windows = draw(st.lists(st.lists(answer, max_size=12), min_size=1, max_size=6))
    return generators, draw(st.sampled_from([0.1, 0.25, 1.0, 3.0])), windows


def reported(duration_s: float, answers: list[Answer]) -> LoadReport:
    good = [each.latency_ns for each in answers if not each.failed]
    values, counts = np.unique(np.array(good, dtype=np.int64), return_counts=True)
    window = Window(
        duration_s,
        len(answers),
        len(good),
        len(answers) - len(good),
        float(np.mean(good)) * 1e-9 if good else None,
        Histogram(values, counts) if good else None,
    )
    return LoadReport(window, len(answers), sum(good) * 1e-9)


def same(one: LoadReport, other: LoadReport) -> None:
    ours, theirs = one.window, other.window
    assert ours.duration_s == pytest.approx(theirs.duration_s)
    assert (ours.offered, ours.completed, ours.failed) == (theirs.offered, theirs.completed, theirs.failed)
    assert ours.mean_s == (None if theirs.mean_s is None else pytest.approx(theirs.mean_s))
    assert (ours.latency is None) == (theirs.latency is None)
    if ours.latency is not None and theirs.latency is not None:
        assert ours.latency.values.tolist() == theirs.latency.values.tolist()
        assert ours.latency.counts.tolist() == theirs.latency.counts.tolist()
    assert one.sent == other.sent
    assert one.waited_s == pytest.approx(other.waited_s)


@given(streams(), st.data())
def test_the_parts_of_a_stream_merge_into_its_windows(
    stream: tuple[int, float, list[list[Answer]]], data: st.DataObject
) -> None:
    """Some generators report windows half as long, the lengths differ a little, and they report when they like."""
    generators, length_s, windows = stream
    halved = [data.draw(st.booleans()) for _ in range(generators)]
    if all(halved):
        halved[0] = False
    reports: list[list[LoadReport]] = [[] for _ in range(generators)]
    for index in range(generators):
        for answers in windows:
            own = [each for each in answers if each.generator == index]
            off = 1 + data.draw(st.floats(-0.001, 0.001))
            parts = (
                [[each for each in own if each.half == half] for half in (0, 1)] if halved[index] else [own]
            )
            reports[index] += [reported(off * length_s / len(parts), part) for part in parts]
    merging, found = MergeReports(generators), []
    order = data.draw(st.permutations([index for index in range(generators) for _ in reports[index]]))
    at = [0] * generators
    for index in order:
        found += merging.add(index, [reports[index][at[index]]])
        at[index] += 1
    found += merging.end()
    assert len(found) == len(windows)
    for merged, answers in zip(found, windows, strict=True):
        whole = reported(length_s, answers)
        assert merged.window.duration_s == pytest.approx(length_s, rel=0.002)
        same(LoadReport(Window(length_s, *fields(merged)), merged.sent, merged.busy_s), whole)
        assert len(merged.parts) == generators
        assert sum(part.window.completed for part in merged.parts) == whole.window.completed


def fields(told: LoadReport) -> tuple[int, int, int, float | None, Histogram | None]:
    window = told.window
    return window.offered, window.completed, window.failed, window.mean_s, window.latency


@given(st.lists(st.lists(st.floats(0.05, 2.0), max_size=6), min_size=1, max_size=4))
def test_windows_of_any_lengths_stay_in_order_and_are_merged_once(durations: list[list[float]]) -> None:
    merging, found = MergeReports(len(durations)), []
    for index, lengths in enumerate(durations):
        found += merging.add(index, [LoadReport(Window(length, 1, 1, 0, 0.01), 1) for length in lengths])
    found += merging.end()
    for index, lengths in enumerate(durations):
        own = [each.parts[index].window.duration_s for each in found]
        assert math.fsum(own) <= math.fsum(lengths) + 1e-9
        assert sum(each.parts[index].window.completed for each in found) <= len(lengths)
    assert joined_windows([each.window for each in found]).completed == sum(
        part.window.completed for each in found for part in each.parts
    )


def test_what_one_reports_beyond_the_others_is_left_out() -> None:
    merging = MergeReports(2)
    assert merging.add(0, [LoadReport(Window(1.0, 5, 5, 0, 0.01))] * 3) == []
    assert len(merging.add(1, [LoadReport(Window(1.0, 5, 5, 0, 0.03))])) == 1
    assert merging.end() == []


def test_a_mean_is_weighted_and_a_histogram_that_one_lacks_is_none() -> None:
    merging = MergeReports(2)
    counted = Histogram(np.array([10 * MS]), np.array([3]))
    merging.add(0, [LoadReport(Window(1.0, 3, 3, 0, 0.010, counted), lateness_p99_s=0.002)])
    (merged,) = merging.add(1, [LoadReport(Window(1.0, 1, 1, 0, 0.030), refused=2, lateness_p99_s=0.001)])
    assert merged.window == Window(1.0, 4, 4, 0, pytest.approx(0.015), None)
    assert (merged.sent, merged.refused, merged.lateness_p99_s) == (None, 2, 0.002)
