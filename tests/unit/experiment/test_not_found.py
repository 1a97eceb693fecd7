"""The advice for a command that is no program fits the cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.errors import CommandFailed
from etude.experiment.plan import make_plan, make_test
from etude.experiment.run import run
from etude.experiment.trial import advice
from support.fakes import World


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["cd", "/tmp"], "--shell"),
        (["source", "x"], "--shell"),
        (["for", "i"], "--shell"),
        (["(ls)"], "--shell"),
        (["ls -l"], "quotes"),
        (["nosuch", "x"], "spelling"),
    ],
)
def test_the_advice_fits_the_first_word(command: list[str], named: str) -> None:
    assert named in advice(command)


def test_an_exported_function_is_run_by_bash(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--shell=bash" not in advice(["mine"])
    monkeypatch.setenv("BASH_FUNC_mine%%", "() {  sleep 1\n}")
    assert advice(["mine"]).endswith("--shell=bash")


def test_a_file_in_the_directory_is_named_as_it_has_to_be_typed(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.touch()
    assert advice(["tool"], str(tmp_path)).endswith("chmod +x tool, then ./tool")
    tool.chmod(0o755)
    assert advice(["tool"], str(tmp_path)).endswith("type ./tool")


def test_the_error_of_an_experiment_gives_that_advice(tmp_path: Path) -> None:
    missing = {"error": "cd: not found in PATH; check its spelling, or give its path", "exit_status": None}
    world = World({"cd": missing})
    with pytest.raises(CommandFailed) as raised:
        run(make_plan(["cd /tmp"]), tmp_path / "r", make_engine=world.make_engine)
    assert advice(["cd"]) in str(raised.value)
    assert "spelling" not in str(raised.value)


def test_a_shell_that_is_not_there_is_no_reason_to_ask_for_one(tmp_path: Path) -> None:
    missing = {"error": "zish: not found in PATH; check its spelling, or give its path", "exit_status": None}
    world = World({"zish": missing})
    with pytest.raises(CommandFailed) as raised:
        run(
            make_plan([make_test("a", shell="zish")], shell="zish"),
            tmp_path / "r",
            make_engine=world.make_engine,
        )
    assert "spelling" in str(raised.value)
    assert "--shell" not in str(raised.value)
