"""A script that was interrupted and is resumed: it keeps what it was begun with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from etude.errors import InputError, Interrupted
from etude.experiment import session
from etude.experiment.bench import Event
from etude.experiment.progress import Progress
from etude.machine.boot import record
from etude.results.reader import load_results, read_experiment
from etude.results.writer import write_experiment
from etude.script.checkpoint import STATE_FILE
from etude.script.run import read_script, resume_script, run_script
from support.builders import still_machine
from support.fakes import World


@pytest.fixture(autouse=True)
def _still_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)
    monkeypatch.setenv(record.DIRECTORY_VARIABLE, str(tmp_path / "boot"))


def silent(event: Event, ledger: Progress) -> None:
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
        patch.setattr(session, "_finish", killed)
        with pytest.raises(SystemExit):
            run_script(asked, path, observe=silent, make_engine=World().make_engine)
    for sessions in (2, 2):
        assert resume_script(path, observe=silent, make_engine=World().make_engine) == path
        assert len(read_experiment(path)["sittings"]) == sessions
        assert not (path / STATE_FILE).exists()
    assert len(load_results(path).measurements["t"]) == 3


TWO = "TEST t 4\nEXEC copy\nDONE\nTEST u 4\nEXEC copy\nDONE\n"


def kept(path: Path) -> dict[str, int]:
    """How many kept trials each test has."""
    return {name: sum(row.kept for row in rows) for name, rows in load_results(path).measurements.items()}


def lose(path: Path, test: str, line: int) -> None:
    """Take a line out of a test's measurements."""
    file = path / test / "results.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:line] + lines[line + 1 :]))


def killed(path: Path) -> None:
    """Let the last session be one whose end was not recorded."""
    document = read_experiment(path)
    document["sittings"][-1]["how_ended"] = None
    for test in document["tests"]:
        test.pop("lines", None)
    write_experiment(path, document)


@pytest.mark.parametrize("older", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("by", ["directory", "state"])
def test_a_copy_is_resumed_and_its_original_stays_as_it_is(tmp_path: Path, by: str, older: bool) -> None:
    path = stopped(tmp_path, TWO, after=6)
    if older:
        document = json.loads((path / STATE_FILE).read_text())
        (path / STATE_FILE).write_text(json.dumps(document | {"results": str(path)}))
    copy = shutil.copytree(path, tmp_path / "copy")
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    named = copy if by == "directory" else copy / STATE_FILE
    assert resume_script(named, observe=silent, make_engine=World().make_engine) == copy
    assert kept(copy) == {"t": 4, "u": 4}
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_a_directory_that_was_moved_is_resumed_where_it_is(tmp_path: Path) -> None:
    path = stopped(tmp_path, TWO, after=6)
    moved = path.rename(tmp_path / "moved")
    assert resume_script(moved, observe=silent, make_engine=World().make_engine) == moved
    assert kept(moved) == {"t": 4, "u": 4}
    assert not path.exists()


def test_a_state_beside_results_that_are_gone_is_an_input_error(tmp_path: Path) -> None:
    path = stopped(tmp_path, f"CHECKPOINT {tmp_path}/kept.json\n{TWO}", after=6)
    assert json.loads((tmp_path / "kept.json").read_text())["results"] == "r"
    path.rename(tmp_path / "moved")
    with pytest.raises(InputError, match=f"{path}: no results here"):
        resume_script(tmp_path / "kept.json", observe=silent, make_engine=World().make_engine)


@pytest.mark.parametrize("line", [0, 1], ids=["first", "last"])
def test_a_trial_that_is_lost_of_the_test_under_way_is_made_again(tmp_path: Path, line: int) -> None:
    path = stopped(tmp_path, TWO, after=7)
    killed(path)
    assert kept(path) == {"t": 4, "u": 2}
    lose(path, "u", line)
    said: list[str] = []

    def observe(event: Event, ledger: Progress) -> None:
        said.extend([event.detail] if event.what == "warning" else [])

    resume_script(path, observe=observe, make_engine=World().make_engine)
    assert kept(path) == {"t": 4, "u": 4}
    assert [line.split(":")[0] for line in said] == ["test 'u'"]


@pytest.mark.parametrize("whole", [False, True], ids=["line", "directory"])
def test_a_trial_that_is_lost_of_a_test_that_has_ended_is_an_input_error(tmp_path: Path, whole: bool) -> None:
    path = stopped(tmp_path, TWO, after=7)
    killed(path)
    shutil.rmtree(path / "t") if whole else lose(path, "t", 0)
    with pytest.raises(InputError, match=f"{path}/t/results.jsonl: .* {0 if whole else 3} of the 4 "):
        resume_script(path, observe=silent, make_engine=World().make_engine)


def test_a_trial_that_is_lost_of_an_interleaved_test_is_made_again(tmp_path: Path) -> None:
    path = stopped(tmp_path, f"INTERLEAVE\n{TWO}DONE\n", after=6)
    killed(path)
    before = kept(path)
    lose(path, "t", 0)
    resume_script(path, observe=silent, make_engine=World().make_engine)
    assert all(count >= 4 for count in kept(path).values())
    assert sum(before.values()) == 5


def test_a_row_whose_block_cannot_be_is_an_input_error(tmp_path: Path) -> None:
    path = stopped(tmp_path, f"INTERLEAVE\n{TWO}DONE\n", after=6)
    file = path / "t" / "results.jsonl"
    first, *others = map(json.loads, file.read_text().splitlines())
    file.write_text("".join(json.dumps(row) + "\n" for row in (first | {"block": 10**9}, *others)))
    with pytest.raises(InputError, match=f"{file}: .* {10**9}"):
        resume_script(path, observe=silent, make_engine=World().make_engine)
