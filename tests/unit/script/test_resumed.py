"""A script that was interrupted and is resumed: it keeps what it was begun with."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.errors import Interrupted
from etude.experiment import sitting
from etude.experiment.bench import Event
from etude.experiment.ledger import Ledger
from etude.results.reader import load_results, read_experiment
from etude.script.bench import STATE_FILE
from etude.script.run import read_script, resume_script, run_script
from etude.testbed.boot import record
from support.builders import still_machine
from support.fakes import World


@pytest.fixture(autouse=True)
def _still_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)
    monkeypatch.setenv(record.DIRECTORY_VARIABLE, str(tmp_path / "boot"))


def silent(event: Event, ledger: Ledger) -> None:
    """Prints nothing."""


def stopped(directory: Path, text: str, after: int) -> Path:
    """The results of a script that a signal ended after so many launches."""

    def signal(number: int, world: World) -> None:
        if number == after:
            world.signal(2)

    file = directory / "s.ap"
    file.write_text(text)
    asked = read_script(str(file), seed=1, counters="off", masks=("k-[0-9]+",))
    with pytest.raises(Interrupted):
        run_script(asked, directory / "r", observe=silent, make_engine=World(after=signal).make_engine)
    return directory / "r"


def test_what_was_masked_stays_masked(tmp_path: Path) -> None:
    path = stopped(tmp_path, "TEST t 4\nEXEC copy key k-4711\nDONE\n", after=2)
    resume_script(path, observe=silent, make_engine=World().make_engine)
    rows = [row for row in load_results(path).measurements["t"] if row.kept]
    assert [row.sitting for row in rows] == [1, 2, 2, 2]
    assert {tuple(row.command) for row in rows} == {("copy", "key", "(masked)")}


def test_a_script_that_is_complete_waits_for_no_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[Path] = []
    monkeypatch.setattr(record, "forget", forgotten.append)
    path = stopped(tmp_path, "TEST t 4\nEXEC copy\nDONE\n", after=2)
    assert forgotten == []
    assert resume_script(path, observe=silent, make_engine=World().make_engine) == path
    assert forgotten == [path]


def test_a_script_that_was_killed_when_all_was_measured_is_resumed(tmp_path: Path) -> None:
    file = tmp_path / "s.ap"
    file.write_text("TEST t 3\nEXEC copy\nDONE\n")
    path, asked = tmp_path / "r", read_script(str(file), seed=1, counters="off")

    def killed(*_: object) -> None:
        raise SystemExit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sitting, "_finish", killed)
        with pytest.raises(SystemExit):
            run_script(asked, path, observe=silent, make_engine=World().make_engine)
    for sessions in (2, 2):
        assert resume_script(path, observe=silent, make_engine=World().make_engine) == path
        assert len(read_experiment(path)["sittings"]) == sessions
        assert not (path / STATE_FILE).exists()
    assert len(load_results(path).measurements["t"]) == 3
