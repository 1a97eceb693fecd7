"""What a running script shows of a test that has ended."""

from __future__ import annotations

import io

import pytest

from etude.cli.script_display import ScriptDisplay
from etude.experiment.bench import Event
from etude.experiment.ledger import Ledger
from etude.script.state import Running
from support.builders import measurement

RATES = (100.0, 110.0, 90.0)


def ended(program: list[str]) -> str:
    rows = [
        measurement("t", trial=n, metrics={"elapsed": [1.0, "s"], "rate": [rate, "1/s"], "p99": [0.002, "s"]})
        for n, rate in enumerate(RATES, 1)
    ]
    stream = io.StringIO()
    display = ScriptDisplay(stream)
    test = Running("t", 0, 1, 3, program=program)
    display.observe(Event("ended", (test,), "enough"), Ledger({"t": rows}))
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
