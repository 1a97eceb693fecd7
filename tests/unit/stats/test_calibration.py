"""The factors of the stop rules: what the calibration wrote is what the code has, and it covers."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest

from etude.stats.factors import MEAN_FACTORS, RATIO_FACTORS
from etude.stats.intervals import mean_interval
from etude.stats.ratio import paired_mean_ratio
from etude.stats.stopping import MeanPrecision, RatioPrecision, SamplesSoFar
from support.extracts import tables, unrecorded
from support.places import BENCH, DOCS
from support.simulated_rules import mean_stops, ratio_stops
from support.synthetic_series import MACHINES, OWN, REFERENCE, deal_into_blocks, lognormal, normal

PAGE = (DOCS / "explanation" / "calibration.md").read_text(encoding="utf-8")
RESULTS = (BENCH / "calibration" / "results.md").read_text(encoding="utf-8")
REPLICATIONS = 6000
FOUR_ERRORS = 4.0 * math.sqrt(0.95 * 0.05 / REPLICATIONS)


@pytest.mark.parametrize("text", [PAGE, RESULTS], ids=["page", "results"])
@pytest.mark.parametrize(("name", "factors"), [("mean", MEAN_FACTORS), ("ratio", RATIO_FACTORS)])
def test_the_code_has_the_factors_that_the_calibration_states(name, factors, text):
    (line,) = re.findall(rf"^factors {name}: (.+)$", text, re.MULTILINE)
    stated = [pair.split(":") for pair in line.split()]
    assert [(int(minimum), float(factor)) for minimum, factor in stated] == list(factors)


def test_the_tables_of_the_page_are_parts_of_those_that_were_simulated():
    assert len(tables(PAGE)) >= 8
    assert unrecorded(PAGE, RESULTS) == []


def test_most_of_the_series_that_show_a_change_within_three_seconds_are_warned_of():
    _, section = RESULTS.split("## 6. ")
    rows = [
        re.split(r" *\| *", line)[1:-1] for line in section.splitlines() if re.search(r"\| \d+ ms \|", line)
    ]
    short = [row for row in rows if int(row[1].split()[0]) <= 100 and not row[0].startswith("steady")]
    assert len(short) == 15
    assert min(int(row[7].split()[0]) for row in short) >= 90
    assert min(int(row[4].split()[0]) for row in short) < 80, "fewer where a rule may end at once"


@pytest.mark.parametrize("minimum", [10, 5, 3, 2])
@pytest.mark.parametrize("cv", [0.05, 0.08, 0.10])
def test_the_mean_is_covered_with_the_factor(minimum, cv):
    trials = normal(cv)(np.random.default_rng(minimum), REPLICATIONS, 50)
    assert mean_stops(trials, MeanPrecision(minimum=minimum)).covers(1.0) > 0.95 - FOUR_ERRORS


@pytest.mark.parametrize("minimum", [5, 3, 2])
def test_the_mean_is_not_covered_without_the_factor(minimum):
    trials = normal(0.08)(np.random.default_rng(minimum), REPLICATIONS, 50)
    assert mean_stops(trials, MeanPrecision(minimum=minimum), factor=1.0).covers(1.0) < 0.95 - FOUR_ERRORS


@pytest.mark.parametrize("minimum", [10, 5, 3, 2])
@pytest.mark.parametrize("draw", [normal(0.02), normal(0.03), lognormal(0.03)])
def test_the_ratio_is_covered_with_the_factor(minimum, draw):
    blocks = draw(np.random.default_rng(minimum), 2 * REPLICATIONS, 50).reshape(2, REPLICATIONS, 50)
    blocks[1] *= 1.05
    stops = ratio_stops(blocks, RatioPrecision(minimum=minimum))
    assert stops.covers(math.log(1.05)) > 0.95 - FOUR_ERRORS


@pytest.mark.parametrize("minimum", [5, 3, 2])
def test_the_ratio_is_not_covered_without_the_factor(minimum):
    blocks = normal(0.02)(np.random.default_rng(minimum), 2 * REPLICATIONS, 50).reshape(2, REPLICATIONS, 50)
    rule = RatioPrecision(minimum=minimum)
    assert ratio_stops(blocks, rule, factor=1.0).covers(0.0) < 0.95 - FOUR_ERRORS


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_identical_tests_differ_falsely_in_one_of_twenty_at_most(machine):
    rng = np.random.default_rng(11)
    trials = machine.draw(rng, REPLICATIONS, 102) * normal(0.02)(rng, REPLICATIONS, 102)
    stops = ratio_stops(deal_into_blocks(rng, trials, 2)[..., 1:], RatioPrecision())
    assert 1.0 - stops.covers(0.0) < 0.05 + FOUR_ERRORS


@pytest.mark.parametrize("series", [*REFERENCE, *OWN], ids=lambda series: series.name)
def test_the_simulated_rule_on_means_stops_where_the_rule_stops(series):
    rule = MeanPrecision(minimum=5, maximum=20)
    trials = series.draw(np.random.default_rng(7), 6, 20)
    stops = mean_stops(trials, rule)
    for x, count, centre, half, converged in zip(
        trials, stops.count, stops.centre, stops.half, stops.converged, strict=True
    ):
        decisions = [rule.decide(SamplesSoFar((x[:n],))) for n in range(1, count + 1)]
        assert [d.enough for d in decisions] == [False] * (count - 1) + [True]
        assert decisions[-1].converged == converged
        interval = mean_interval(x[:count], factor=rule.factor)
        assert (interval.low, interval.high) == pytest.approx((centre - half, centre + half))


def test_the_simulated_rule_on_ratios_stops_where_the_rule_stops():
    rule = RatioPrecision(precision=0.03, minimum=5, maximum=20)
    blocks = lognormal(0.03)(np.random.default_rng(8), 60, 20).reshape(3, 20, 20)
    stops = ratio_stops(blocks, rule)
    for i, (count, converged) in enumerate(zip(stops.count, stops.converged, strict=True)):
        decisions = [rule.decide(SamplesSoFar(tuple(blocks[:, i, :n]))) for n in range(1, count + 1)]
        assert [d.enough for d in decisions] == [False] * (count - 1) + [True]
        assert decisions[-1].converged == converged
        for k in (0, 1):
            alone = paired_mean_ratio(blocks[0, i, :count], blocks[k + 1, i, :count], factor=rule.factor)
            ratio = alone.among(2)
            centre, half = stops.centre[k, i], stops.half[k, i]
            assert (ratio.low, ratio.high) == pytest.approx(
                (math.exp(centre - half), math.exp(centre + half))
            )


@pytest.mark.parametrize("series", [*REFERENCE, *OWN], ids=lambda series: series.name)
def test_every_series_has_the_mean_it_states(series):
    late = series.draw(np.random.default_rng(9), 4000, 101)[:, 50:]
    assert (late > 0.0).all()
    if series.mean is not None:
        assert late.mean() == pytest.approx(series.mean + 75.0 * series.drift, abs=0.004)


def test_blocks_hold_every_trial_once_and_in_random_order():
    trials = np.arange(24.0).reshape(2, 12)
    blocks = deal_into_blocks(np.random.default_rng(10), trials, 3)
    assert blocks.shape == (3, 2, 4)
    for series in range(2):
        for block in range(4):
            expected = trials[series, 3 * block : 3 * block + 3]
            assert sorted(blocks[:, series, block]) == list(expected)
    many = deal_into_blocks(np.random.default_rng(10), np.tile(np.arange(2.0), (4000, 1)), 2)
    assert many[0].mean() == pytest.approx(0.5, abs=0.04)


def test_the_interactive_path_does_not_wait_for_scipy_stats():
    program = (
        "import sys, numpy as np\n"
        "from etude.stats import describe, ratio, stopping\n"
        "x = np.linspace(1.0, 1.1, 20)\n"
        "stopping.RatioPrecision().decide(stopping.SamplesSoFar((x, x)))\n"
        "stopping.MeanPrecision().decide(stopping.SamplesSoFar((x,)))\n"
        "describe.describe(x), ratio.unpaired_ratio(x, x)\n"
        "print([m for m in sys.modules if m.startswith(('scipy.stats', 'scipy.optimize'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
