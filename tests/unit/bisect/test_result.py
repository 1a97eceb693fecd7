"""A bisection from its results: the same as it was before, whatever ended it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.bisect.bisection import Build, Run
from etude.bisect.request import NAME_LENGTH, KnownCommit, Request
from etude.bisect.result import MEMBER, BisectResult, KnownBuild, judge, new_result, restore, to_document
from etude.bisect.verdict import Answer
from etude.errors import InputError
from etude.experiment.progress import Progress
from etude.figures.bisect import APART, bisect_figure
from etude.present.sections.bisect import bisect_figure_of
from etude.present.sentences.bisect import chance_text, git_log
from etude.results.model import FIRST_RUN, Measurement
from support.builders import measurement

STEP_AT = 11
COMMITS = tuple(KnownCommit(f"{n:03d}".ljust(40, "a"), f"Commit {n}") for n in range(24))
REQUEST = Request("r", "v1", "main", "make", ("x",), seed=3)
SOURCE = "experiment.json"


def bisected(broken: frozenset[int] = frozenset(), seed: int = 1) -> tuple[BisectResult, list[Measurement]]:
    """A finished bisection without a machine, and its measurements in their order."""
    random = np.random.default_rng(seed)
    result, rows = new_result(REQUEST, COMMITS), list[Measurement]()
    state = result.state
    state.session = 1
    while not isinstance(action := state.action(), Answer):
        if isinstance(action, Build):
            build = KnownBuild("failed" if action.commit in broken else "built", 2.0, 2.0, "no luck")
            result.add_build(action.commit, build)
            if action.commit in broken:
                result.skip(action.commit, build.last_line)
            continue
        name = COMMITS[action.commit].sha[:NAME_LENGTH]
        trial = 1 + sum(row.test == name for row in rows)
        order = sum(row.block == action.block + 1 for row in rows)
        elapsed_s = (0.05 if action.commit < STEP_AT else 0.06) * random.lognormal(0.0, 0.01)
        rows.append(measurement(name, trial, elapsed_s, block=action.block + 1, order=order))
        state.add_trial(Run(action.commit, action.block), math.log(elapsed_s), elapsed_s)
        result.measuring_s += elapsed_s
    return result, rows


def restored(result: BisectResult, rows: list[Measurement]) -> BisectResult:
    names = dict.fromkeys(row.test for row in rows)
    progress = Progress({name: tuple(row for row in rows if row.test == name) for name in names})
    found = new_result(REQUEST, COMMITS)
    restore(found, {MEMBER: to_document(result)}, progress, SOURCE)
    judge(found)
    return found


def test_what_is_on_disk_is_the_whole_state() -> None:
    result, rows = bisected(frozenset({10, 13}))
    found = restored(result, rows)
    assert found.answer == result.answer
    assert found.answer.kind in ("commit", "range")
    assert (found.skipped, found.builds) == (result.skipped, result.builds)
    assert found.building_s == result.building_s == 2.0 * len(found.builds)
    assert found.state.posterior is not None
    assert result.state.posterior is not None
    assert np.allclose(found.state.posterior.commits, result.state.posterior.commits)


INTERRUPTED = {"kept": False, "signal": 9, "exit_status": None, "cancelled": True}


@pytest.mark.parametrize("place", [0, STEP_AT, len(COMMITS) - 1])
@pytest.mark.parametrize(
    "changes", [{"why": "cancelled"}, {"why": FIRST_RUN, "signal": None, "exit_status": 0}]
)
def test_a_trial_that_an_interruption_ended_skips_no_commit(place: int, changes: dict[str, object]) -> None:
    result, rows = bisected()
    name = COMMITS[place].sha[:NAME_LENGTH]
    trial = 1 + sum(row.test == name for row in rows)
    found = restored(result, [*rows, measurement(name, trial, None, block=0, **(INTERRUPTED | changes))])
    assert found.skipped == {}
    assert found.answer == result.answer


def test_a_failed_trial_skips_its_commit_but_neither_good_nor_bad() -> None:
    result, rows = bisected()
    failed = {"kept": False, "why": "failed", "exit_status": 3, "stderr": {"tail": "no\nluck\n", "bytes": 8}}
    for place in (0, STEP_AT, len(COMMITS) - 1):
        name = COMMITS[place].sha[:NAME_LENGTH]
        trial = 1 + sum(row.test == name for row in rows)
        found = restored(result, [*rows, measurement(name, trial, 0.01, block=99, **failed)])
        assert set(found.skipped) == {place} - {0, len(COMMITS) - 1}
        assert all(why.endswith(": luck") for why in found.skipped.values())


def test_a_metric_that_is_missing_skips_and_of_good_is_refused() -> None:
    result, rows = bisected()
    without = {"metrics": {"elapsed": [None, "s", "not measured"]}}
    for place in (STEP_AT, 0):
        name = COMMITS[place].sha[:NAME_LENGTH]
        trial = 1 + sum(row.test == name for row in rows)
        more = [*rows, measurement(name, trial, block=99, **without)]
        if place == 0:
            with pytest.raises(InputError):
                restored(result, more)
        else:
            assert set(restored(result, more).skipped) == {STEP_AT}


@given(st.sets(st.integers(1, len(COMMITS) - 2), max_size=10), st.integers(0, 5))
def test_the_log_leads_git_to_the_same_range(broken: set[int], seed: int) -> None:
    result, _ = bisected(frozenset(broken), seed)
    places = {commit.sha: place for place, commit in enumerate(COMMITS)}
    good, bad, skipped = 0, len(COMMITS) - 1, set[int]()
    for words in (line.split() for line in git_log(result).splitlines() if line.startswith("git bisect ")):
        if words[2] == "good":
            good = max(good, places[words[3]])
        elif words[2] == "bad":
            bad = places[words[3]]  # the last one counts
        elif words[2] == "skip":
            skipped.add(places[words[3]])
    answer = result.answer
    if answer.kind in ("commit", "range"):
        assert good < answer.first <= answer.last == bad
        assert set(range(good + 1, bad)) <= skipped


@pytest.mark.parametrize("place", range(1, len(COMMITS)))
def test_names_below_the_figure_do_not_meet(place: int) -> None:
    result, _ = bisected()
    posterior, measured = result.state.posterior, result.state.evidence.measured().tolist()
    assert posterior is not None
    shares = np.zeros(len(COMMITS))
    shares[place] = 1.0
    names = [commit.sha for commit in COMMITS]
    figure = bisect_figure(replace(posterior, commits=shares), measured, names, (place, place))
    ticks = [at for at, _ in figure.x.ticks or ()]
    assert place in ticks
    assert min(np.diff(ticks), default=math.inf) >= APART * (len(COMMITS) - 1)


def test_the_figure_has_all_measured_commits() -> None:
    result, _ = bisected()
    figure = bisect_figure_of(result)
    assert figure is not None
    points = [layer for panel in figure.panels for layer in panel.layers if hasattr(layer, "points")]
    assert [len(layer.points) for layer in points] == [
        len(COMMITS) - 1,
        len(result.state.evidence.measured()),
    ]
    assert bisect_figure_of(new_result(REQUEST, COMMITS)) is None


@given(st.floats(0.0, 1.0))
def test_no_probability_is_shown_as_certain(share: float) -> None:
    assert chance_text(share) not in ("100 %", "0 %", "0.000 %")
