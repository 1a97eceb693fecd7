"""An experiment is resumed in the directory in which it was begun, and with the same programs, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from etude.errors import InputError, Interrupted
from etude.experiment.bench import Event
from etude.experiment.plan import NewLimits, make_plan
from etude.experiment.progress import Progress
from etude.experiment.run import resume, run
from etude.experiment.test import Test
from etude.machine import snapshot
from etude.machine.boot import record
from etude.machine.snapshot import Command
from etude.results.reader import load_results, read_experiment
from etude.script.run import read_script, resume_script, run_script
from support.fakes import World

SCRIPT = "TEST prog 4\nEXEC prog\nDONE\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory whose `bin`, with the program `prog`, comes first in PATH; snapshots know both."""

    def take(commands: Sequence[Command] = (), **_: object) -> dict[str, Any]:
        programs = snapshot.programs(Path("/"), commands, os.environ)
        return {"directory": {"path": os.getcwd()}, "programs": programs}

    monkeypatch.setattr("os.fsync", lambda file: None)
    monkeypatch.setattr("os.fdatasync", lambda file: None)
    monkeypatch.setattr("etude.machine.snapshot.take", take)
    monkeypatch.setenv(record.DIRECTORY_VARIABLE, str(tmp_path / "boot"))
    here = tmp_path / "here"
    make(here / "bin", "1")
    make(tmp_path / "other" / "bin", "2")
    monkeypatch.setenv("PATH", f"{here / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(here)
    return here


def make(directory: Path, text: str) -> None:
    """The program `prog` in a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "prog").write_text(f"#!/bin/sh\n: {text}\n")
    (directory / "prog").chmod(0o755)


def silent(event: Event, ledger: Progress) -> None:
    """Prints nothing."""


def ending(after: int, places: list[str] | None = None, do: Callable[[], object] = lambda: None) -> World:
    """A world that a signal ends after so many launches. It notes where each was made, and does something before it."""

    def before(number: int, world: World) -> None:
        do()
        if places is not None:
            places.append(os.getcwd())

    def signal(number: int, world: World) -> None:
        if number == after:
            world.signal(2)

    return World(before=before, after=signal)


class Bench:
    """`etude bench prog`, interrupted and resumed."""

    def begin(self, path: Path, world: World, **hooks: str) -> None:
        plan = make_plan([Test("prog", ("prog",), **hooks)], trials=4, seed=1, check_output="each")
        with pytest.raises(Interrupted):
            run(plan, path, make_engine=world.make_engine)

    def resume(self, path: Path, world: World) -> None:
        resume(path, make_engine=world.make_engine)


class Script:
    """`etude run s.ap`, whose test runs `prog`."""

    def begin(self, path: Path, world: World, **hooks: str) -> None:
        Path("s.ap").write_text(SCRIPT)
        with pytest.raises(Interrupted):
            run_script(
                read_script("s.ap", seed=1, counters="off"),
                path,
                observe=silent,
                make_engine=world.make_engine,
            )

    def resume(self, path: Path, world: World) -> None:
        resume_script(path, observe=silent, make_engine=world.make_engine)


VERBS = pytest.mark.parametrize("verb", [Bench(), Script()], ids=["bench", "run"])


@VERBS
@pytest.mark.parametrize("where", ["../r", "r"])
def test_it_runs_where_it_was_begun(
    verb: Bench | Script, where: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[str] = []
    verb.begin(Path(where), ending(3))
    monkeypatch.chdir("../other")
    verb.resume(Path("../here", where), ending(-1, places))
    assert set(places) == {str(place)}
    assert Path.cwd() == place.parent / "other"
    assert sum(row.kept for row in load_results(place / where).measurements["prog"]) == 4


@VERBS
def test_a_directory_that_is_gone_is_an_input_error(
    verb: Bench | Script, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb.begin(Path("../r"), ending(3))
    monkeypatch.chdir("../other")
    place.rename(place.parent / "moved")
    with pytest.raises(InputError, match=rf"^\.\./r: .*{place}"):
        verb.resume(Path("../r"), ending(-1))


@VERBS
def test_a_program_that_has_changed_is_an_input_error_and_nothing_is_written(
    verb: Bench | Script, place: Path
) -> None:
    verb.begin(Path("../r"), ending(3))
    make(place / "bin", "2")
    before = {file: file.read_bytes() for file in Path("../r").rglob("*") if file.is_file()}
    with pytest.raises(InputError, match=f"program prog .*{place}/bin/prog"):
        verb.resume(Path("../r"), ending(-1))
    assert {file: file.read_bytes() for file in Path("../r").rglob("*") if file.is_file()} == before
    make(place / "bin", "1")
    verb.resume(Path("../r"), ending(-1))


@VERBS
def test_another_program_of_the_name_is_an_input_error(
    verb: Bench | Script, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb.begin(Path("../r"), ending(3))
    rows = len(load_results(Path("../r")).measurements["prog"])
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{place.parent}/other/bin:{os.environ['PATH']}")
        for _ in range(2):
            with pytest.raises(InputError, match=f"program prog .*/other/bin/prog .*{place}/bin/prog"):
                verb.resume(Path("../r"), ending(-1))
    assert len(load_results(Path("../r")).measurements["prog"]) == rows
    verb.resume(Path("../r"), ending(-1))


def test_a_program_that_its_hooks_build_is_not_another(place: Path) -> None:
    builds = iter("2345678")

    def build() -> None:
        make(place / "bin", next(builds))

    Bench().begin(Path("r"), ending(3, do=build), setup="cc prog.c")
    Bench().resume(Path("r"), ending(-1))
    assert len(read_experiment(Path("r"))["sittings"]) == 2


def test_more_trials_of_another_program_are_refused_too(place: Path) -> None:
    run(make_plan(["prog"], trials=2, seed=1), Path("r"), make_engine=World().make_engine)
    make(place / "bin", "2")
    with pytest.raises(InputError, match="program prog"):
        resume(Path("r"), NewLimits(trials=4), make_engine=World().make_engine)
    assert read_experiment(Path("r"))["plan"]["rule"]["parameters"]["count"] == 2


def test_two_programs_of_one_name_in_a_script_are_told_apart(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = place.parent / "other" / "bin"
    monkeypatch.setattr(
        f"{__name__}.SCRIPT", f"TEST a 2\nEXEC prog\nDONE\nENV PATH={other}\nTEST b 3\nEXEC prog\nDONE\n"
    )
    Script().begin(Path("r"), ending(4))
    Script().resume(Path("r"), ending(-1))
    measured = load_results(Path("r")).measurements
    assert {name: sum(row.kept for row in rows) for name, rows in measured.items()} == {"a": 2, "b": 3}
    programs = read_experiment(Path("r"))["machine"]["before"]["programs"]
    assert {programs[name]["file"] for name in ("prog", str(other / "prog"))} == {
        str(place / "bin" / "prog"),
        str(other / "prog"),
    }
