"""Commands as resources."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import MachineRefuses
from etude.machine.resources.ledger import Ledger
from etude.machine.resources.resource import Setting, applied_levels
from etude.machine.resources.table import Hook, with_values


def test_a_hook_is_run_with_its_level_and_undone(tmp_path: Path) -> None:
    hook = Hook(command="echo {level} > a", undo="rm a; echo {level} >> b", directory=tmp_path)
    with applied_levels({"h": hook}, {"h": "3 4"}, tmp_path / "l"):
        assert (tmp_path / "a").read_text() == "3 4\n"
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "b").read_text() == "3 4\n"


def test_a_hook_that_fails_is_undone_and_says_its_last_line(tmp_path: Path) -> None:
    hook = Hook(command="touch a; echo first >&2; echo broken >&2; exit 3", undo="rm a", directory=tmp_path)
    with (
        pytest.raises(MachineRefuses, match=r"^h=1: .*: broken$"),
        applied_levels({"h": hook}, {"h": "1"}, tmp_path / "l"),
    ):
        pytest.fail("it was applied")
    assert not (tmp_path / "a").exists()


def test_what_a_hook_leaves_running_does_not_hold_it_up(tmp_path: Path, ledger: Ledger) -> None:
    hook = Hook(command="sleep 60 & echo $! > pid", undo="kill $(cat pid)", directory=tmp_path)
    hook.apply("1", Setting(), ledger)
    ledger.undo()


def test_a_check_that_fails_says_why() -> None:
    assert "broken" in str(Hook(command="true", test="echo broken; false").check())
    assert Hook(command="true", test="true").check() is None
    assert Hook(command="true").check() is None


def test_words_before_commands_have_the_level(ledger: Ledger) -> None:
    hook = Hook(command="true", words="ssh -p {level} 'a b'")
    assert hook.apply("22", Setting(), ledger).prefix == ("ssh", "-p", "22", "a b")


def test_a_hook_knows_what_other_resources_gave(tmp_path: Path, ledger: Ledger) -> None:
    hook = Hook(command="echo {volume} {level} > a", directory=tmp_path)
    hook.apply("{volume}", Setting(values={"volume": "/mnt"}), ledger)
    assert (tmp_path / "a").read_text() == "/mnt {volume}\n"


def test_braces_of_the_shell_stay() -> None:
    assert with_values("echo ${list} {1..3}; { true; }", {"level": "1"}) == "echo ${list} {1..3}; { true; }"


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=30))
def test_a_level_is_one_word_of_the_shell(level: str) -> None:
    import shlex

    assert shlex.split(with_values("run {level} end", {"level": level})) == ["run", level, "end"]
