"""Replays are judged by the rules of `etude replay`, and loads by what limited them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from etude.analysis.loads import kind_figures, load_figures, window_figures
from etude.analysis.replays import UNCOUNTED, dropped_transfers, fault_of, faults_of, time_pairs
from etude.present.sentences.replay import verdict_line
from etude.results.engine_reports import Lateness, LoadReport, ReplayReport, Unplayed, read_report
from golden.corpus import lay_out


@pytest.fixture
def faithful(tmp_path: Path) -> ReplayReport:
    found = read_report(lay_out("replays/faithful.json", tmp_path))
    assert isinstance(found, ReplayReport)
    return found


def load(tmp_path: Path, name: str) -> LoadReport:
    found = read_report(lay_out(f"load/{name}.jsonl", tmp_path))
    assert isinstance(found, LoadReport)
    return found


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, None),
        ({"calls": 0}, "no-call"),
        ({"lateness_s": None}, "no-lateness"),
        ({"lateness_s": None, "timing": "none"}, None),
        ({"lateness_s": None, "timing": "none", "calls": 1000, "mismatches": 2}, "results"),
        ({"lateness_s": Lateness(0.0, 0.001, 5.0)}, None),
        ({"lateness_s": Lateness(0.0, 0.0011, 5.0)}, "late"),
        ({"calls": 1000, "mismatches": 1}, None),
        ({"calls": 1000, "mismatches": 2}, "results"),
        ({"unplayed": Unplayed(0.0, requests=UNCOUNTED)}, "uncounted"),
        ({"unplayed": Unplayed(0.02)}, "bytes"),
        ({"unplayed": Unplayed(0.0, requests_share=0.02)}, "transfers"),
        ({"unplayed": Unplayed(0.01, time_share=0.02)}, "time"),
        ({"unplayed": Unplayed(0.01, time_share=None)}, None),
    ],
)
def test_a_replay_is_faithful_within_the_bounds(
    faithful: ReplayReport, changes: dict[str, object], kind: str | None
) -> None:
    fault = fault_of(replace(faithful, **changes))  # type: ignore[arg-type]
    assert (fault.kind if fault else None) == kind


def test_each_trial_that_is_not_faithful_is_named(faithful: ReplayReport) -> None:
    late = replace(faithful, lateness_s=Lateness(0.0, 0.5, 0.5))
    assert {trial: fault.kind for trial, fault in faults_of({1: faithful, 4: late}).items()} == {4: "late"}


def test_a_replay_without_a_schedule_is_not_judged(faithful: ReplayReport) -> None:
    unscheduled = replace(faithful, timing="none", lateness_s=None)
    other = replace(unscheduled, calls=10, mismatches=1)
    found = [
        verdict_line(each)
        for each in ({1: unscheduled}, {1: other}, {1: other, 2: unscheduled}, {1: faithful})
    ]
    assert [line.partition(":")[0].split()[:2] == ["Not", "judged"] for line in found] == [
        True,
        True,
        True,
        False,
    ]
    assert len(set(found)) == 4


def test_times_are_compared_with_the_mean_of_the_replays(faithful: ReplayReport) -> None:
    original = replace(faithful.original, run_s=2.0)
    slow, fast = (replace(faithful, run_s=s, original=original) for s in (3.0, 5.0))
    pairs = {pair.what: pair for pair in time_pairs([slow, fast])}
    assert pairs["run time"].ratio == 2.0
    assert "requests" not in pairs
    unknown = replace(faithful, original=replace(original, timed=False))
    assert {pair.ratio for pair in time_pairs([unknown])} == {None}


def test_dropped_calls_that_moved_data_come_the_largest_first(tmp_path: Path) -> None:
    report = read_report(lay_out("replays/changed.json", tmp_path))
    assert isinstance(report, ReplayReport)
    moved = dropped_transfers(report)
    assert moved
    assert all(kind.moves for kind in moved)
    assert [kind.bytes for kind in moved] == sorted((kind.bytes for kind in moved), reverse=True)


def test_a_system_that_leaves_requests_unanswered_is_the_limit(tmp_path: Path) -> None:
    found = load_figures([load(tmp_path, "overloaded")])
    assert found.limit == "server"
    assert found.asked == 80.0
    assert found.offered_rate > 80.0
    assert found.completed_rate < 60.0
    assert found.stuck > 100


def test_a_load_that_is_served_reached_no_limit(tmp_path: Path) -> None:
    run = load(tmp_path, "directory")
    found = load_figures([run])
    assert run.summary is not None
    assert found.limit == "none"
    assert found.completed == run.summary.completed
    assert found.mean_s == pytest.approx(run.response.mean_s, rel=1e-6)
    stated = (run.response.p50_s, run.response.p90_s, run.response.p99_s)
    assert found.quantiles_s[:3] == pytest.approx(stated, rel=0.03)
    assert found.quantiles_s[3] is None, "too few responses"
    assert sum(kind.completed for kind in kind_figures([run])) == found.completed


def test_several_runs_are_joined(tmp_path: Path) -> None:
    run = load(tmp_path, "directory")
    one, two = load_figures([run]), load_figures([run, run])
    assert (two.completed, two.duration_s) == (2 * one.completed, 2 * one.duration_s)
    assert two.quantiles_s[:3] == one.quantiles_s[:3]
    assert two.quantiles_s[3] is not None


def test_the_summary_alone_has_rates_and_percentiles(tmp_path: Path) -> None:
    run = load(tmp_path, "overloaded")
    found = load_figures([replace(run, windows=())])
    whole = load_figures([run])
    assert (found.offered, found.completed, found.completed_rate) == (
        whole.offered,
        whole.completed,
        whole.completed_rate,
    )
    assert found.quantiles_s[2] == run.response.p99_s


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({"generator_limited": True}, "generator"),
        ({"abandoned": 3}, "server"),
        ({"arrivals": "closed"}, "clients"),
    ],
)
def test_the_summary_tells_the_limit(tmp_path: Path, changes: dict[str, object], limit: str) -> None:
    run = load(tmp_path, "directory")
    assert run.summary is not None
    changed = replace(run, summary=replace(run.summary, **changes))  # type: ignore[arg-type]
    assert load_figures([changed]).limit == limit
    assert load_figures([replace(run, summary=None)]).limit == "unknown"


@pytest.mark.parametrize(
    ("waiting", "limit"), [((1, 0, 2, 2), "none"), ((0, 0, 9, 0), "none"), ((0, 9, 9, 0), "server")]
)
def test_requests_that_wait_in_many_windows_show_a_slow_system(
    tmp_path: Path, waiting: tuple[int, ...], limit: str
) -> None:
    run = load(tmp_path, "directory")
    windows = tuple({**w, "waiting": n} for w, n in zip(run.windows, waiting, strict=True))
    assert load_figures([replace(run, windows=windows)]).limit == limit


def test_windows_are_placed_by_their_ends(tmp_path: Path) -> None:
    run = load(tmp_path, "directory")
    found = window_figures(run)
    assert [round(w.end_s) for w in found] == [1, 2, 3, 4]
    assert all(w.quantiles_s[3] is None for w in found)
