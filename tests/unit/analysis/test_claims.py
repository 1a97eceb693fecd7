"""What limits a claim: no other sentence of the same verdict says more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etude.analysis.comparison import Comparison
from etude.analysis.planning import PlanTargets, plan_from
from etude.analysis.subject import subject_of
from etude.analysis.verdict import verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.experiment.plan import make_plan
from etude.experiment.run import run
from etude.present.sentences.comparison import caution
from etude.present.sentences.warnings import found_text
from etude.results.reader import load_results
from etude.results.results import Results
from support.builders import measurement, results_directory
from support.fakes import World

SCRIPT = {"kind": "script", "primary": "elapsed", "check_output": "first"}
NOISE = np.random.default_rng(4).normal(0.0, 0.1, (40, 2))


def a_plan(directory: Path) -> dict[str, Any]:
    """As experiment.json has it, of a and b in blocks, each a fixed number of times."""
    times = {name: iter([0.01] * 9) for name in "ab"}
    asked = make_plan(("a", "b"), seed=1, trials=2)
    found = run(asked, directory=directory, make_engine=World(times).make_engine).results
    plan: dict[str, Any] = found.experiment["plan"]
    return plan


def pairs(directory: Path, slower: float, **options: Any) -> Results:
    """Forty pairs, of which b's mean is about `slower` times a's, the last twenty of a second session."""
    rows = {
        name: [
            measurement(name, i, float(factor * (1.0 + x)), block=i, sitting=1 + (i > 20))
            for i, x in enumerate(NOISE[:, column], 1)
        ]
        for column, (name, factor) in enumerate((("a", 1.0), ("b", slower)))
    }
    plan = a_plan(directory.parent / f"{directory.name} plan")
    return load_results(results_directory(directory, rows, plan=plan, **options))


def compared(found: Results, **verdict_options: Any) -> Comparison:
    (c,) = verdict(found, verdict_options=VerdictOptions(**verdict_options)).comparisons
    return c


def test_no_more_than_a_margin_is_shown_where_no_difference_is_claimed(tmp_path: Path) -> None:
    c = compared(pairs(tmp_path / "r", 1.014), same_within=0.001)
    assert c.equivalence is not None
    assert (c.excludes_one, c.equivalence.low > 1.001) == (False, True), "90 % beyond, 95 % not"
    assert c.equivalence.verdict == "undecided"
    clear = compared(pairs(tmp_path / "clear", 1.5), same_within=0.001)
    assert clear.equivalence is not None
    assert (clear.differs, clear.equivalence.verdict) == (True, "different")


@pytest.mark.parametrize(("ended", "extended"), [("complete", True), ("interrupted", False)])
def test_a_number_of_trials_that_was_raised_after_a_look_is_said_to_be(
    ended: str, extended: bool, tmp_path: Path
) -> None:
    sittings = [
        {"sitting": n, "boot_id": "b", "host": "h", "start": "", "end": None, "how_ended": how}
        for n, how in ((1, ended), (2, "complete"))
    ]
    c = compared(pairs(tmp_path / "r", 1.5, sittings=sittings))
    assert c.extended == extended
    moment = replace(c, span_s=0.5)
    assert "2 sessions" in caution(moment)
    assert "session" not in caution(replace(moment, sittings=1))
    assert (caution(c) != caution(replace(c, extended=False))) == extended


def test_a_drift_over_sessions_may_be_their_difference(tmp_path: Path) -> None:
    values = np.concatenate([1.0 + NOISE[:20, 0] / 10.0, 1.3 + NOISE[:20, 1] / 10.0])
    values += np.linspace(0.0, 0.8, 40)
    told = []
    for name, sittings in (("one", np.ones(40)), ("two", 1 + (np.arange(40) >= 20))):
        rows = {
            "a": [
                measurement("a", i, float(x), sitting=int(s), boot_id=str(s))
                for i, (x, s) in enumerate(zip(values, sittings, strict=True), 1)
            ]
        }
        found = verdict(load_results(results_directory(tmp_path / name, rows, plan=SCRIPT)))
        told += [found_text(each) for each in found.every if each.kind == "drift"]
    assert ["2 sessions" in text for text in told] == [False, True]


def test_a_test_that_took_turns_costs_what_it_takes_itself(tmp_path: Path) -> None:
    at = 0.0
    rows: dict[str, list[Any]] = {"a": [], "b": []}
    for block in range(1, 13):
        for name, seconds in (("a", 1.0), ("b", 5.0)):
            x = seconds * (1.0 + float(NOISE[block, 0]) / 100.0)
            rows[name].append(measurement(name, block, x, block=block, start_ns=1 + int(1e9 * at)))
            at += seconds + 0.5
    found = load_results(results_directory(tmp_path / "r", rows, plan=a_plan(tmp_path / "plan")))
    costs = [each.cost.seconds for each in plan_from(subject_of(found), PlanTargets(precision=0.01))]
    assert costs == pytest.approx([1.5, 5.5], rel=0.07)
