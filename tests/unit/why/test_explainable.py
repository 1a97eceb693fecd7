"""What cannot be explained is refused before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.errors import UsageError
from etude.experiment.plan import make_plan
from etude.experiment.test import Test
from etude.why.explainable import explainable
from support.real import called, one_line

TRUE = ("true",)


@pytest.mark.parametrize(
    ("tests", "wrong"),
    [
        ([Test("a", TRUE)], "one test"),
        ([Test("a", TRUE), Test("b", TRUE, workers=2)], "b: has 2 workers"),
        ([Test("a", TRUE, cool="reboot"), Test("b", TRUE)], "a: a restart"),
    ],
    ids=["one test", "workers", "restarts"],
)
def test_tests_that_instruments_do_not_fit_are_named(tests: list[Test], wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        explainable(make_plan(tests), (), "r")


def test_the_first_two_are_explained_or_those_that_are_named() -> None:
    plan = make_plan([Test(name, TRUE, inner=3) for name in "abc"])
    assert [(t.name, t.inner) for t in explainable(plan, (), "r")] == [("a", 1), ("b", 1)]
    assert [t.name for t in explainable(plan, ("c", "a"), "r")] == ["c", "a"]
    with pytest.raises(UsageError, match="'d'"):
        explainable(plan, ("a", "d"), "r")


def test_a_node_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETUDE_NODE", "1:n1")
    with pytest.raises(UsageError, match="1:n1"):
        explainable(make_plan([Test("a", TRUE), Test("b", TRUE)]), (), "r")


@pytest.mark.parametrize(
    "options",
    [["touch ran"], ["touch ran", "true", "--pool", "local"]],
    ids=["one command", "a pool"],
)
def test_bench_runs_nothing_that_it_cannot_explain(tmp_path: Path, options: list[str]) -> None:
    done = called("bench", "--why", *options, cwd=tmp_path, check=2)
    assert "--why" in one_line(done.stderr)
    assert list(tmp_path.iterdir()) == []
