"""AGE, FILL and PRECONDITION: what stands behind them, and when they are done."""

from __future__ import annotations

import shlex
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.script.directive_words import ArgumentError
from etude.script.disk import DiskStep, engine_line, parse_disk
from etude.script.machine import Machine
from etude.script.parse import parse_text
from etude.script.program import ScriptError
from etude.script.state import State
from support.worlds import NotedWorld


@pytest.mark.parametrize(
    ("directive", "text", "found"),
    [
        ("AGE", "/mnt", DiskStep(False, "/mnt", ())),
        ("AGE", "ONCE '/m n t' to=70% seed=3", DiskStep(True, "/m n t", (("to", "70%"), ("seed", "3")))),
        ("FILL", "d leave=100M written=yes", DiskStep(False, "d", (("leave", "100M"), ("written", "yes")))),
        ("PRECONDITION", "/dev/x trim=no", DiskStep(False, "/dev/x", (("trim", "no"),))),
    ],
    ids=["plain", "once", "fill", "precondition"],
)
def test_a_path_and_options_are_read(directive: str, text: str, found: DiskStep) -> None:
    assert parse_disk(directive, text) == found


@pytest.mark.parametrize(
    ("directive", "text", "column", "message"),
    [
        ("AGE", "", 1, "[ONCE] PATH [NAME=VALUE …]"),
        ("AGE", "ONCE", 5, "[ONCE] PATH"),
        ("AGE", "/mnt 70%", 6, "NAME=VALUE"),
        ("AGE", "/mnt sed=1", 6, "seed?"),
        ("AGE", "/mnt to=", 9, "value of to"),
        ("AGE", "/mnt to=1% to=2%", 6, "twice"),
        ("AGE", "/mnt allocated=1", 16, "allocated=yes or no, found '1'"),
        ("FILL", "/mnt", 5, "to=SHARE or leave=BYTES"),
        ("FILL", "/mnt to=1% leave=1", 19, "to=SHARE or leave=BYTES"),
        ("PRECONDITION", "x pattern=wild", 11, "pattern=sequential or random"),
        ("PRECONDITION", "'x", 1, "not closed"),
    ],
    ids=[str(number) for number in range(11)],
)
def test_what_is_wrong_is_said_at_its_place(directive: str, text: str, column: int, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_disk(directive, text)
    assert message in str(caught.value)
    assert caught.value.column == column


@given(st.sampled_from(["AGE", "FILL", "PRECONDITION"]), st.text(max_size=60))
def test_no_text_makes_it_fall(directive: str, text: str) -> None:
    with suppress(ArgumentError):
        step = parse_disk(directive, text)
        check_line(directive, step)


def check_line(directive: str, step: DiskStep) -> None:
    line = engine_line(directive, step)
    words = shlex.split(line.removesuffix(' >>"$APLOG"'))
    assert words[:3] == ["etude-engine", directive.lower(), "--block"]
    assert words[-2:] == ["--", step.path], "whatever the path is, the shell hands it over as one word"


def story(text: str) -> list[str]:
    world = NotedWorld()
    Machine(parse_text(text), State(), world).run()
    return [line.split(" [")[0] for line in world.story if not line.startswith(("trial", "end of"))]


def test_each_trial_does_it_at_its_place_and_once_before_the_first_alone() -> None:
    body = "PRECONDITION ONCE /dev/x\nSETUP s\nAGE /mnt to=70%\nFILL /mnt to=80%\nEXEC e"
    precondition = 'PRECONDITION etude-engine precondition --block -- /dev/x >>"$APLOG"'
    trial = [
        "SETUP s",
        'AGE etude-engine age --block --again --to=70% -- /mnt >>"$APLOG"',
        'FILL etude-engine fill --block --again --to=80% -- /mnt >>"$APLOG"',
        "EXEC e",
    ]
    assert story(f"TEST a 2\n{body}\nDONE\n") == [precondition, *trial, *trial]


def test_a_trial_whose_disk_cannot_be_brought_there_fails() -> None:
    world = NotedWorld(fails=lambda point, line, test: "no" if point == "AGE" else None)
    with pytest.raises(Exception, match="given up"):
        Machine(parse_text("TEST a 1\nAGE /mnt\nEXEC e\nCLEANUP c\nDONE\n"), State(), world).run()
    assert not any(line.startswith("EXEC") for line in world.story)
    assert any(line.startswith("CLEANUP c") for line in world.story)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AGE /mnt", ":1: AGE .*TEST"),
        ("TEST a 1\nFILL\nDONE", ":2: .*FILL"),
        ("TEST a 1\nPRECONDITION x sise=1M\nDONE", r":2: .*size\?"),
    ],
    ids=["outside", "nothing", "unknown"],
)
def test_a_script_that_is_wrong_is_not_begun(text: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        parse_text(text)


def test_variables_are_replaced_before_it_is_read() -> None:
    text = "VAR TO=70%\nVAR P=/mnt\nTEST a 1\nAGE %P% to=%TO%\nEXEC e\nDONE\n"
    (line,) = (each for each in story(text) if each.startswith("AGE "))
    assert shlex.split(line)[1:3] == ["etude-engine", "age"]
    assert "--to=70% -- /mnt " in line
