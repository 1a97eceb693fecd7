"""Where a command runs, what is copied, and the time-out: as text, and as the machine runs them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.script.arguments import (
    CommandOnHosts,
    CopyCommand,
    parse_copy,
    parse_exec,
    parse_on_hosts,
    parse_timeout,
)
from etude.script.directive_words import ArgumentError
from etude.script.parse import parse_text
from etude.script.program import ScriptError
from etude.script.state import Scope, State
from support.worlds import NotedWorld, play

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,5}", fullmatch=True)


def test_a_command_without_a_host_is_as_it_was() -> None:
    assert parse_on_hosts("echo @a b") == CommandOnHosts((), "echo @a b")


@given(st.lists(NAMES, min_size=1, max_size=3, unique=True), st.text("ab $|", min_size=1))
def test_hosts_and_command_are_parted(hosts: list[str], line: str) -> None:
    text = f"@{','.join(hosts)}  {line}"
    if line.strip():
        assert parse_on_hosts(text) == CommandOnHosts(tuple(hosts), line.strip())
    else:
        with pytest.raises(ArgumentError, match="expected a command"):
            parse_on_hosts(text)


@pytest.mark.parametrize(
    ("text", "placed"),
    [
        ("ACCEPT 1 grep x f", CommandOnHosts((), "grep x f", (1,))),
        ("@a,b  ACCEPT 1,255  grep  x", CommandOnHosts(("a", "b"), "grep  x", (1, 255))),
        ("grep ACCEPT 1", CommandOnHosts((), "grep ACCEPT 1")),
        ("ACCEPTED 1", CommandOnHosts((), "ACCEPTED 1")),
        ("@a x", parse_on_hosts("@a x")),
    ],
)
def test_exit_statuses_stand_before_the_command(text: str, placed: CommandOnHosts) -> None:
    assert parse_exec(text) == placed


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("ACCEPT", 7),
        ("ACCEPT x y", 8),
        ("ACCEPT 0 y", 8),
        ("@a ACCEPT 256 y", 11),
        ("ACCEPT 1, y", 8),
        ("ACCEPT 1", 9),
    ],
)
def test_statuses_that_are_none_are_refused_where_they_stand(text: str, column: int) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_exec(text)
    assert caught.value.column == column


@pytest.mark.parametrize("text", ["@ a", "@a, b", "@a,,b c", "@-o c", "@a:b c", "@a,a c", "@a"])
def test_what_names_no_hosts_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        parse_on_hosts(text)


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("here @a:there", CopyCommand(("a",), False, "here", "there")),
        ("'h e' @a,b:", CopyCommand(("a", "b"), False, "h e", "")),
        ("@a:there", CopyCommand(("a",), True, "there", "")),
        ("@a:/x:y here", CopyCommand(("a",), True, "/x:y", "here")),
    ],
)
def test_copies_go_there_or_back(text: str, copied: CopyCommand) -> None:
    assert parse_copy(text) == copied


@given(st.text(max_size=20))
def test_any_text_is_a_copy_or_an_error_within_it(text: str) -> None:
    column = 0
    try:
        assert parse_copy(text).hosts
    except ArgumentError as error:
        column = error.column
    assert 0 <= column <= len(text) + 2


def test_a_timeout_is_a_duration() -> None:
    assert parse_timeout("1.5m") == 90.0
    with pytest.raises(ArgumentError):
        parse_timeout("0")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("TEST t 1\n  HOSTS x\nDONE", ":2: HOSTS .*TEST"),
        ("TIMEOUT 3s", ":1: TIMEOUT .*TEST"),
        ("COPY a b", ":1: COPY: .* PATH @HOST:PATH"),
        ("HOSTS", ":1: .*hosts file"),
        ("TEST t 1\n  SETUP @a\nDONE", ":2: .*@a"),
    ],
)
def test_what_makes_no_sense_is_found_before_anything_runs(text: str, says: str) -> None:
    with pytest.raises(ScriptError, match=says):
        parse_text(text)


def test_hosts_are_beside_the_script_unless_the_command_line_names_others() -> None:
    state = State(scope=Scope({"THREADS": "1", "RESTORE": "0", "SCRIPTDIR": "/s"}))
    assert play("HOSTS h.toml", NotedWorld(), state) == ["HOSTS /s/h.toml"]
    fixed = State(scope=Scope({"THREADS": "1", "RESTORE": "0", "HOSTSFILE": "/o.toml"}), fixed=["HOSTSFILE"])
    assert play("HOSTS h.toml", NotedWorld(), fixed) == ["HOSTS /o.toml", "HOSTS /o.toml"]


def test_a_script_that_goes_on_has_its_hosts_first() -> None:
    state = State(scope=Scope({"THREADS": "1", "RESTORE": "1", "HOSTSFILE": "/h.toml"}))
    assert play("SYSTEM @a x", NotedWorld(), state) == ["HOSTS /h.toml", "SYSTEM @a x"]


def test_only_copies_back_are_made_in_a_failed_trial() -> None:
    text = "TEST t 1 MAX=1\n  COPY a @h:a\n  EXEC x\n  COPY b @h:b\n  COPY @h:c\nDONE"
    world = NotedWorld(fails=lambda point, line, test: "broken" if point == "EXEC" else None)
    assert [line for line in play(text, world) if line.startswith("COPY")] == ["COPY a to h", "COPY c from h"]
