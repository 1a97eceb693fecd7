"""docs/explanation/statistics.md: it names every function, its tables are parts of those that were simulated, and its
*equals* hold."""

import ast
import re

import numpy as np
import pytest
from scipy import stats

from etude.stats.describe import describe
from etude.stats.factors import MEAN_FACTORS, RATIO_FACTORS
from etude.stats.intervals import mean_interval
from etude.stats.planning import noise_of_pairs, plan_for_effect
from etude.stats.predicate import figures
from etude.stats.ratio import paired_ratio
from support.extracts import tables, unrecorded
from support.places import ROOT

PAGE = (ROOT / "docs" / "explanation" / "statistics.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "bench" / "statistics" / "results.md").read_text(encoding="utf-8")
FUNCTIONS = sorted(
    f"{path.stem}.{node.name}"
    for path in (ROOT / "src" / "etude" / "stats").rglob("*.py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
)


def test_every_public_function_is_named():
    assert [name for name in FUNCTIONS if f"`{name}`" not in PAGE] == []


def test_no_function_is_named_that_there_is_not():
    modules = {name.partition(".")[0] for name in FUNCTIONS} | {"stopping"}
    classes = {
        "stopping.MeanPrecision",
        "stopping.RatioPrecision",
        "stopping.TimeBudget",
        "stopping.FixedCount",
    }
    named = {
        name for name in re.findall(r"`([a-z]+\.[A-Za-z_]+)`", PAGE) if name.partition(".")[0] in modules
    }
    assert named - set(FUNCTIONS) - classes == set()


def test_the_tables_are_those_that_were_simulated():
    _, simulated = PAGE.split("\n## What the rules find, and what they find falsely\n")
    assert len(tables(simulated)) == 4
    assert unrecorded(simulated, RESULTS) == []


def test_a_figure_that_was_not_simulated_is_found():
    recorded = "| series | n = 10 | n = 30 |\n|---|---|---|\n| normal | 95.4 (7) | 95.1 |\n"
    assert unrecorded("| series | n = 10 |\n|---|---|\n| normal | 95.4 |\n", recorded) == []
    assert unrecorded("| series | n = 10 |\n|---|---|\n| normal | 95.1 |\n", recorded) == ["normal | 95.1"]


def test_the_page_states_the_rules_as_they_are():
    (mean,) = re.findall(
        r"intervals × ([0-9.]+) \(minimum 10\), ([0-9.]+) \(5\), ([0-9.]+) \(3\), ([0-9.]+) \(2\)", PAGE
    )
    assert tuple(map(float, mean)) == tuple(factor for _, factor in MEAN_FACTORS)
    assert re.findall(r"× ([0-9.]+), first block", PAGE) == [f"{RATIO_FACTORS[0][1]:.2f}"]


@pytest.mark.parametrize("seed", range(3))
def test_what_is_said_to_equal_a_library_does(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(10.0, 1.0, 12)
    x = x[np.argsort(np.arange(12) % 2)]  # neighbours alternate: no dependence is found
    interval = mean_interval(x)
    expected = stats.ttest_1samp(x, 0.0).confidence_interval()
    assert describe(x).effective_count == 12
    assert (interval.low, interval.high) == pytest.approx(tuple(expected))
    y = x * np.exp(rng.normal(0.1, 0.05, 12))
    ratio = paired_ratio(x, y)
    paired = stats.ttest_rel(np.log(y), np.log(x))
    limits = paired.confidence_interval()
    assert (ratio.low, ratio.high) == pytest.approx((np.exp(limits.low), np.exp(limits.high)))
    assert ratio.p == pytest.approx(paired.pvalue)
    assert describe(x).quartiles == pytest.approx(tuple(np.quantile(x, (0.25, 0.75))))
    assert figures(x).slope == pytest.approx(stats.linregress(np.arange(12), x).slope)
    plan = plan_for_effect(noise_of_pairs(x, y, seconds_per_trial=1.0), 0.05)
    spread = np.std(np.log(y / x), ddof=1)
    powers = [
        stats.nct.sf(stats.t.isf(0.025, n - 1), n - 1, np.log(1.05) * np.sqrt(n) / spread)
        for n in (plan.trials - 1, plan.trials)
    ]
    assert powers[0] < 0.8 <= powers[1]
