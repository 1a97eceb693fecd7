"""Members of stored documents that cannot be meant: each is refused with its file and its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etude.analysis.load_subject import read_ours
from etude.analysis.subject import asked_of
from etude.errors import InputError
from etude.experiment.plan import Plan, RuleSpec, from_document, to_document
from etude.experiment.test import Test
from etude.surface.factors import Factor
from support.stored import directory


def planned(rule: Any) -> dict[str, Any]:
    document = to_document(
        Plan("n", (Test("a", ("a",)), Test("b", ("b",))), RuleSpec("fixed-count", {"count": 2}))
    )
    return document | {"rule": rule}


@pytest.mark.parametrize(
    ("rule", "member"),
    [
        ({"kind": "fixed-count", "parameters": {}}, "plan.rule.parameters.count"),
        ({"kind": "fixed-count", "parameters": {"count": {}}}, "plan.rule.parameters.count"),
        ({"kind": "fixed-count", "parameters": {"count": "2"}}, "plan.rule.parameters.count"),
        ({"kind": "fixed-count", "parameters": {"count": 0}}, "plan.rule.parameters"),
        ({"kind": "fixed-count", "parameters": {"count": 2, "x": 1}}, "plan.rule.parameters.x"),
        ({"kind": "mean-precision", "parameters": {"budget_s": []}}, "plan.rule.parameters.budget_s"),
        ({"kind": "odd", "parameters": {}}, "plan.rule.kind"),
    ],
)
def test_a_stop_rule_that_cannot_be_meant_is_named_with_its_file(rule: Any, member: str) -> None:
    with pytest.raises(InputError) as refused:
        from_document(planned(rule), "here/experiment.json")
    file, named, _ = str(refused.value).split(": ", 2)
    assert (file, named) == ("here/experiment.json", member)
    assert "__init__" not in str(refused.value)


def test_an_experiment_without_a_test_has_no_group() -> None:
    experiment = {"plan": planned({"kind": "fixed-count", "parameters": {"count": 2}}), "tests": []}
    assert asked_of(experiment, Path("here")).groups == ()


@pytest.mark.parametrize("member", ["versions", "metrics", "began_as"])
def test_a_member_that_must_be_an_object_is_one(member: str, tmp_path: Path) -> None:
    place = directory(tmp_path / "r", {"sort": [1.0, 2.0]})
    document = json.loads((place / "experiment.json").read_text())
    (place / "experiment.json").write_text(json.dumps(document | {member: [1]}))
    with pytest.raises(InputError, match=member):
        read_ours(place)


@pytest.mark.parametrize(
    ("scale", "levels", "fits"),
    [
        ("linear", (1.0, 2.0), True),
        ("linear", (0.0, 2.0), True),
        ("linear", (1.0, 0.0, 4.0), False),
        ("linear", (1.0, 1.0), False),
        ("linear", (), False),
        ("log", (0.0, 2.0), False),
        ("log", ("4k", "1M"), True),
        ("log", ("1M", "4k"), False),
        ("log", ("x", "y"), False),
        ("ordered", ("x", "a"), True),
        ("categorical", ("x", "x"), False),
    ],
)
def test_levels_that_a_scale_cannot_have_are_found(scale: Any, levels: Any, fits: bool) -> None:
    assert (Factor("f", scale, levels).wrong_levels is None) is fits
