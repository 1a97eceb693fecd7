"""A test of a script is one command under instruments, or is refused with the line that cannot be repeated."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from etude.errors import UsageError
from etude.experiment.test import Test
from etude.script.run import read_script
from etude.why.stored_plan import script_plan

SCRIPT = """\
ENV WHO=me
TEST "a b: 'c'" 2
  TIMEOUT 5s
  PRESETUP mkdir made
  SETUP touch one # two
  SETUP cd made
  EXEC printf '%s|' "a b"
  EXEC test $WHO = me && printf "$WHO $APTEST|"
  CLEANUP rm one
  POSTCLEANUP rmdir made
DONE
TEST plain 2
  EXEC printf '%s' "a b"
DONE
"""


def planned(text: str, place: Path, *names: str) -> tuple[Test, ...]:
    (place / "s.ap").write_text(text)
    return script_plan(read_script(str(place / "s.ap")), place, names).tests


def run(command: tuple[str, ...], test: Test, place: Path) -> str:
    around = {name: value or "" for name, value in test.environment.items()}
    return subprocess.run(command, env=around, cwd=place, capture_output=True, text=True, check=True).stdout


def test_several_execs_are_one_command_with_their_environment_and_hooks(tmp_path: Path) -> None:
    several, plain = planned(SCRIPT, tmp_path)
    assert plain.command == ("printf", "%s", "a b")
    assert several.name == "a b: 'c'"
    assert run(several.command, several, tmp_path).split("|")[:2] == ["a b", f"me {several.name}"]
    assert several.timeout_s == 10.0
    for line in (several.setup, several.prepare):
        assert line is not None
        run(("sh", "-c", line), several, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"s.ap", "made", "one"}
    for line in (several.conclude, several.cleanup):
        assert line is not None
        run(("sh", "-c", line), several, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"s.ap"}


def test_an_exec_that_fails_ends_the_command(tmp_path: Path) -> None:
    several = planned(SCRIPT.replace("printf '%s|'", "false"), tmp_path)[0]
    assert subprocess.run(several.command, cwd=tmp_path, capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ("SYSTEM true\n", "SYSTEM true"),
        ("TEST x 2\n  EXEC ACCEPT 1 false\nDONE\n", "x: EXEC ACCEPT 1 false"),
        ("TEST x 2\n  EXEC true\n  SETUP touch y\n  EXEC true\nDONE\n", "x: SETUP touch y"),
    ],
    ids=["a line outside", "a status", "set-up in between"],
)
def test_what_is_not_repeated_is_named(tmp_path: Path, more: str, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        planned(SCRIPT + more, tmp_path, "x", "plain")


def test_other_tests_of_the_script_do_not_matter(tmp_path: Path) -> None:
    found = planned(SCRIPT + "TEST x 2\n  EXEC ACCEPT 1 false\nDONE\n", tmp_path)
    assert [test.name for test in found] == ["a b: 'c'", "plain", "x"]
