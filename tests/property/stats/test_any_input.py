"""Whatever finite numbers are given: an answer without NaN, or one line that says why there is none."""

import dataclasses
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etude.stats import (
    cross_session,
    describe,
    equivalence,
    means,
    ranks,
    ratio,
    trend,
    twosample,
    warmup,
)
from etude.stats.levels import split_variance
from etude.stats.planning import (
    noise_of_pairs,
    noise_of_trials,
    plan_for_deadline,
    plan_for_effect,
    trials_for_mean,
)
from etude.stats.resampling import bootstrap_ratio, permutation
from etude.stats.shape import groups, normality, ticks
from etude.stats.trend import slope_interval
from support.profiles import examples

usual = st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float)
extreme = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(1e-9, 1e9) | st.integers(1, 3).map(float)
huge = st.floats(5e-324, 1.7e308)
equal = st.tuples(extreme, st.integers(0, 40)).map(lambda pair: [pair[0]] * pair[1])


def samples(*values):
    return st.one_of(*(st.lists(v, max_size=45) for v in values), equal)


FAR_APART = [1.7e308, -1.7e308, 5e-324, 0.0, 1.6e308, -1.5e308] * 2

anything = samples(usual, positive, extreme, huge)


def plan(noise):
    return plan_for_effect(noise, 0.01), plan_for_deadline(noise, 2.0)


ONE_SAMPLE = {
    "level_shift": warmup.level_shift,
    "no_steady_state_p": lambda x: warmup.no_steady_state_p(x, warmup.level_shift(x)),
    "change_points": warmup.change_points,
    "groups": groups,
    "normality": normality,
    "ticks": ticks,
    "slope_interval": slope_interval,
    "leak": trend.leak,
    "drift": trend.drift,
    "drift by least squares": lambda x: trend.drift(x, method="least squares"),
    "percentiles": describe.percentiles,
    "quartiles": describe.quartiles,
    "trimmed_mean": lambda x: describe.trimmed_mean(x, 0.1),
    "error_bar": lambda x: describe.error_bar(x, "deviation"),
    "cost": lambda x: means.average(x, "cost"),
    "rate": lambda x: means.average(x, "rate"),
    "ratio": lambda x: means.average(x, "ratio"),
    "binary": lambda x: means.average(x, "binary"),
    "plan": lambda x: plan(noise_of_trials(x, seconds_per_trial=1.0)),
    "trials_for_mean": lambda x: trials_for_mean(x, 0.01),
    "split": lambda x: split_variance(
        x, {"sitting": [i % 3 for i in range(len(x))], "boot": [i % 2 for i in range(len(x))]}
    ),
}

TWO_SAMPLES = {
    "welch": twosample.welch,
    "student": twosample.student,
    "smallest_found": lambda a, b: twosample.welch(a, b).smallest_found(),
    "f_test": twosample.f_test,
    "levene": twosample.levene,
    "t_test_by_variance": twosample.t_test_by_variance,
    "mann_whitney": ranks.mann_whitney,
    "mann_whitney, ratio": lambda a, b: ranks.mann_whitney(a, b, ratio=True),
    "wilcoxon": ranks.wilcoxon,
    "equivalence_of": lambda a, b: equivalence.equivalence_of(ratio.unpaired_mean_ratio(a, b)),
    "equivalence_of, pairs": lambda a, b: equivalence.equivalence_of(ratio.paired_mean_ratio(*_paired(a, b))),
    "plan": lambda a, b: plan(noise_of_pairs(*_paired(a, b), seconds_per_trial=1.0)),
    "permutation": lambda a, b: permutation(a, b, resamples=19),
    "bootstrap_ratio": lambda a, b: bootstrap_ratio(a, b, resamples=19),
    "bootstrap_ratio, BCa": lambda a, b: bootstrap_ratio(a, b, resamples=19, method="BCa", of="mean"),
    "compare_sittings": lambda a, b: cross_session.compare_sessions(
        a, b, cross_session.between_sessions([a, b, a, b])
    ),
}


def _paired(a, b):
    n = min(len(a), len(b))
    return a[:n], b[:n]


def numbers_in(result):
    if dataclasses.is_dataclass(result):
        for field in dataclasses.fields(result):
            yield from numbers_in(getattr(result, field.name))
    elif isinstance(result, tuple):
        for member in result:
            yield from numbers_in(member)
    elif isinstance(result, float):
        yield result
    else:
        assert not isinstance(result, (np.generic, np.ndarray)), "a numpy number does not go into JSON"


def answers(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            result, reason = function(*arguments), None
        except ValueError as error:
            result, reason = None, str(error)
    assert reason is None or ("\n" not in reason and 10 < len(reason) < 160)
    assert not any(math.isnan(number) for number in numbers_in(result)), result


@pytest.mark.parametrize("function", ONE_SAMPLE.values(), ids=ONE_SAMPLE)
@settings(max_examples=examples(60))
@example(x=FAR_APART)
@given(x=anything)
def test_every_sample_has_an_answer_or_a_reason(function, x):
    answers(function, x)


@pytest.mark.parametrize("function", TWO_SAMPLES.values(), ids=TWO_SAMPLES)
@settings(max_examples=examples(60))
@example(a=FAR_APART, b=FAR_APART[::-1])
@given(a=anything, b=anything)
def test_every_two_samples_have_an_answer_or_a_reason(function, a, b):
    answers(function, a, b)


@pytest.mark.parametrize("function", ONE_SAMPLE.values(), ids=ONE_SAMPLE)
@pytest.mark.parametrize("wrong", [[1.0, math.nan, 2.0] * 5, [1.0, math.inf] * 5, [[1.0, 2.0]], "text"])
def test_what_is_no_row_of_finite_numbers_is_refused(function, wrong):
    with pytest.raises(ValueError, match=r"^a sample"):
        function(wrong)


def test_no_module_of_statistics_waits_for_scipy_stats_when_it_is_imported():
    program = (
        "import importlib, pkgutil, sys\n"
        "for module in pkgutil.iter_modules(importlib.import_module('etude.stats').__path__):\n"
        "    importlib.import_module('etude.stats.' + module.name)\n"
        "from etude.stats import trend, twosample, warmup, ranks, equivalence, ratio, describe, shape, means\n"
        "x, y = [1.0, 1.2, 1.1, 1.3] * 10, [1.0, 1.25, 1.1, 1.4] * 10\n"
        "twosample.welch(x, y), ranks.mann_whitney(x, y), describe.percentiles(x)\n"
        "equivalence.equivalence_of(ratio.unpaired_ratio(x, y)), means.average(x, 'cost'), shape.groups(x)\n"
        "warmup.level_shift(x), trend.drift(x), trend.leak(x)\n"
        "print([m for m in sys.modules if m.startswith(('scipy.stats', 'scipy.optimize', 'etude.')) and\n"
        "       not m.startswith(('etude.stats', 'etude.patterns', 'etude.version'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
