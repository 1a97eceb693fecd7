"""What a running script shows of a test that has ended."""

from __future__ import annotations

import io
import itertools

import pytest

from etude.experiment.bench import Event
from etude.experiment.progress import Progress
from etude.present.progress.bench import ScriptDisplay
from etude.script.state import RunningTest
from etude.stats.describe import describe
from etude.stats.predicate import Predicate
from support.builders import measurement

RATES = (100.0, 110.0, 90.0)


def ended(program: list[str], why: str = "enough") -> str:
    rows = [
        measurement("t", trial=n, metrics={"elapsed": [1.0, "s"], "rate": [rate, "1/s"], "p99": [0.002, "s"]})
        for n, rate in enumerate(RATES, 1)
    ]
    stream = io.StringIO()
    display = ScriptDisplay(stream)
    test = RunningTest("t", 0, 1, 3, program=program)
    display.observe(Event("ended", (test,), why), Progress({"t": rows}))
    return stream.getvalue().strip()


@pytest.mark.parametrize(
    ("columns", "named"), [("rate", ["rate"]), ("rate,p99", ["rate", "p99"]), ("", ["elapsed"])]
)
def test_the_line_of_a_test_shows_the_metrics_that_its_stop_rule_names(
    columns: str, named: list[str]
) -> None:
    rule = ["getstats", "--predicate", "$count > 2", *(["--columns", columns] if columns else [])]
    parts = ended(rule).split(";")[0].split(", ")
    assert parts[0] == "t: 3 trials"
    means = {"rate": "mean rate 99.3", "p99": "mean p99 2.000 ms", "elapsed": "mean 1.000 s"}
    assert len(parts) == 1 + len(named)
    for part, name in zip(parts[1:], named, strict=True):
        assert part.startswith(means[name]), part


def test_another_stop_program_or_none_is_about_the_elapsed_time() -> None:
    for program in ([], ["./judge", "--columns", "rate"]):
        assert "mean 1.000 s" in ended(program)


def test_a_line_has_the_rules_interval_or_the_tables_and_never_both() -> None:
    """Of a rate these are of two means: the rule's is arithmetic, the table's harmonic."""
    rule = ["getstats", "--columns", "rate", "--predicate", "$hw < 1 || $count > 2"]
    assert ended(rule).count("±") == 1
    samples = {"rate": RATES}
    judged = Predicate("$hw < 1 || $count > 2").judge(samples)
    assert judged.limit.count("±") == 1
    assert ended(rule, f"stopped by {judged.limit}").count("±") == 1


def test_a_mean_is_as_wide_as_in_the_table() -> None:
    """The table pays for having looked until a predicate held: with a minimum of 3 trials 1.30."""
    rule = ["getstats", "--columns", "rate", "--predicate", "$count > 2"]
    width = float(ended(rule).partition("± ")[2].partition(" ")[0])
    assert width == pytest.approx(100 * describe(RATES, "rate", factor=1.3).relative_half_width, rel=0.03)  # type: ignore[operator]


def test_what_a_rule_says_of_one_test_stands_beside_no_other() -> None:
    stream, tests = io.StringIO(), [RunningTest(name, 0, 1, 3, group=1) for name in "ab"]
    clock = itertools.count(0, 100)
    display = ScriptDisplay(stream, clock=lambda: next(clock))
    ledger = Progress({"a": [], "b": []})
    display.observe(Event("decision", (tests[0],), "why a"), ledger)
    for test in reversed(tests):
        display.observe(Event("trial", (test,), ""), ledger)
    of_b, of_a = stream.getvalue().splitlines()
    assert ("why a" in of_b, "why a" in of_a) == (False, True)
