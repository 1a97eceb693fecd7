"""Types of arguments: what they accept, and that all else is an error of usage."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cli import parser
from etude.cli.verb_parsers import verb_parser
from etude.cli.verbs import VERBS
from support.places import DOCS

KINDS: list[Callable[[str], object]] = [
    parser.share,
    parser.seconds,
    parser.cpus,
    parser.metric,
    parser.inner,
]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (parser.share, "0.02", 0.02),
        (parser.share, "2%", 0.02),
        (parser.seconds, "30", 30.0),
        (parser.seconds, "500ms", 0.5),
        (parser.seconds, "1.5s", 1.5),
        (parser.seconds, "2m", 120.0),
        (parser.seconds, "4 min", 240.0),
        (parser.seconds, "2min", 120.0),
        (parser.seconds, "1d", 86400.0),
        (parser.share, "2 %", 0.02),
        (parser.percent_between, "95", 0.95),
        (parser.percent_between, "95 %", 0.95),
        (parser.percent, "5", 0.05),
        (parser.percent, "5%", 0.05),
        (parser.seconds, "1h", 3600.0),
        (parser.cpus, "0", (0,)),
        (parser.cpus, "0,2-3", (0, 2, 3)),
        (parser.inner, "auto", "auto"),
        (parser.inner, "7", 7),
    ],
)
def test_what_is_meant(kind: Callable[[str], object], text: str, value: object) -> None:
    assert kind(text) == value


ARABIC = ["٣", "1٣", "٣,٣", "٣x٣", "٣pt", "٣:٣٠"]
"""Digits that int(), float() and \\d take, and nobody means in an option."""


@pytest.mark.parametrize("verb", VERBS)
def test_no_option_takes_other_digits_than_those_of_ascii(verb: str) -> None:
    kinds = {action.type for action in verb_parser(verb)._actions if callable(action.type)}
    for kind, text in itertools.product(kinds, ARABIC):
        with contextlib.suppress(argparse.ArgumentTypeError):
            assert isinstance(kind(text), str | Path), (kind, text)


@pytest.mark.parametrize(
    "text", ["--trials ٣", "--runs ٣", "--warmup ٣", "--workers ٣", "--seed ٣", "--inner ٣"]
)
def test_an_option_with_other_digits_is_named(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        verb_parser("bench").parse_args(["true", *text.split()])
    said = capsys.readouterr().err
    assert text.split()[0] in said
    assert "'٣': expected" in said


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("rate=x (.*)", ("rate", "x (.*)", "1")),
        ("rate:B/s=a=b", ("rate", "a=b", "B/s")),
        ("_r2:1=(?m)^x", ("_r2", "(?m)^x", "1")),
    ],
)
def test_a_metric_is_name_unit_and_pattern(text: str, parts: tuple[str, str, str]) -> None:
    found = parser.metric(text)
    assert (found.name, found.regex, found.unit) == parts


@pytest.mark.parametrize("text", ["x:sum=x", "x:s sum=x", "x:s:bogus=x", "x::max=x", "x:s:max:min=x"])
def test_a_way_of_joining_is_no_unit(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parser.metric(text)


@pytest.mark.parametrize("unit", ["min", "req/min", "requests per min", "MiB/s", "widgets"])
def test_a_unit_may_be_in_minutes_or_unknown(unit: str) -> None:
    assert parser.metric(f"x:{unit}=x").unit == unit


def test_the_guides_pattern_finds_the_rate_of_dd() -> None:
    (text,) = re.findall(r"--metric '([^']*)'.*dd if=", (DOCS / "tutorials" / "guide.md").read_text())
    found = parser.metric(text)
    copied = "640000 bytes (640 kB, 625 KiB) copied, 0.00300842 s, 213 MB/s"
    match = re.search(found.regex, f"10000+0 records in\n10000+0 records out\n{copied}\n")
    assert match is not None
    assert (match[1], found.unit) == ("213", "MB/s")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(text=st.text(max_size=12) | st.from_regex(r"[0-9.,%smh=:-]{0,8}", fullmatch=True))
def test_any_other_text_is_an_error_of_usage(kind: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(argparse.ArgumentTypeError):
        kind(text)


@pytest.mark.parametrize("text", ["", "3-1", "a", "0,", "-1", "0-", "0,2-3-4", "0-99999999999"])
def test_lists_of_cpus_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parser.cpus(text)


@pytest.mark.parametrize("width", [40, 50, 60, 70, 80])
def test_help_breaks_no_name_of_an_option_or_a_file(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = verb_parser("bench").format_help().splitlines()
    assert [line for line in lines if re.search(r"[a-z]-$", line)] == []
