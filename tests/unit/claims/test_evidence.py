"""Evidence from stored results: EXPECT lines, peaks, trends, and results that decide nothing."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from etude.analysis.load_subject import read_ours
from etude.claims.bound import Bound, parse_bound
from etude.claims.claims_file import read_claims
from etude.claims.evidence import bound_of_expect, findings
from etude.claims.run import looks_of
from etude.stats.sequential import Estimate, Evidence, all_of, decide, evidence_within, planned_looks
from etude.surface.map_store import MapStore, surface_result_of
from etude.surface.summary import optimum
from golden.corpus import lay_out

FILE = """\
[experiment.s]
script = "s.ap"
[experiment.p]
simulate = "mm1:500"
[experiment.m]
surface = "m.toml"
[claim.c]
text = "t"
hold = "peak >= 3"
experiment = "p"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "c.toml").write_text(FILE)
    return tmp_path


def test_what_a_script_expects_is_judged(place: Path) -> None:
    lay_out("run/expected", place)
    script = read_claims(place / "c.toml").experiments["s"]
    subject = read_ours(place / "run/expected")
    known = {each["name"] for each in (subject.experiment or {})["tests"] if each.get("expect")}
    found = findings(place / "run/expected", script, (parse_bound("expect"),), 0.01)
    assert {f.bound.tests[-1] for f in found} == known
    for each in found:
        assert each.bound.of in ("mean", "ratio", "expect")
        assert each.bound.of == "expect" or each.estimate is not None or each.lacking
    test = subject.tests[0].test
    below = bound_of_expect(subject, test, "elapsed < 5 ms.")
    assert (below.of, below.metric, below.high, below.unit) == ("mean", "elapsed", 0.005, "s")
    assert bound_of_expect(subject, test, "a smooth curve").of == "expect"
    words = findings(place / "run/expected", script, (parse_bound("expect(nosuch)"),), 0.01)
    assert [f.lacking for f in words] == ["words"]


def test_a_stored_peak_supports_and_refutes(place: Path) -> None:
    lay_out("peak/posterior", place)
    experiment = read_claims(place / "c.toml").experiments["p"]
    bounds = tuple(map(parse_bound, ("peak >= 10", "peak >= 1M", "peak <= 1M")))
    found = findings(place / "peak/posterior", experiment, bounds, 0.01)
    assert [f.evidence.towards for f in found] == [True, False, True]
    assert all(f.evidence.p < 0.05 for f in found)
    assert looks_of(experiment) == (60,)


def test_the_best_of_a_surface_is_widened_for_the_choice_among_all_configurations(place: Path) -> None:
    """The largest of many estimates is too large on average: its interval holds for all of them at once."""
    lay_out("surface/simulated", place)
    store = place / "surface/simulated"
    mapped = surface_result_of(MapStore(store))
    best = optimum(mapped)
    assert best is not None
    chosen_among = int(mapped.filled.known.sum())
    assert chosen_among > 5
    alone, of_all = (float(ndtri(1 - (1 - mapped.confidence) / (2 * n))) for n in (1, chosen_among))
    (found,) = findings(
        store, read_claims(place / "c.toml").experiments["m"], (parse_bound("best >= 3"),), 0.01
    )
    assert found.estimate is not None
    interval = found.estimate.interval(1.0 - mapped.confidence)
    for side, single in ((interval.low, best.best.low), (interval.high, best.best.high)):
        expected = math.log(single / best.best.value) * of_all / alone
        assert math.log(side / found.estimate.value) == pytest.approx(expected, rel=1e-6)


def test_few_trials_and_unmeasured_results_decide_nothing(place: Path) -> None:
    lay_out("run/plain", place)
    script = read_claims(place / "c.toml").experiments["s"]
    test = read_ours(place / "run/plain").tests[0].test
    bounds = tuple(
        Bound(x, "mean", x, (y,), 0.0, 1.0, "s") for x, y in (("nosuch", test), ("elapsed", "nosuch"))
    )
    found = findings(place / "run/plain", script, bounds, 0.01)
    assert [(f.lacking, f.evidence.p) for f in found] == [("not measured", 1.0)] * 2


def test_a_value_near_its_bound_is_on_neither_side() -> None:
    exact = Estimate(0.995, 1e-9, 1e-9, 9.0, True, 10)
    assert evidence_within(exact, 0.0, 1.0, 0.01).p == 1.0
    assert evidence_within(exact, 0.0, 1.0).supported < 1e-6
    assert evidence_within(Estimate(1.02, 1e-9, 1e-9, 9.0, True, 10), 0.0, 1.0, 0.01).refuted < 1e-6
    assert evidence_within(Estimate(1.0, np.inf, np.inf, 9.0, True, 10), 0.0, 0.5, 0.01).p == 1.0


def test_a_family_is_decided_by_holm_and_a_claim_by_all_its_bounds() -> None:
    family = [Evidence(0.001, 1.0), Evidence(1.0, 0.02), Evidence(0.04, 1.0)]
    assert [each.supported for each in decide(family, 0.05)] == [True, False, True]
    assert [each.supported for each in decide([*family, Evidence(1.0, 1.0)], 0.05)] == [
        True,
        None,
        None,
        None,
    ]
    assert all_of([Evidence(0.01, 1.0), Evidence(0.2, 0.3)]) == Evidence(0.2, 0.6)
    assert planned_looks(10, 60) == (11, 17, 26, 40, 60)
    assert planned_looks(10, 12) == (12,)
