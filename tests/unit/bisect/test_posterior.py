"""The posterior over commits: exact against a direct computation, normalised, robust, and at the right commit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.bisect import posterior as module
from etude.bisect.posterior import Evidence, posterior_of


def evidence(
    levels: dict[int, float], blocks: list[list[int]], *, noise: float, offset: float = 0.0, seed: int = 1
) -> Evidence:
    """Trials of the commits of each block; levels: of each commit."""
    random = np.random.default_rng(seed)
    commits, numbers, values = [], [], []
    for number, members in enumerate(blocks):
        shift = random.normal(0.0, offset) if offset else 0.0
        for commit in members:
            commits.append(commit)
            numbers.append(number)
            values.append(levels[commit] + shift + random.normal(0.0, noise))
    return Evidence(
        np.array(commits), np.array(numbers), np.zeros(len(commits), dtype=np.intp), np.array(values)
    )


def stepped(count: int, place: int, size: float, *, trials: int = 8, noise: float = 0.01) -> Evidence:
    """Blocks of GOOD, BAD and the four commits around the place of a step."""
    around = [c for c in range(place - 2, place + 2) if 0 < c < count - 1]
    members = [0, count - 1, *around]
    levels = {c: size * (c >= place) for c in members}
    return evidence(levels, [members] * trials, noise=noise, offset=0.02)


@pytest.mark.parametrize(
    ("block", "drift", "build"), [(0, 0, 0), (0.7, 0, 0), (0, 0.4, 0), (0.7, 0.3, 0), (0.7, 0.3, 0.5)]
)
def test_products_are_those_of_the_whole_covariance(block: float, drift: float, build: float) -> None:
    random = np.random.default_rng(3)
    blocks, commits = np.repeat(np.arange(9), 5), random.integers(0, 4, 45) * 3
    found = Evidence(commits, blocks, (blocks > 4).astype(np.intp), random.normal(size=45) * 0.01)
    measured = found.measured()
    sums = module._sums_of(found, measured)
    products, logdet = module._products(sums, block, drift)
    (whole,), (whole_logdet,) = module._with_builds(products[None], np.array([logdet]), np.array([build]))
    time = np.concatenate(([0.0], np.cumsum(sums.pauses)))[blocks]
    covariance = (
        np.eye(45)
        + block * (blocks[:, None] == blocks)
        + drift * np.minimum(time[:, None], time)
        + build * (commits[:, None] == commits)
    )
    values = module._winsorised(
        found.values - found.values.mean(), np.searchsorted(measured, commits), blocks, sums.counts
    )[0]
    columns = np.column_stack([(commits[:, None] == measured).astype(float), sums.trend[blocks], values])
    np.testing.assert_allclose(whole, columns.T @ np.linalg.solve(covariance, columns), rtol=1e-8, atol=1e-10)
    assert whole_logdet == pytest.approx(np.linalg.slogdet(covariance)[1], abs=1e-8)


@pytest.mark.parametrize("place", [1, 5, 60, 126, 127])
def test_the_commit_of_a_clear_step_is_found_with_its_size(place: int) -> None:
    found = posterior_of(stepped(128, place, 0.05), 128, smallest=0.01)
    assert int(np.argmax(found.commits)) == place
    assert found.commits[place] > 0.95
    assert abs(found.step - 0.05) < 4 * found.step_error < 0.05
    assert found.none < 0.01


def test_probabilities_add_up_to_one() -> None:
    found = posterior_of(stepped(64, 20, 0.01), 64, smallest=0.01)
    assert found.commits.sum() + found.none + found.drift == pytest.approx(1.0)
    assert found.commits[0] == 0.0


def test_equal_ends_are_no_step() -> None:
    levels = {0: 0.0, 63: 0.0, 30: 0.0}
    found = posterior_of(evidence(levels, [[0, 63, 30]] * 30, noise=0.01), 64, smallest=0.02)
    assert found.none > 0.8
    assert found.below(0.02) > 0.99 > found.below(0.001)


def test_one_late_trial_moves_nothing() -> None:
    clean = stepped(128, 60, 0.03)
    late = clean.values.copy()
    late[np.flatnonzero(clean.commits == 59)[0]] += 2.0
    spoiled = Evidence(clean.commits, clean.blocks, clean.sessions, late)
    found = posterior_of(spoiled, 128, smallest=0.01)
    assert int(np.argmax(found.commits)) == 60
    assert found.noise < 3 * posterior_of(clean, 128, smallest=0.01).noise


def test_a_steady_drift_of_the_machine_is_no_step() -> None:
    """Commits are measured one after the other while the machine becomes slower; GOOD in each block shows that."""
    blocks = [[0, c, c] for c in (31, 8, 16, 24, 28, 20, 12, 4) for _ in range(4)]
    random = np.random.default_rng(5)
    commits = np.array([c for members in blocks for c in members])
    numbers = np.repeat(np.arange(len(blocks)), 3)
    values = 0.004 * numbers + random.normal(0.0, 0.01, commits.size)
    found = posterior_of(Evidence(commits, numbers, np.zeros_like(commits), values), 32, smallest=0.02)
    assert found.commits.max() < 0.2
    assert found.below(0.03) > 0.9


def test_two_steps_that_cancel_are_more_than_one_step() -> None:
    places = [0, 10, 20, 30, 40, 63]
    levels = {0: 0.0, 10: 0.0, 20: 0.05, 30: 0.05, 40: 0.0, 63: 0.04}
    found = posterior_of(evidence(levels, [places] * 10, noise=0.005), 64, smallest=0.01)
    assert found.several > 0.9
    assert found.hypotheses[0].kind == "three"
    assert found.hypotheses[0].sizes == pytest.approx((0.05, -0.05, 0.04), abs=0.01)


def test_a_slow_change_over_all_commits_is_a_drift() -> None:
    places = list(range(0, 64, 7))
    found = posterior_of(
        evidence({c: 0.1 * c / 63 for c in places}, [places] * 12, noise=0.004), 64, smallest=0.01
    )
    assert found.drift > 0.9


@pytest.mark.parametrize("commits", [[0, 0, 5], [5, 63, 63], [7, 7, 7]])
def test_both_ends_are_needed(commits: list[int]) -> None:
    found = Evidence(np.array(commits), np.zeros(3, dtype=np.intp), np.zeros(3, dtype=np.intp), np.zeros(3))
    with pytest.raises(ValueError, match="GOOD and BAD"):
        posterior_of(found, 64, smallest=0.01)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_trials_give_a_finite_posterior(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 40))
    trials = data.draw(st.integers(0, 30))
    commits = [0, count - 1, *(data.draw(st.integers(0, count - 1)) for _ in range(trials))]
    blocks = np.sort([0, 0, *(data.draw(st.integers(0, 6)) for _ in range(trials))])
    scale = data.draw(st.sampled_from([0.0, 1e-9, 0.01, 5.0]))
    values = np.array([scale * data.draw(st.floats(-1, 1)) for _ in commits])
    sessions = (blocks > data.draw(st.integers(0, 6))).astype(np.intp)
    found = posterior_of(
        Evidence(np.array(commits), blocks.astype(np.intp), sessions, values), count, smallest=0.02
    )
    assert found.commits.sum() + found.none + found.drift == pytest.approx(1.0)
    assert np.isfinite(found.levels).all()
    assert np.isfinite([found.step, found.step_error, found.noise, found.change, found.change_error]).all()
