"""An instrument that fails is dropped with one line; what was measured, and the other instrument, stay."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from etude.why.instruments import missing
from support.real import etude, one_line

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_program("perf", package="linux-perf")]
PAIRS = 7
KILLS = '#!/bin/sh\n[ "$(cat /proc/$PPID/comm)" = perf ] && kill -9 $PPID\nexec sleep "$1"\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two short tests, and of two that end their parent if it is perf."""
    if reason := missing("timeline"):
        pytest.skip(reason)
    here = tmp_path_factory.mktemp("failing")
    (here / "kills").write_text(KILLS)
    (here / "kills").chmod(0o755)
    for name, program in (("r", "sleep"), ("k", "./kills")):
        tests = ["-n", "a", f"{program} 0.01", "-n", "b", f"{program} 0.03"]
        etude("bench", "-o", name, "--trials", "5", "--timeout", "15s", *tests, cwd=here)
    return here


@pytest.fixture
def instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a shell line in front of a program of this name; `$count` is the number of its calls with that word."""

    def put(name: str, word: str, line: str) -> None:
        real = engine_path() if name == "etude-engine" else shutil.which(name)
        (tmp_path / name).write_text(
            f'#!/bin/sh\nif [ "$1" = {word} ]; then echo >> {tmp_path}/n; count=$(wc -l < {tmp_path}/n); {line}; fi\n'
            f'exec {real} "$@"\n'
        )
        (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        if name == "etude-engine":
            monkeypatch.setenv("ETUDE_ENGINE", str(tmp_path / name))

    return put


def explained(place: Path, results: str, into: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is told, and what is stored."""
    command = ["why", results, "-o", into, "--pairs", str(PAIRS), "--json", "-q"]
    told = json.loads(etude(*command, cwd=place).stdout)
    assert len(told["lacking"]) == 1
    assert json.loads(etude(*command, cwd=place).stdout)["lacking"] == told["lacking"]
    return told, json.loads((place / into / "why.json").read_text())


def names_of(stored: dict[str, Any]) -> set[str]:
    """Names of all causes of all runs."""
    return {cause[2] for side in stored["runs"] for run in side for cause in run["causes"]}


def recorded_only(told: dict[str, Any], stored: dict[str, Any]) -> bool:
    """True if all pairs have calls, and the causes are of these."""
    kinds = {cause[1] for side in stored["runs"] for run in side for cause in run["causes"]}
    counts = {len(side) for name in ("plain_s", "calls", "runs") for side in stored[name]}
    return kinds == {"recorded call", "outside of calls"} and counts == {PAIRS} == {told["timeline"]["pairs"]}


def test_a_program_that_ends_perf_is_explained_by_its_recorded_calls(place: Path) -> None:
    assert recorded_only(*explained(place, "k", "killed"))


def test_a_program_that_is_too_slow_under_perf_alone_is_too(place: Path, instead: Any) -> None:
    instead("perf", "record", "[ $count -gt 1 ] && sleep 60")
    assert recorded_only(*explained(place, "r", "slow"))


def test_perf_that_fails_in_the_middle_leaves_the_pairs_that_it_has_measured(
    place: Path, instead: Any
) -> None:
    """One call asks whether it works, two are warm-ups."""
    instead("perf", "record", f"[ $count -gt {3 + 2 * (PAIRS - 1)} ] && exit 9")
    told, stored = explained(place, "r", "middle")
    assert [len(side) for side in stored["plain_s"] + stored["calls"]] == [PAIRS] * 4
    assert [len(side) for side in stored["runs"]] == [PAIRS - 1] * 2
    assert told["timeline"]["pairs"] == PAIRS - 1
    assert "clock_nanosleep" in names_of(stored)
    results = json.loads((place / "middle" / "experiment.json").read_text())
    assert "a: timeline" not in [test["name"] for test in results["plan"]["tests"]]
    assert "a: timeline" in [test["name"] for test in results["tests"]]


def test_a_recorder_that_is_refused_leaves_the_timeline(place: Path, instead: Any) -> None:
    instead("etude-engine", "record", "exit 5")
    told, stored = explained(place, "r", "refused")
    assert [len(side) for side in stored["runs"] + stored["calls"]] == [PAIRS] * 2 + [0] * 2
    assert told["counts"] == []
    assert "clock_nanosleep" in names_of(stored)


def test_a_file_of_perf_that_cannot_be_read_is_of_one_pair(place: Path, instead: Any) -> None:
    instead("perf", "script", "[ $count = 3 ] && exit 1")
    _, stored = explained(place, "r", "unread")
    assert [len(side) for side in stored["runs"]] == [PAIRS - 1] * 2
    assert "clock_nanosleep" in names_of(stored)


def test_a_test_that_fails_without_an_instrument_ends_the_run(place: Path) -> None:
    (place / "once").write_text("#!/bin/sh\n[ ! -e stop ]\n")
    (place / "once").chmod(0o755)
    etude("bench", "-o", "f", "--trials", "5", "-n", "a", "./once", "-n", "b", "sleep 0.01", cwd=place)
    (place / "stop").touch()
    one_line(etude("why", "f", "-q", cwd=place, check=4).stderr)
