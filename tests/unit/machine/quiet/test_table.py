"""The words by which operations are asked for."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import UsageError
from etude.machine.quiet.table import BY_NAME, parse


def test_the_usual_ones_lock_nobody_out_and_need_no_cpus() -> None:
    names = parse(["usual"]).names
    assert names == (
        "services",
        "swap",
        "background",
        "governor",
        "turbo",
        "aslr",
        "thp",
        "watchdogs",
        "perf",
    )
    assert parse(["usual", "cpus=1"]).names == (*names, "irqs", "shield")


def test_words_add_up_and_the_order_is_the_tables() -> None:
    asked = parse(
        ["thp=never", "services=a,b.timer", "cpus=1,4-6", "irqs", "usual"], without=["swap", "shield"]
    )
    assert asked.cpus == {1, 4, 5, 6}
    assert asked.values == {"thp": "never", "services": "a,b.timer"}
    assert "swap" not in asked.names
    assert list(asked.names) == [name for name in BY_NAME if name in asked.names]
    assert parse([]).names == ()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["swpa"], "did you mean swap?"),
        (["services="], "services=: expected one of UNIT,…"),
        (["services=a b"], "expected one of UNIT"),
        (["swap=off"], "it takes none"),
        (["governor=fast"], "expected one of performance"),
        (["cpus=3"], "cpus= is for irqs and shield"),
        (["irqs"], "irqs needs the CPUs that are to be kept free"),
        (["irqs", "cpus=3-1"], "expected a list of CPUs"),
        (["irqs", "cpus="], "expected a list of CPUs"),
        (["irqs", "cpus=1-99999"], "expected a list of CPUs"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        parse(words)
    assert "\n" not in str(error.value)


@given(st.lists(st.text(max_size=12) | st.sampled_from([*BY_NAME, "usual", "cpus=1", "off"]), max_size=4))
def test_all_words_are_understood_or_refused(words: list[str]) -> None:
    refused = ""
    try:
        parse(words)
    except UsageError as error:
        refused = str(error)
    assert "\n" not in refused
