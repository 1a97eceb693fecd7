"""Several resources at their levels, and all as it was in the end."""

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from etude.errors import InputError, Interrupted, MachineRefuses
from etude.machine.resources.ledger import FILE, Ledger, held_ledger
from etude.machine.resources.resource import Setting, applied_levels, undo_left


@dataclass
class Standin:
    """Makes a file, and says what it was told."""

    file: Path
    name: str = "standin"
    is_cgroup: bool = False
    fails: bool = False
    gives: Setting = field(default_factory=Setting)

    def accept(self, level: str) -> None:
        if level == "bad":
            raise InputError("level 'bad': expected a good one")

    def check(self) -> str | None:
        return None

    def apply(self, level: str, so_far: Setting, ledger: Ledger) -> Setting:
        ledger.record_undo("remove_file", path=str(self.file))
        self.file.write_text(f"{level} {' '.join(sorted(so_far.values))}")
        if self.fails:
            raise MachineRefuses("no space")
        return self.gives


def test_resources_are_at_their_levels_within_and_gone_after(tmp_path: Path) -> None:
    file = tmp_path / "a"
    with applied_levels({"a": Standin(file)}, {"a": "3", "other": "x"}, tmp_path / "l"):
        assert file.read_text() == "3 "
    assert not file.exists()


def test_cgroups_come_last(tmp_path: Path) -> None:
    """So their processes end before anything that they may use."""
    group = Standin(tmp_path / "group", is_cgroup=True)
    volume = Standin(tmp_path / "volume", gives=Setting(values={"volume": "/mnt"}))
    with applied_levels({"group": group, "volume": volume}, {"group": "1", "volume": "2"}, tmp_path / "l"):
        assert group.file.read_text() == "1 volume"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit], ids=lambda each: each.__name__)
def test_all_is_undone_after_an_exception(tmp_path: Path, error: type[BaseException]) -> None:
    file = tmp_path / "a"
    with pytest.raises(error), applied_levels({"a": Standin(file)}, {"a": "1"}, tmp_path / "l"):
        raise error
    assert not file.exists()


def test_what_was_applied_is_undone_where_a_later_one_fails(tmp_path: Path) -> None:
    a, b = Standin(tmp_path / "a"), Standin(tmp_path / "b", fails=True)
    with (
        pytest.raises(MachineRefuses, match="b=2: no space"),
        applied_levels({"a": a, "b": b}, {"a": "1", "b": "2"}, tmp_path / "l"),
    ):
        pytest.fail("it was not applied")
    assert not a.file.exists()
    assert not b.file.exists()


def test_a_level_that_cannot_be_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    a, b = Standin(tmp_path / "a", fails=True), Standin(tmp_path / "b")
    with (
        pytest.raises(InputError, match="b=bad: level"),
        applied_levels({"a": a, "b": b}, {"a": "1", "b": "bad"}, tmp_path / "l"),
    ):
        pytest.fail("it was accepted")


@pytest.mark.usefixtures("default_signals")
def test_sigterm_undoes_all_and_is_an_error_with_its_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "a"
    with (
        pytest.raises(Interrupted) as caught,
        applied_levels({"a": Standin(file)}, {"a": "1"}, tmp_path / "l"),
    ):
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.exit_code == 128 + signal.SIGTERM
    assert not file.exists()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_signal_while_undoing_waits_for_its_end(tmp_path: Path, monkeypatch) -> None:
    from etude.machine.resources import ledger as ledgers

    gone: list[str] = []

    def interrupted(path: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        gone.append(path)

    monkeypatch.setitem(ledgers.UNDO, "remove_file", interrupted)
    a, b = Standin(tmp_path / "a"), Standin(tmp_path / "b")
    with (
        pytest.raises(KeyboardInterrupt),
        applied_levels({"a": a, "b": b}, {"a": "1", "b": "2"}, tmp_path / "l"),
    ):
        pass
    assert gone == [str(b.file), str(a.file)]


def test_what_a_killed_process_left_is_undone(tmp_path: Path) -> None:
    file = tmp_path / "a"
    with held_ledger(tmp_path / "l") as ledger:
        Standin(file).apply("1", Setting(), ledger)  # and killed here
    assert undo_left(tmp_path / "l") == ["remove_file"]
    assert not file.exists()
    assert not (tmp_path / "l" / FILE).exists()
    assert undo_left(tmp_path / "l") == []
    assert undo_left(tmp_path / "never") == []


def test_what_was_left_is_undone_before_levels_are_applied(tmp_path: Path) -> None:
    old = tmp_path / "old"
    with held_ledger(tmp_path / "l") as ledger:
        Standin(old).apply("1", Setting(), ledger)
    with applied_levels({}, {}, tmp_path / "l"):
        assert not old.exists()


def test_a_prefix_enters_each_group_once_and_then_runs_the_command() -> None:
    setting = Setting(("/c/cpu/e",)).joined(Setting(("/c/cpu/e",))).joined(Setting(("/c/my mem/e",)))
    script = "echo $$ > /c/cpu/e/cgroup.procs && echo $$ > '/c/my mem/e/cgroup.procs' && exec \"$@\""
    assert setting.prefix == ("sh", "-c", script, "sh")
    assert Setting().prefix == ()


def test_words_of_a_hook_stand_between_groups_and_command() -> None:
    setting = Setting(words=("ssh", "guest")).joined(Setting(("/c/e",)))
    assert setting.prefix[-3:] == ("sh", "ssh", "guest")


def test_two_resources_cannot_give_one_value() -> None:
    with pytest.raises(InputError, match=r"\{volume\}"):
        Setting(values={"volume": "a"}).joined(Setting(values={"volume": "b"}))
