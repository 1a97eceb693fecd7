"""What a script would run, as data."""

from __future__ import annotations

import pytest

from etude.script.arguments import metric_text, parse_metric
from etude.script.check import dry_run
from etude.script.parse import parse_text
from etude.script.state import State


def test_an_outline_has_what_limits_a_test_and_what_it_measures() -> None:
    text = "TEST t 2 TIME=1m\nVAR N=5\nTIMEOUT 2m\nMETRIC rate:1/s max 'r%N%=(.*)'\nMETRIC n [0-9]+\nEXEC true\nDONE\n"
    (test,) = dry_run(parse_text(text), State()).tests
    assert (test.timeout_s, test.budget_s) == (120.0, 60.0)
    assert test.metrics == ("rate:1/s max r5=(.*)", "n [0-9]+")


@pytest.mark.parametrize(
    "text",
    [
        "rate:1/s sum rate=([0-9]+)",
        "n $.a.b[0]",
        'used:B FROM CLEANUP "du -s x"',
        """used FROM CLEANUP 'echo "1"' [0-9]+""",
    ],
)
def test_a_metric_can_be_written_as_it_was_read(text: str) -> None:
    assert metric_text(*parse_metric(text)) == text
