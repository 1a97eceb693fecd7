"""What undoes changes, on disk before they are made."""

import json
import os
import signal
from pathlib import Path

import pytest

from etude.errors import InputError, MachineRefuses
from etude.machine.resources import ledger as ledgers
from etude.machine.resources.ledger import FILE, NEW, Ledger, held_ledger
from etude.osutil.commands import tool


@pytest.fixture
def undone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of files that were removed; one named `held` cannot be."""
    paths: list[str] = []

    def remove(path: str) -> None:
        if path == "held":
            raise OSError("Device or resource busy")
        paths.append(path)

    monkeypatch.setitem(ledgers.UNDO, "remove_file", remove)
    return paths


def on_disk(ledger: Ledger) -> list[str]:
    return [step["path"] for step in json.loads((ledger.directory / FILE).read_text())["steps"]]


def test_a_step_is_on_disk_before_the_change(ledger: Ledger) -> None:
    ledger.record_undo("remove_file", path="a")
    assert on_disk(ledger) == ["a"]


def test_steps_are_undone_newest_first_and_then_forgotten(ledger: Ledger, undone: list[str]) -> None:
    for path in "abc":
        ledger.record_undo("remove_file", path=path)
    ledger.undo()
    assert undone == ["c", "b", "a"]
    assert not (ledger.directory / FILE).exists()
    ledger.undo()
    assert len(undone) == 3


def test_a_step_that_fails_is_kept_and_the_others_are_done(ledger: Ledger, undone: list[str]) -> None:
    for path in ("a", "held", "c"):
        ledger.record_undo("remove_file", path=path)
    with pytest.raises(MachineRefuses, match=r"busy; 1 .*resources\.json"):
        ledger.undo()
    assert undone == ["c", "a"]
    assert on_disk(ledger) == ["held"]


def test_what_is_undone_is_forgotten_step_by_step(ledger: Ledger, monkeypatch) -> None:
    """Killed while undoing, no step is done again but the last."""
    seen: list[list[str]] = []
    monkeypatch.setitem(ledgers.UNDO, "remove_file", lambda path: seen.append(on_disk(ledger)))
    for path in "abc":
        ledger.record_undo("remove_file", path=path)
    ledger.undo()
    assert seen == [["a", "b", "c"], ["a", "b"], ["a"]]


def test_a_directory_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineRefuses, match=str(tmp_path / "file")), held_ledger(tmp_path / "file"):
        pass


def test_no_change_is_made_that_cannot_be_written_down_before(ledger: Ledger, monkeypatch) -> None:
    (ledger.directory / NEW).mkdir()
    with pytest.raises(MachineRefuses, match=r"resources\.json cannot be written"):
        ledger.record_undo("remove_file", path="a")
    assert ledger.steps == []


def test_steps_with_other_members_are_kept(tmp_path: Path) -> None:
    text = '{"version": 1, "steps": [{"undo": "remove_file", "name": "a"}]}'
    (tmp_path / FILE).write_text(text)
    with pytest.raises(MachineRefuses, match="remove_file"), held_ledger(tmp_path) as ledger:
        ledger.undo()
    assert (tmp_path / FILE).read_text() == text


def test_one_process_at_a_time_has_a_directory(ledger: Ledger) -> None:
    with (
        pytest.raises(MachineRefuses, match="another process"),
        held_ledger(ledger.directory, patience_s=0.0),
    ):
        pass


def test_steps_of_a_former_holder_are_found(tmp_path: Path) -> None:
    with held_ledger(tmp_path) as first:
        first.record_undo("remove_file", path="a")
    with held_ledger(tmp_path) as second:
        assert second.steps == [{"undo": "remove_file", "path": "a"}]


def test_what_was_half_written_when_its_process_was_killed_is_dropped(tmp_path: Path) -> None:
    (tmp_path / NEW).write_text('{"version": 1, "st')
    with held_ledger(tmp_path) as ledger:
        assert ledger.steps == []
    assert not (tmp_path / NEW).exists()


def test_a_tool_that_outlives_its_process_keeps_others_from_undoing(tmp_path: Path) -> None:
    with held_ledger(tmp_path) as ledger:
        running = int(ledger.tool("sh", "-c", "sleep 60 & echo $!"))
    try:
        with pytest.raises(MachineRefuses, match="another process"), held_ledger(tmp_path, patience_s=0.0):
            pass
    finally:
        os.kill(running, signal.SIGKILL)
    with held_ledger(tmp_path, patience_s=60.0):
        pass


def test_a_tool_is_not_ended_by_a_signal_to_the_terminal_s_group() -> None:
    assert int(tool("sh", "-c", "cut -d ' ' -f 6 /proc/$$/stat")) != os.getsid(0)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 2, "steps": []}', '{"version": 1, "steps": [{"undo": "format"}]}']
)
def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(InputError, match=r"resources\.json: expected"), held_ledger(tmp_path):
        pass
