"""Transforms as options of `etude stats`, and a table of any reader's after them."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

import polars
import pytest

from etude.analysis.pipeline import apply
from etude.analysis.transforms import TRANSFORMS, Transform, checked
from etude.cli.analyse.transform_options import add_transform_options
from etude.errors import UsageError
from etude.results.series import series_of_table
from etude.results.table import Table


def table(**changes: object) -> Table:
    """Two tests of two trials; two workers that run two commands each."""
    places = [
        (test, trial, w, c) for test in "ab" for trial in (1, 2) for w in (0, 1) for c in ("tar", "make")
    ]
    frame = polars.DataFrame(
        {
            "test": [test for test, *_ in places],
            "trial": [trial for _, trial, *_ in places],
            "worker": [worker for _, _, worker, _ in places],
            "command": [command for *_, command in places],
            "kept": [True] * len(places),
            "status": [0] * 7 + [2] + [0] * 8,
            "size": ["4k"] * len(places),
            "elapsed": [trial * (1.0 + worker) for _, trial, worker, _ in places],
            "user": [0.25] * len(places),
            "system": [0.25] * len(places),
            "rate": [8.0] * len(places),
        }
    )
    units = {"elapsed": "s", "user": "s", "system": "s", "rate": "B/s"}
    kinds = {"elapsed": "cost", "user": "cost", "system": "cost", "rate": "rate"}
    return Table(frame, units, kinds, ("size",), "t.json", ("It was so.",), **changes)  # type: ignore[arg-type]


def steps(*words: str, shifted: bool = False) -> list[Transform]:
    """`select EXPR update …`: each name takes as many words as it is declared to."""
    rest, found = list(words), []
    while rest:
        name = rest.pop(0)
        arguments = [rest.pop(0) for _ in TRANSFORMS[name].metavars]
        found.append(checked(Transform(name, tuple(arguments), shifted)))
    return found


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("files", nargs="+")
    add_transform_options(parser, leave_out=["csv"])
    return parser.parse_args(words)


def test_options_are_collected_in_the_order_given() -> None:
    options = parsed("a", "--select", "1", "--shift", "--warnrow", "2", "x", "--set", "n=3", "--waitcpu")
    assert options.files == ["a"]
    assert options.transforms == (
        Transform("select", ("1",)),
        Transform("warnrow", ("2", "x"), shifted=True),
        Transform("waitcpu"),
    )
    assert options.variables == {"n": 3.0}
    none = parsed("a")
    assert (none.transforms, none.variables) == ((), {})


@pytest.mark.parametrize("words", [["--select", "1 +"], ["--set", "x"], ["--csv"], ["--aggregate", "a=b"]])
def test_an_option_that_cannot_be_meant_ends_the_parser(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed("a", *words)
    assert "error: " in capsys.readouterr().err


def test_without_transforms_the_table_is_the_same() -> None:
    before = table()
    assert apply(before, ()) is before


def test_shifted_transforms_come_before_trials_are_joined_and_others_behind() -> None:
    found = apply(table(), steps("select", '$command eq "make"', shifted=True))
    assert found.frame.height == 8
    assert series_of_table(found)[0].sample("elapsed").tolist() == [2.0, 4.0]
    found = apply(table(), steps("select", "$elapsed > 7"))
    assert found.frame.select("test", "trial", "elapsed", "user", "status").rows() == [
        ("a", 2, 8.0, 1.0, 2),
        ("b", 2, 8.0, 1.0, 0),
    ]
    assert [series.failures for series in series_of_table(found)][1] == ()


def test_units_kinds_and_places_stay_true() -> None:
    words = ["update", "per_cpu:1/s=$rate / $user", "rename", "rate=throughput", "waitcpu"]
    found = apply(table(joins={"rate": "max"}), steps(*words))
    assert found.units == {
        "elapsed": "s",
        "user": "s",
        "system": "s",
        "throughput": "B/s",
        "per_cpu": "1/s",
        "wait": "s",
        "cpu": "%",
    }
    assert set(found.kinds) == set(found.units)
    assert found.parameters == ("size",)
    assert found.warnings == ("It was so.",)
    only = apply(table(), steps("project", "elapsed"))
    assert list(only.units) == ["elapsed"]
    assert {series.test for series in series_of_table(only)} == {"a", "b"}


def test_a_group_makes_tests() -> None:
    found = apply(table(), steps("group", "command", shifted=True))
    assert [series.parameters["command"] for series in series_of_table(found)] == ["tar", "make"] * 2
    found = apply(table(), [*steps("group", "thread", shifted=True), *steps("select", "1")])
    assert [s.sample("elapsed").tolist() for s in series_of_table(found)] == [[2.0, 4.0], [4.0, 8.0]] * 2


def test_an_aggregate_has_trials_again() -> None:
    found = apply(table(), steps("aggregate", "test,epoch:elapsed=mean,rate=count"))
    assert found.units == {"elapsed": "s", "rate": "1"}
    assert series_of_table(found)[1].sample("elapsed").tolist() == [4.0, 8.0]
    assert apply(table(), steps("aggregate", "elapsed=max")).frame.height == 1


def test_warnings_are_added_and_prints_handed_out() -> None:
    out: list[str] = []
    words = ["echo", "$file at $confidencelevel", "warnrow", "$epoch == $last", "epoch $epoch of $test"]
    found = apply(table(), steps(*words, "exitfail"), {"last": 2.0}, confidence=0.9, out=out.append)
    assert out == ["t.json at 90"]
    *before, failed = found.warnings
    assert before == ["It was so.", "epoch 2 of a", "epoch 2 of b"]
    assert re.findall(r"\d+", failed) == ["1", "2", "2"]
    apply(table(), steps("select", "$epoch == 1", "project", "elapsed", "csv"), out=out.append)
    assert out[1].startswith("test,trial,worker,command,kept,status,elapsed\na,1,0,tar; make,true,0,4\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["select", "$nosuch"], "--select, column 1: .*variable"),
        (["project", "nosuch"], r"t\.json: --project: .*'nosuch'"),
        (["select", "0"], r"t\.json: No row"),
        (["group", "nosuch"], "column 'nosuch'"),
    ],
)
def test_what_does_not_fit_is_told(words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        apply(table(), steps(*words))


def test_summaries_cannot_be_transformed() -> None:
    with pytest.raises(UsageError, match=r"t\.json: .*--select"):
        apply(table(summary_only=True), steps("select", "1"))


def test_declaring_them_loads_no_library_of_numbers() -> None:
    script = (
        "import sys, argparse\nfrom etude.cli.analyse.transform_options import add_transform_options\n"
        "add_transform_options(argparse.ArgumentParser())\nprint(*{'numpy', 'polars'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
