"""Members of a plan are named by the options that set them."""

from __future__ import annotations

import pytest

from etude.analysis.snapshot_differences import NOT_THERE, as_typed, compare, members
from etude.cli.verb_parsers import verb_parser
from etude.experiment.plan import make_plan, to_document
from etude.experiment.test import MetricPattern, Test

TEST = Test(
    "t", ("a", "b c"), metrics=(MetricPattern("rate", "x", "B/s"),), environment={"X": "1"}, stdin="f"
)
PLAN = to_document(make_plan([TEST], warmup=2, shell="sh"))


@pytest.mark.parametrize(
    ("what", "typed"),
    [
        ("plan.tests.0.command", "command line of t"),
        ("plan.tests.0.metrics.0.regex", "--metric rate"),
        ("plan.tests.0.metrics.0.unit", "--metric rate (unit)"),
        ("plan.tests.0.prepare", "--prepare of t"),
        ("plan.tests.0.cpus", "--cpu of t"),
        ("plan.tests.0.environment.X", "variable X of t"),
        ("plan.rule.parameters.budget_s", "--time"),
        ("plan.warmup", "--warmup"),
        ("plan.tests.7.command", ""),
        ("system.kernel_release", ""),
    ],
)
def test_a_member_is_named_as_it_is_typed(what: str, typed: str) -> None:
    assert as_typed(what, (PLAN, PLAN)) == typed


def test_every_option_that_is_named_is_one_of_etude_bench() -> None:
    known = set(verb_parser("bench")._option_string_actions)
    named = {
        as_typed(what, (PLAN,)).split()[0] for what, _ in members({"plan": PLAN}) if as_typed(what, (PLAN,))
    }
    assert {word for word in named if word.startswith("--")} <= known


def test_a_test_that_only_one_plan_has_is_one_difference() -> None:
    other = to_document(make_plan([TEST, Test("u", ("d", "e f"))], warmup=2, shell="sh", seed=PLAN["seed"]))
    found = [d for d in compare({"plan": PLAN}, {"plan": other}).differs if d.what.startswith("plan.tests")]
    assert [(d.what, d.typed, d.then, d.now) for d in found] == [
        ("plan.tests.1", "test u", NOT_THERE, "d 'e f'")
    ]
