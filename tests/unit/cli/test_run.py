"""`etude run`: which options reach the script, and what a script is resumed with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from etude.cli.measure import pool_run
from etude.cluster.distributed.jobs import document_of
from etude.cluster.pool.job import PoolSpec
from etude.experiment.monitoring import Monitoring
from etude.results.writer import write_experiment
from etude.script.run import ScriptOptions, plan_of, read_script
from support import builders
from support.fakes import World

SCRIPT = "INCLUDE n.inc\nTEST t %N%\nEXEC a\nDONE\n"


class Seen(Exception):
    """Ends the verb where the script would begin."""


@pytest.fixture
def script(world: World) -> Path:
    """A script that includes a file of the directory `library`; returns the working directory."""
    Path("library").mkdir()
    Path("library/n.inc").write_text("VAR N=2\n")
    Path("s.ap").write_text(SCRIPT)
    return Path.cwd()


def seen_by(patch: pytest.MonkeyPatch, name: str) -> tuple[list[Any], dict[str, Any]]:
    """What the function of that name is called with, once it is."""
    words: list[Any] = []
    options: dict[str, Any] = {}

    def instead(*given: Any, **named: Any) -> None:
        words.extend(given)
        options.update(named)
        raise Seen

    patch.setattr(f"etude.cli.measure.run.{name}", instead)
    return words, options


def test_each_option_reaches_the_script(
    script: Path, etude: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, options = seen_by(monkeypatch, "run_script")
    given = ["--seed", "7", "-I", "library", "--no-res", "--counters", "off", "--mask", "pin=([0-9]+)"]
    given += ["--probe", "disk", "--probe", "memory", "--watch", "elapsed", "--monitor", "500ms"]
    with pytest.raises(Seen):
        etude("run", "s.ap", "M=3", "-o", "out", *given)
    asked, directory = words
    assert isinstance(asked, ScriptOptions)
    assert (asked.seed, asked.res, asked.counters, asked.masks) == (7, False, "off", ("pin=([0-9]+)",))
    assert asked.assignments == {"M": "3", "PROBES": "disk memory", "WATCH": "elapsed"}
    assert directory == "out"
    assert options["monitor"] == Monitoring(0.5, 5)


def test_a_script_that_is_resumed_finds_what_it_includes(
    script: Path, etude: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, options = seen_by(monkeypatch, "resume_script")
    Path("out").mkdir()
    write_experiment(Path("out"), document())
    with pytest.raises(Seen):
        etude("run", "--resume", "out", "-I", "library")
    assert (words, options["directories"]) == ([Path("out")], ["library"])


def test_a_script_over_a_pool_is_resumed_as_it_was_begun(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace(
        read_script(
            str(script / "s.ap"), ["M=3"], seed=7, directories=["library"], res=False, counters="off"
        ),
        masks=("pin=([0-9]+)",),
    )
    Path("out").mkdir()
    spec = PoolSpec("local")
    members = document_of("run", "s", plan_of(asked), asked.program.digest, spec, monitor=Monitoring(0.5, 1))
    write_experiment(Path("out"), {**document(), **members})
    resumed: list[Any] = []
    monkeypatch.setattr(pool_run, "_tests", lambda *given: resumed.extend(given))
    assert pool_run.go_on(Path("out"), "script", ["library"])
    path, then, its_pool, again, include = resumed
    assert (path, its_pool, include) == (Path("out"), spec, ["library"])
    assert then["monitor"] == {"every_s": 0.5, "top": 1}
    assert plan_of(again) == plan_of(asked)


@pytest.mark.parametrize(
    "given",
    [
        ["--seed", "0"], ["--probe", "disk"], ["--watch", "elapsed"], ["--counters", "off"], ["--no-res"],
        ["--check"], ["--list"], ["--pool", "local"], ["--mask", "x"], ["--monitor", "off"], ["-o", "other"],
        ["--monitor", "1s"], ["--monitor-top", "3"], ["--counters", "auto"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_option_that_a_resumed_script_would_ignore_is_refused(
    given: list[str], script: Path, etude: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("out").mkdir()
    write_experiment(Path("out"), document())
    Path("state.json").write_text("{}")
    option = "--output" if given[0] == "-o" else given[0]
    for words in (["--resume", "out"], ["state.json"]):
        assert etude("run", *words, *given) == 2
        assert capsys.readouterr().err.endswith(f"leave out {option}\n")
    if option not in ("--seed", "--output"):
        assert etude("run", "--again", "out", *given) == 2
        assert capsys.readouterr().err.endswith(f"leave out {option}\n")


def document() -> Mapping[str, Any]:
    """The experiment.json of a script that has not begun."""
    return {**builders.document([]), "verb": "run", "sittings": []}
