from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cli.main import main
from etude.experiment import run as running
from support.builders import still_machine
from support.fakes import World, around


@pytest.fixture(autouse=True)
def _still_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)


@pytest.fixture(autouse=True)
def _all_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed must not depend on the locale of who runs the tests."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """What `etude` measures with, in an empty directory of its own."""
    made = World({"a": around(0.010), "b": around(0.012), "/bin/sh": around(0.015)})
    monkeypatch.setattr(running, "engine_maker", lambda: made.make_engine)
    directory = tmp_path / "here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return made


@pytest.fixture
def etude(world: World) -> Callable[..., int]:
    """Runs `etude …` and returns its exit code."""

    def call(*arguments: str) -> int:
        try:
            return main(list(arguments))
        except SystemExit as ended:
            code = ended.code
        assert isinstance(code, int)
        return code

    return call
