"""bench/peak/run.py: servers follow from the seed, what searches came to is judged and laid out right."""

import importlib
import math
import subprocess
import sys
from dataclasses import replace

import pytest

from etude.peak.task import Answer
from support.places import BENCH
from support.standin import StandIn, queue, task, trial

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    peer, searches, peak = map(importlib.import_module, ("peak.mlrsearch_peer", "peak.searches", "peak.run"))

GOOD = searches.Outcome(1.0, 5, 0, 0.01, True, True, True, frozenset(), (0.001,))


def outcomes(n=20, **changes):
    return [replace(GOOD, **changes)] * n


def verdicts(found, curves=("mm1", "ramp")):
    """Of rows by what is to be reached, where no two are to reach the same."""
    return {row.reach: row.reached for row in peak.reached(found, curves, ())}


def in_trouble(found, *troubled):
    """Of rows about these servers, by what is to be reached."""
    rows = peak.in_trouble(found, ("mm1", "ramp"), troubled)
    return {(row.what.partition(":")[0], row.reach): row.reached for row in rows}


def everywhere(curves=("mm1", "ramp"), **parties):
    """By party the hours of a search."""
    names = {"ours_region": "ours+region", "linear_seed": "linear+seed", "binsearch_seed": "binsearch+seed"}
    return {
        (names.get(party, party), curve): outcomes(hours=hours)
        for party, hours in parties.items()
        for curve in curves
    }


def test_a_number_has_one_server_for_all_parties():
    drawn = [searches.drawn(party, "knee", 11, 3) for party in searches.PARTIES.values()]
    assert len({server.peak for server, _ in drawn}) == 1
    server, seeded = searches.drawn(searches.PARTIES["ours+seed"], "knee", 11, 3)
    assert 150 <= server.peak <= 1500
    assert 1 / 1.5 <= seeded.seed_load / server.peak <= 1.5
    assert {of.seed_load for _, of in drawn} == {None, seeded.seed_load}
    others = [
        searches.drawn(searches.PARTIES["ours"], *rest)[0].peak for rest in (("mm1", 11, 3), ("knee", 12, 3))
    ]
    assert server.peak not in others


def test_the_same_seed_finds_the_same():
    party = searches.PARTIES["binsearch"]
    one, again = (searches.outcome(party, "mm1", 5, 2, None) for _ in range(2))
    assert replace(one, decisions_s=()) == replace(again, decisions_s=())
    assert one.hours == pytest.approx(one.trials * 350 / 3600)
    assert len(one.decisions_s) == one.trials * (1 + 17) + 1


def test_all_jobs_together_are_all_searches():
    parties = [searches.PARTIES[name] for name in ("strawman", "linear")]
    found = [
        (job.party, job.curve, n)
        for job in searches.jobs(parties, ["a", "b"], 1, 25, None)
        for n in job.numbers
    ]
    assert len(found) == len(set(found)) == 2 * (2 + 25)


@pytest.mark.parametrize(
    ("rate", "low", "high", "error", "held"),
    [
        (500, 450, 550, 0.0, True),
        (560, 510, 600, 0.12, False),
        (400, 390, 410, -0.2, False),
        (None, 0, 700, None, True),
    ],
    ids=["right", "above", "below", "none"],
)
def test_an_answer_is_judged_by_the_truth(rate, low, high, error, held):
    server = searches.SimulatedServer(searches.CURVES["mm1"], 500.0, 1)
    judged = searches.judged(Answer(rate, low, high, 0.95, True, ""), server, [trial(500, 1.0)] * 3, [])
    assert judged.error == (None if error is None else pytest.approx(error))
    assert (judged.held, judged.right, judged.trials) == (held, rate == 500, 3)
    assert judged.hours == pytest.approx(3 * 350 / 3600)
    assert judged.in_region == (rate == 500)


def test_of_a_server_that_drifts_every_peak_that_it_had_is_true():
    server = searches.SimulatedServer(searches.TROUBLED["drifting"], 500.0, 1)
    server.drain(3600.0)
    assert server.peak_now < 450

    def error(rate):
        return searches.judged(Answer(rate, 0, math.inf, 0.95, True, ""), server, [], []).error

    assert error(450) == 0
    assert error(550) == pytest.approx(0.1)
    assert error(server.peak_now / 2) == pytest.approx(-0.5)


def test_hours_are_judged_against_both_peers():
    found = everywhere(binsearch=2.0, mlrsearch=0.8, ours=0.39)
    rows = verdicts(found)
    assert rows["≤ 0.20 ×"] is True, "of the hours of binsearch"
    assert rows["≤ 0.6 ×"] is True, "of the hours of MLRsearch"
    assert rows["≤ 0.5 ×"] is True, "without the flat curve"
    rows = verdicts(found | {("ours", "ramp"): outcomes(hours=0.6)})
    assert rows["≤ 0.20 ×"] is False
    assert rows["≤ 0.6 ×"] is False
    assert rows["≤ 0.5 ×"] is True


def test_the_worst_curve_is_judged():
    found = everywhere(binsearch=2.0, mlrsearch=0.8, ours=0.3)
    assert verdicts(found)["higher"] is False  # not higher than the peer's
    found["mlrsearch", "ramp"] = outcomes(10) + outcomes(10, error=-0.2)
    assert verdicts(found)["higher"] is True
    found["ours", "mm1"] = outcomes(18) + outcomes(2, error=None)
    judged = [row for row in peak.reached(found, ("mm1", "ramp"), ()) if "worst curve" in row.what]
    assert [(row.reached, row.value) for row in judged] == [
        (False, "90.0 % (mm1)"),
        (True, "90.0 % (mm1); 50.0 % (ramp)"),
    ]


def test_the_region_promise_is_judged_where_no_server_stalls():
    curves = ("mm1", "tail")
    found = everywhere(curves, binsearch=2.0, ours_region=1.0)
    found["ours+region", "tail"] = outcomes(in_region=False, hours=9.0)
    rows = verdicts(found, curves)
    assert (rows["≥ 95 %"], rows["≤ 0.7 ×"]) == (True, True)
    found["ours+region", "mm1"] = outcomes(18, hours=1.5) + outcomes(2, in_region=False, hours=1.5)
    rows = verdicts(found, curves)
    assert (rows["≥ 95 %"], rows["≤ 0.7 ×"]) == (False, False)


def test_trouble_has_to_be_named_as_what_it_is():
    found = everywhere(ours=1.0)
    found["ours", "stalling"] = outcomes(18, kinds=frozenset({"stalling"})) + outcomes(2, kinds=frozenset())
    found["ours", "hysteretic"] = outcomes(20, kinds=frozenset({"drifting"}), error=0.3)
    rows = in_trouble(found, "stalling", "hysteretic")
    named, lies = "≥ 90 %", "≤ 5 %"
    assert rows["stalling", named] is True
    assert rows["stalling", lies] is True
    assert rows["hysteretic", named] is False
    assert rows["hysteretic", lies] is False
    found["ours", "hysteretic"] = outcomes(20, kinds=frozenset({"drifting"}), error=0.3, kept=False)
    assert in_trouble(found, "hysteretic")["hysteretic", lies] is True


def test_a_dip_below_the_loads_that_are_offered_need_not_be_named():
    named = replace(GOOD, kinds=frozenset({"non-monotone"}))
    assert peak.named("non-monotone", [named, replace(GOOD, shows=False)]) == 100
    assert peak.named("non-monotone", [named, GOOD]) == 50
    assert peak.named("thrashing", [named, replace(GOOD, shows=False)]) == 50


def test_a_dip_shows_where_the_lowest_load_is_slower_than_one_below_the_peak():
    curve = searches.TROUBLED["non-monotone"]
    assert searches.shows(searches.SimulatedServer(curve, 1000.0, 1, limit_s=searches.LIMIT_S))
    assert not searches.shows(searches.SimulatedServer(curve, 151.0, 1, limit_s=searches.LIMIT_S))


def test_trouble_that_is_named_where_there_is_none_is_told():
    found = everywhere(ours=1.0)
    found["ours", "mm1"] = outcomes(10) + outcomes(10, kinds=frozenset({"stalling", "model-misfit"}))
    found["ours", "ramp"] = outcomes(20, kinds=frozenset({"model-misfit"}))
    (row,) = [row for row in peak.reached(found, ("mm1", "ramp"), ()) if "there is none" in row.what]
    assert (row.value, row.reached) == ("25.0 %", None)


def test_a_late_decision_is_judged_by_a_tenth_of_a_window():
    found = everywhere(ours=1.0)
    assert verdicts(found)["≤ 0.1 s"] is True
    found["ours", "mm1"] = outcomes(20, decisions_s=(0.001, 0.2))
    assert verdicts(found)["≤ 0.1 s"] is False


def test_the_papers_ordering_is_judged():
    found = everywhere(linear=4.0, linear_seed=2.0, binsearch=2.0, binsearch_seed=1.5, model=2.0)
    found["model", "ramp"] = outcomes(hours=5.0)
    rows = verdicts(found)
    assert list(rows.values()) == [True, True, True]
    found |= everywhere(linear=2.5, linear_seed=2.6, model=2.0)
    assert list(verdicts(found).values()) == [False, False, False]


def test_the_page_has_a_column_for_each_curve_and_one_for_all():
    found = everywhere(binsearch=2.0, linear=4.0)
    judged = peak.verdicts(found, ("mm1", "ramp"), (), 60.0, False)
    text = peak.page(found, ("mm1", "ramp"), (), ["- here"], judged)
    assert "| policy | mm1 | ramp | sum |" in text
    assert "| linear | 4.00 | 4.00 | 8.00 |" in text
    assert "| linear | 2.00 | 2.00 | 2.00 | 1.00 | 100 | 0 |" in text
    assert "| – | 1.0 min | ≤ 40 min | yes |" in text
    assert ": mm1, ramp; others: none" in text


def test_few_searches_judge_nothing():
    found = everywhere(binsearch=2.0, ours=1.0)
    assert False in {row.reached for row in peak.verdicts(found, ("mm1", "ramp"), (), 60.0, False)}
    assert {row.reached for row in peak.verdicts(found, ("mm1", "ramp"), (), 60.0, True)} == {None}


def test_a_bench_that_takes_too_long_is_told():
    assert [row.reached for row in peak.verdicts({}, (), (), 2401.0, False)] == [False]


def test_fewer_searches_are_compared_with_those_on_the_same_servers():
    found = {
        ("strawman", "mm1"): outcomes(2, hours=40.0),
        ("binsearch", "mm1"): outcomes(2, hours=4.0) + outcomes(18),
    }
    assert peak.ratio(found, "strawman", "binsearch", ["mm1"]) == pytest.approx(10)
    assert peak.ratio(found, "binsearch", "strawman", ["mm1"]) == pytest.approx(0.1)


@pytest.mark.parametrize(("server", "kinds"), peak.NAMES.items(), ids=peak.NAMES)
def test_each_troubled_server_has_a_name_for_its_trouble(server, kinds):
    assert server in searches.TROUBLED
    assert kinds


def test_no_troubled_server_is_without_one():
    assert set(peak.NAMES) == set(searches.TROUBLED)


def windows(offered, completed, mean_s):
    window = trial(100, 1.0).windows[0]
    return (replace(window, offered=offered, completed=completed, mean_s=mean_s),)


def test_a_trial_above_the_limit_is_one_with_loss():
    def lost(**of):
        return peer.lost(task(), trial(100, 1.0, windows=windows(**of)))

    assert lost(offered=1000, completed=1000, mean_s=0.04) == 0
    assert lost(offered=1000, completed=900, mean_s=0.03) == 0
    assert lost(offered=1000, completed=1000, mean_s=0.041) == 1
    assert lost(offered=1000, completed=250, mean_s=2.0) == 750_000


@pytest.fixture(scope="module")
def place():
    found = peer.BUILD / peer.PINNED.replace("==", "-")
    if not (found / "MLRsearch").is_dir():
        pytest.skip("MLRsearch is not installed: python bench/peak/run.py --quick does that")
    return found


def test_mlrsearch_bounds_the_peak_of_a_queue(place):
    bench = StandIn(queue(437.0))
    answer = peer.search(place, task(), bench)
    assert answer.low <= 437 <= answer.high
    assert answer.high / answer.low <= 1.06
    assert answer.rate == (answer.low + answer.high) / 2
    assert bench.offers[0].load == 5000
    assert {offer.runlength_s for offer in bench.offers} == {180.0}


def test_mlrsearch_knows_no_bound_beyond_its_loads(place):
    answer = peer.search(place, task(), StandIn(lambda load: 0.2))
    assert (answer.rate, answer.high, answer.kept) == (None, math.inf, False)
    answer = peer.search(place, task(), StandIn(lambda load: 2.0))
    assert (answer.rate, answer.low, answer.kept) == (None, 0.0, False)


def command(*options):
    words = [sys.executable, str(BENCH / "peak" / "run.py"), *options]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_command_prints_its_seed_and_records_the_page(tmp_path):
    record = tmp_path / "page.md"
    options = ("--parties", "binsearch,linear", "--curves", "mm1,knee,hysteretic", "--processes", "1")
    done = command(*options, "--searches", "2", "--seed", "9", "--record", str(record))
    assert done.returncode == 0, done.stderr
    assert done.stdout == record.read_text(encoding="utf-8")
    assert "--seed 9" in done.stdout
    assert "| binsearch | 0 |" in done.stdout


@pytest.mark.parametrize(
    "options",
    [("--parties", "fastest"), ("--curves", "mm1,mm2"), ("--searches", "0"), ("--seed", "-1")],
    ids=["parties", "curves", "searches", "seed"],
)
def test_what_cannot_be_meant_is_said(options):
    done = command(*options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
