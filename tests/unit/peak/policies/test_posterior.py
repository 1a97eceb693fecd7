"""The policy that believes: how often it is right on servers whose peak is known, and what it does about the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from etude.peak import diagnostics
from etude.peak.diagnostics import findings
from etude.peak.policies.belief.answer_checks import (
    ABOVE,
    LOOK_WINDOWS,
    MIN_CALM_WINDOWS,
    TargetCheck,
    calm_windows,
    shedding_check,
)
from etude.peak.policies.belief.choice import GROWTH
from etude.peak.policies.belief.evidence import evidence_of
from etude.peak.policies.belief.grid import posterior_of
from etude.peak.policies.posterior import (
    CALM_WINDOWS,
    MOST_LOOK_WINDOWS,
    MOST_STALLED,
    PASSING_WINDOWS,
    Posterior,
    is_answer_robust,
)
from etude.peak.policies.posterior import answer as answer_of
from etude.peak.search import benchmarking_time_s, search
from etude.peak.task import Answer, Criterion, Goal, Task, Trial, TrialRequest
from etude.peak.window import Window
from etude.results.histograms import Histogram
from support.golden import Golden
from support.policy_simulator import Server, bend, knee, mm1, shelf, slow, task, trial

Curve = Callable[[float], float]
CURVES = [mm1, slow, knee, shelf, bend]


def peaks(count: int, seed: int = 0) -> list[float]:
    return [float(each) for each in 150 * 10 ** np.random.default_rng(seed).random(count)]


def searched(server: Server, what: Task) -> Answer:
    return search(Posterior(), what, server)


@pytest.mark.parametrize(
    "curve",
    [mm1, knee, *(pytest.param(curve, marks=pytest.mark.more) for curve in (slow, shelf, bend))],
    ids=lambda curve: curve.__name__,
)
def test_it_is_within_10_percent_of_the_peak(curve: Curve) -> None:
    """And takes about seven short trials where the curve is steep."""
    right = kept = covered = 0
    servers = [Server(curve, peak, seed) for seed, peak in enumerate(peaks(10))]
    for server in servers:
        answer, peak = searched(server, task()), server.peak
        assert answer.rate is not None
        right += abs(answer.rate / peak - 1) <= 0.1
        covered += answer.low <= peak <= answer.high
        kept += answer.kept
    assert right >= 9
    assert covered >= 9
    assert kept >= 9
    if curve in (mm1, knee):
        spans = [benchmarking_time_s(server.made) for server in servers]
        assert np.mean(spans) < 0.44 * 1.3 * 3600, "with the second trials that guard against modes"
        assert np.mean([trial.ended == "early" for server in servers for trial in server.made]) > 0.9


def test_the_region_is_hit_when_the_region_is_promised() -> None:
    for seed, peak in enumerate(peaks(2)):
        server = Server(mm1, peak, seed)
        answer = searched(server, task(promise="region"))
        assert answer.kept
        assert answer.rate is not None
        assert abs(mm1(answer.rate / peak) - 1) <= 0.1


def test_no_load_is_far_above_the_highest_that_was_fine() -> None:
    for seed, peak in enumerate(peaks(8)):
        server = Server(mm1, peak, seed)
        searched(server, task())
        fine = 50.0
        for each in server.made:
            assert each.load <= 1.001 * max(GROWTH * fine, 1.1 * ABOVE * peak)
            fine = max(fine, each.load) if each.load < peak else fine


def test_it_never_answers_on_fewer_than_two_trials() -> None:
    server = Server(knee, 400.0, 1, noise=0.01)
    searched(server, task(seed_load=400.0, within=0.5))
    assert len(server.made) >= 2


@pytest.mark.more
def test_a_good_seed_makes_it_cheaper() -> None:
    def hours(seeded: bool) -> float:
        servers = [(Server(mm1, peak, seed), peak) for seed, peak in enumerate(peaks(4))]
        for server, peak in servers:
            searched(server, task(seed_load=0.97 * peak if seeded else None))
        return sum(benchmarking_time_s(server.made) for server, _ in servers)

    assert hours(seeded=True) < 0.8 * hours(seeded=False)


def test_the_same_trials_give_the_same_decisions() -> None:
    server = Server(slow, 700.0, 5)
    searched(server, task())
    for count in range(len(server.made)):
        decided = Posterior().decide(task(), server.made[:count])
        assert isinstance(decided, TrialRequest)
        assert decided.load == server.made[count].load


def test_a_peak_below_the_lowest_load_is_a_bound() -> None:
    server = Server(mm1, 20.0, 1)
    answer = searched(server, task())
    assert (answer.rate, answer.low, answer.high, answer.kept) == (None, 0.0, 50.0, False)
    assert [each.kind for each in answer.findings] == ["below-lowest"]
    assert sum(each.load == 50.0 for each in server.made) >= 2


def test_a_peak_above_the_highest_load_is_a_bound() -> None:
    server = Server(mm1, 9000.0, 1)
    answer = searched(server, task(highest=1000.0))
    assert (answer.rate, answer.low, answer.high, answer.kept) == (None, 1000.0, math.inf, False)
    assert [each.kind for each in answer.findings] == ["above-highest"]
    assert sum(each.load == 1000.0 for each in server.made) >= 2


def test_a_generator_that_falls_short_bounds_the_search() -> None:
    server = Server(mm1, 2000.0, 1, offers=600.0)
    answer = searched(server, task())
    assert answer.rate is None
    assert answer.low >= 0.5 * 600
    assert answer.high == math.inf
    assert {each.kind for each in answer.findings} == {"above-highest", "generator-limited"}
    assert len(server.made) < 20


def test_a_generator_that_never_offers_what_it_should_ends_the_search() -> None:
    server = Server(mm1, 2000.0, 1, offers=1.0)
    answer = searched(server, task())
    assert answer.rate is None
    assert not answer.kept
    assert len(server.made) == 3


def test_a_rate_that_only_the_prior_gives_is_not_answered() -> None:
    made = [trial(load, [0.02] * 8) for load in (600.0, 1200.0, 3359.0, 3359.0)]
    answer = Posterior().best(task(highest=1e6), made, "the budget of benchmarking time is spent")
    assert (answer.rate, answer.low, answer.high, answer.kept) == (None, 3359.0, math.inf, False)
    assert answer.findings[0].kind == "not-bracketed"


def test_a_peak_beyond_the_generator_is_said_to_be_so_and_not_to_need_time() -> None:
    made = [trial(load, [0.02] * 8) for load in (600.0, 1200.0, 3359.0, 3359.0)]
    made += [trial(load, [0.02] * 8, limited="generator") for load in (9000.0, 5000.0)]
    finding = (
        Posterior().best(task(highest=1e6), made, "the budget of benchmarking time is spent").findings[0]
    )
    assert finding.kind == "not-bracketed"
    assert "5,000/s" in finding.what
    assert "--budget" not in finding.what


def test_a_rate_far_below_all_loads_is_not_answered() -> None:
    made = [trial(load, [40.0] * 8) for load in (3000.0, 6000.0)]
    answer = Posterior().best(task(highest=1e4), made, "the budget of benchmarking time is spent")
    assert (answer.rate, answer.low, answer.high, answer.kept) == (None, 0.0, 3000.0, False)


def test_loads_that_cannot_be_made_bound_the_search_from_above() -> None:
    server = Server(mm1, 2000.0, 1, made=600.0)
    answer = searched(server, task())
    assert answer.rate is None
    assert 0.75 * 600 <= answer.low <= 600
    assert {each.kind for each in answer.findings} == {"above-highest", "load-not-made"}
    assert "no space left" in next(each.what for each in answer.findings if each.kind == "load-not-made")


def test_a_first_load_that_cannot_be_made_is_followed_by_lower_ones() -> None:
    server = Server(mm1, 200.0, 1, made=300.0)
    answer = searched(server, task(seed_load=4000.0))
    assert answer.kept
    assert abs((answer.rate or 0) / 200.0 - 1) <= 0.1


def test_a_search_whose_interval_no_longer_shrinks_says_so() -> None:
    calm = [trial(500.0, [0.9, 1.1] * 4)] * 20
    wild = [trial(500.0, [each] * 8) for each in (0.4, 2.5) * 10]
    end = Posterior().decide(task(confidence=0.999, within=0.01), [*calm, *wild])
    assert isinstance(end, Answer)
    assert "did not narrow" in end.why


def test_a_bound_from_below_keeps_the_load_that_was_too_much() -> None:
    made = [trial(1000.0, [0.05] * 8)] * 2
    made += [trial(1100.0, [0.05] * 8, limited="generator"), trial(4000.0, [30.0] * 3)]
    end = Posterior().decide(task(), made)
    assert isinstance(end, Answer)
    assert (end.rate, end.low, end.high) == (None, 1000.0, 4000.0)


def test_when_time_is_up_the_best_is_answered_with_a_wide_interval() -> None:
    answer = searched(Server(slow, 800.0, 3), task(budget_s=900.0))
    assert not answer.kept
    assert "budget" in answer.why
    assert answer.low < 800.0 < answer.high
    assert answer.confidence < 0.95


@pytest.mark.more
def test_a_server_that_stays_slow_after_an_overload_is_named_and_not_vouched_for() -> None:
    named = 0
    for seed, peak in enumerate(peaks(8)):
        answer = searched(Server(mm1, peak, seed, mark=2.3, noise=0.1), task())
        named += "hysteretic" in {each.kind for each in answer.findings}
        assert not answer.kept or abs((answer.rate or 0) / peak - 1) <= 0.1
    assert named >= 6


@pytest.mark.more
def test_a_server_that_stalls_often_is_named() -> None:
    named = 0
    for seed, peak in enumerate(peaks(6)):
        answer = searched(Server(mm1, peak, seed, stall=0.12), task())
        named += "stalling" in {each.kind for each in answer.findings}
    assert named >= 5


def test_a_hump_below_the_peak_is_climbed_and_named() -> None:
    def hump(rho: float) -> float:
        return mm1(rho) + 1.6 * math.exp(-(((rho - 0.5) / 0.08) ** 2))

    for seed, peak in enumerate((300.0, 350.0, 350.0), 1):
        answer = searched(Server(hump, peak, seed, noise=0.1), task())
        assert answer.rate == pytest.approx(peak, rel=0.1)
        assert not answer.kept
        assert "non-monotone" in {each.kind for each in answer.findings}
    unseen = searched(Server(hump, 625.0, 2, noise=0.1), task())  # no load that is tried lies in it
    assert unseen.rate == pytest.approx(625.0, rel=0.1)


@pytest.mark.more
def test_where_no_shape_fits_a_bracket_decides_and_it_says_so() -> None:
    def steps(rho: float) -> float:
        return 0.05 if rho < 0.3 else 0.9 if rho < 0.95 else 0.9 + 2.0 * (rho - 0.95)

    for seed, peak in ((3, 400.0), (5, 400.0), (4, 500.0)):
        server = Server(steps, peak, seed, noise=0.02)
        answer = searched(server, task(budget_s=2500.0))
        assert "model-misfit" in {each.kind for each in answer.findings}
        assert not answer.kept
    decided = Posterior().decide(task(), server.made)
    assert isinstance(decided, TrialRequest)
    assert "bracket" in decided.why


@pytest.mark.more
def test_untroubled_servers_are_not_accused() -> None:
    accused = []
    for curve in CURVES:
        for seed, peak in enumerate(peaks(2, seed=1)):
            accused += searched(Server(curve, peak, 100 + seed), task()).findings
    assert accused == []


def test_answers_rest_on_enough_calm_windows_to_show_a_stall_of_one_in_twenty() -> None:
    seen = []
    for seed, peak in enumerate(peaks(6, seed=2)):
        server = Server(mm1, peak, seed)
        searched(server, task())
        seen.append(calm_windows(evidence_of(task(), server.made)))
    assert np.median(seen) >= MIN_CALM_WINDOWS
    assert np.mean(seen) >= 0.75 * CALM_WINDOWS


def test_a_trial_of_few_windows_of_which_one_stalled_is_no_overload_yet() -> None:
    policy, request = Posterior(), TrialRequest(500.0, 180.0, "")
    before = [trial(50, [0.1] * 8), trial(200, [0.15] * 8)]
    assert not policy.enough(task(), before, request, trial(500, [0.5, 50.0]).windows)
    assert policy.enough(task(), before, request, trial(500, [40.0, 50.0]).windows)


def fewest(
    policy: Posterior, trials: list[Trial], load: float, readings: Callable[[int], list[float]]
) -> int:
    """Windows after which a trial with these readings may end; 18 where none may before."""
    request = TrialRequest(load, 180.0, "")
    told = (
        n for n in range(1, 18) if policy.enough(task(), trials, request, trial(load, readings(n)).windows)
    )
    return next(told, 18)


def test_a_load_that_is_fine_is_watched_for_longer_than_one_that_is_too_much() -> None:
    assert fewest(Posterior(), [], 50, lambda n: [0.1] * n) == PASSING_WINDOWS
    assert fewest(Posterior(watched=5), [trial(50, [0.1] * 8)], 100, lambda n: [0.15] * n) == 5
    assert fewest(Posterior(), [trial(50, [0.1] * 8)], 900, lambda n: [30.0] * n) == 2


def test_loads_that_contradict_each_other_are_watched_for_longest() -> None:
    slower = [trial(100, [0.8] * 8), trial(200, [0.5] * 8)]
    assert fewest(Posterior(), slower, 200, lambda n: [0.5] * n) == MOST_LOOK_WINDOWS
    alike = [trial(100, [0.4] * 8), trial(200, [0.5] * 8)]
    assert fewest(Posterior(), alike, 200, lambda n: [0.5] * n) == LOOK_WINDOWS


def near_the_limit(windows: int = 20) -> list[Trial]:
    """With which the promise is met: of a slow ramp with its peak at 400."""
    loads = (200, 375, 400, 420)
    return [
        trial(load, [each * slow(load / 400) for each in (0.98, 1.02)] * (windows // 2)) for load in loads
    ]


def test_a_look_well_above_ends_when_its_side_is_told() -> None:
    known = near_the_limit()
    offered = Posterior().decide(task(), known)
    assert isinstance(offered, TrialRequest)
    assert "well above" in offered.why
    wild = [0.9, 2.6, 1.2, 2.4, 1.8, 1.7, 1.1, 2.5, 1.5, 2.0, 1.6, 1.9]
    assert fewest(Posterior(), known, offered.load, lambda n: wild[:n]) == LOOK_WINDOWS
    unclear = [0.7, 1.4, 0.8, 1.3, 0.9, 1.1, 1.2, 0.8, 1.0, 1.1, 0.9, 1.0]
    assert fewest(Posterior(), known, offered.load, lambda n: unclear[:n]) == MOST_LOOK_WINDOWS


def test_the_last_trial_goes_on_until_stalls_would_have_shown() -> None:
    server = Server(mm1, 400.0, 3)
    searched(server, task())
    calm = [calm_windows(evidence_of(task(), server.made[: n + 1])) for n in range(len(server.made))]
    place = next(n for n, windows in enumerate(calm) if windows >= CALM_WINDOWS)
    before, last = server.made[:place], server.made[place]
    request = TrialRequest(last.load, 180.0, "")
    shorter = last.windows[:-1]
    assert not Posterior().enough(task(), before, request, shorter)
    longer = replace(before[0], windows=before[0].windows * 2)
    assert Posterior().enough(task(), [longer, *before[1:]], request, shorter)


def test_a_peak_stands_where_a_stall_now_and_then_is_left_out_and_not_where_they_carry_the_mean() -> None:
    rare, often = Server(mm1, 400.0, 9, stall=0.05), Server(mm1, 400.0, 0, stall=0.05)
    one, other = searched(rare, task()), searched(often, task())
    assert {each.kind for each in (*one.findings, *other.findings)} == {"stalling"}
    assert one.kept
    assert one.rate == pytest.approx(400, rel=0.1)
    assert not other.kept
    calm = [trial(390, [0.95] * 20), trial(396, [0.98] * 20), trial(410, [1.3] * 8), trial(800, [30.0] * 3)]
    stalled = [trial(100, [0.1] * 11 + [0.65]), *calm]
    (finding,) = findings(task(), stalled)
    assert stalls_share(stalled) < MOST_STALLED
    assert is_answer_robust(task(), stalled, TargetCheck(398.0, 0.97, True), finding)
    assert not is_answer_robust(task(), stalled, TargetCheck(330.0, 0.97, True), finding)
    often_so = [trial(100, [0.1] * 10 + [3.0] * 2), *calm]
    assert stalls_share(often_so) > MOST_STALLED
    assert not is_answer_robust(
        task(), often_so, TargetCheck(398.0, 0.97, True), findings(task(), often_so)[0]
    )


def stalls_share(trials: list[Trial]) -> float:
    return diagnostics.stalled_share(task(), trials)


def test_a_peak_stands_where_above_it_less_is_answered_and_not_where_a_lower_load_is_slower() -> None:
    failed = Window(10.0, 6000, 2000, 4000, 0.03)
    thrashing = [trial(400, [0.9] * 8), Trial(600, 180.0, (failed,) * 4, 210.0, "early", "server")]
    (finding,) = findings(task(), thrashing)
    assert finding.kind == "non-monotone"
    assert is_answer_robust(task(), thrashing, TargetCheck(405.0, 0.97, True), finding)
    dip = [trial(load, [reading] * 12) for load, reading in ((100, 0.8), (200, 0.3)) for _ in range(2)]
    (finding,) = findings(task(), dip)
    assert finding.kind == "non-monotone"
    assert not is_answer_robust(task(), dip, TargetCheck(405.0, 0.97, True), finding)


def test_before_an_answer_a_load_well_above_is_tried_where_requests_failed(golden: Golden) -> None:
    shed = tuple(Window(10.0, 4800, 3900, 900, 0.03) for _ in range(4))
    overload = Trial(480, 180.0, shed, 210.0, "early", "server")
    made = [*near_the_limit(), overload, near_the_limit()[1]]
    offered = Posterior().decide(task(), made)
    assert isinstance(offered, TrialRequest)
    assert offered.load > 480
    golden(offered.why)


def test_where_requests_failed_in_an_overload_a_load_well_above_is_tried() -> None:
    failed = tuple(Window(10.0, 4500, 3900, 600, 0.03) for _ in range(4))
    made = [trial(400, [0.8] * 8), Trial(450, 180.0, failed, 210.0, "early", "server")]
    offered = shedding_check(task(), made, 420.0, 5000.0)
    assert offered is not None
    assert offered.load == pytest.approx(630)
    assert shedding_check(task(), [*made, trial(640, [3.0] * 2)], 420.0, 5000.0) is None
    queued = tuple(Window(10.0, 4500, 3900, 0, 0.03) for _ in range(4))
    assert (
        shedding_check(task(), [made[0], Trial(450, 180.0, queued, 210.0, "early", "server")], 420.0, 5000.0)
        is None
    )


def test_whole_loads_are_whole() -> None:
    server = Server(mm1, 23.4, 2)
    answer = searched(server, task(lowest=1.0, highest=200.0, whole=True))
    assert all(each.load == int(each.load) for each in server.made)
    assert answer.rate in (22.0, 23.0, 24.0, 25.0)
    assert answer.kept


def test_percentiles_are_searched_for_as_means_are() -> None:
    goal = Goal((Criterion("percentile", 0.040, 95), Criterion("errors", 0.01)))

    class Histograms(Server):
        def run(self, request, enough):  # type: ignore[no-untyped-def]
            told = super().run(request, lambda windows: enough([with_counts(each) for each in windows]))
            self.made[-1] = replace(told, windows=tuple(with_counts(each) for each in told.windows))
            return self.made[-1]

    def with_counts(window: Window) -> Window:
        values = np.array([0.3e9, 1.0e9]) * (window.mean_s or 0.0)
        return replace(window, mean_s=None, latency=Histogram(values.astype(np.int64), np.array([90, 10])))

    answer = searched(Histograms(knee, 300.0, 1), task(goal=goal))
    assert answer.kept
    assert answer.rate == pytest.approx(300.0, rel=0.1)


def test_a_trial_whose_side_is_clear_ends_early_and_one_near_the_limit_goes_on() -> None:
    policy, request = Posterior(), TrialRequest(500.0, 180.0, "")
    before = [trial(50, [0.1] * 2), trial(200, [0.15] * 6)]
    assert policy.enough(task(), before, request, trial(500, [40.0, 45.0]).windows)
    assert not policy.enough(task(), before, request, trial(500, [1.1, 0.9, 1.05, 0.97]).windows)
    assert not policy.enough(task(), before, request, trial(500, [40.0]).windows)


def test_trials_that_tell_nothing_count_for_nothing() -> None:
    known = evidence_of(task(), [trial(50, []), trial(60, [0.2, 0.2], limited="generator"), trial(70, [0.2])])
    assert [(each.load, each.order) for each in known] == [(70, 2)]


@pytest.mark.more
def test_a_predicted_peak_takes_few_short_trials() -> None:
    for seed, peak in enumerate(peaks(6)):
        server = Server(mm1, peak, seed)
        answer = searched(server, task(seed_load=0.97 * peak, seed_spread=0.05))
        assert answer.kept
        assert answer.rate is not None
        assert abs(answer.rate / peak - 1) <= 0.1
        assert len(server.made) <= 5


def test_a_prediction_that_counts_as_a_trial_spares_some_and_does_not_mislead_where_it_is_wrong() -> None:
    counted = not_counted = 0.0
    for seed, peak in enumerate(peaks(6)):
        seeded = task(seed_load=0.97 * peak, seed_spread=0.05)
        for off, what in ((0.97, seeded), (1.3, replace(seeded, seed_load=1.3 * peak))):
            server, other = Server(mm1, peak, seed), Server(mm1, peak, seed)
            answer = searched(server, replace(what, seed_trials=1))
            assert answer.kept
            assert answer.rate is not None
            assert abs(answer.rate / peak - 1) <= 0.1, off
            searched(other, what)
            if off < 1:
                counted, not_counted = (
                    counted + benchmarking_time_s(server.made),
                    not_counted + benchmarking_time_s(other.made),
                )
    assert counted < 0.8 * not_counted


@pytest.mark.more
def test_a_prediction_that_is_wrong_costs_time_and_not_the_answer() -> None:
    for seed, peak in enumerate(peaks(4)):
        answer = searched(Server(mm1, peak, seed), task(seed_load=1.6 * peak, seed_spread=0.05))
        assert answer.rate is not None
        assert abs(answer.rate / peak - 1) <= 0.1


@pytest.mark.more
def test_shapes_of_similar_configurations_save_trials() -> None:
    first = Server(slow, 400.0, 1)
    searched(first, task())
    known = posterior_of(task(), evidence_of(task(), first.made)).shapes()
    spared = 0.0
    for seed, peak in enumerate(peaks(8), 2):
        seeded = task(seed_load=0.97 * peak, seed_spread=0.05)
        without, told = Server(slow, peak, seed), Server(slow, peak, seed)
        searched(without, seeded)
        searched(told, replace(seeded, seed_shapes=known))
        spared += benchmarking_time_s(without.made) - benchmarking_time_s(told.made)
    assert spared > 0


def test_a_whole_rate_below_the_interval_of_the_belief_is_in_its_own() -> None:
    what = task(whole=True, closed=True, lowest=1.0, highest=800.0)
    made = [
        trial(load, [reading] * 8) for load, reading in ((60.0, 0.8), (60.0, 0.8), (75.0, 1.4), (75.0, 1.4))
    ]
    belief = posterior_of(what, evidence_of(what, made))
    low = belief.quantile(0.05)
    answer = answer_of(what, made, belief, TargetCheck(math.floor(low) - 1.0, 0.9, True), "")
    assert answer.rate is not None
    assert answer.low <= answer.rate <= answer.high


def test_the_rate_is_in_its_interval() -> None:
    for seed in range(4):
        (peak,) = peaks(1, seed)
        answer = searched(Server(knee, peak, seed), task(within=0.3))
        assert answer.rate is not None
        assert answer.low <= answer.rate <= answer.high
