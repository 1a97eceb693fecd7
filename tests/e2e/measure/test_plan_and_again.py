"""`etude plan` and `etude run --again` as a user meets them; and the examples of docs/howto/planning.md."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from support.places import ROOT
from support.real import called, experiment, one_line

pytestmark = pytest.mark.beside

PLANNING = (ROOT / "docs" / "howto" / "planning.md").read_text()
COMMANDS = re.findall(r"^\$ (etude .*)$", PLANNING, re.M)


def words(line: str) -> list[str]:
    return shlex.split(line)[1:]


def test_every_command_of_the_planning_document_runs_as_it_is_printed(tmp_path: Path) -> None:
    assert len(COMMANDS) >= 6
    for block in re.findall(r"^```ap (\S+)\n(.*?)^```", PLANNING, re.M | re.S):
        (tmp_path / block[0]).write_text(block[1])
    for line in COMMANDS:
        done = called(*words(line), cwd=tmp_path, check=None)
        assert done.returncode in (0, 1), (line, done.stderr)
        assert done.returncode == 0 or "--again" in line, (line, done.stderr)


@pytest.mark.serial
def test_a_pilot_is_planned_and_its_command_line_is_one(tmp_path: Path) -> None:
    called("bench", "--trials", "8", "sleep 0.01", "sleep 0.02", "-o", "pilot", cwd=tmp_path)
    done = called("plan", "pilot", "--effect", "50%", "--deadline", "2h", cwd=tmp_path)
    assert re.search(r"\b8 pairs .*sleep 0\.01 .*sleep 0\.02\b", done.stdout)
    assert re.search(r"^ 50 % ← +\d+ ", done.stdout, re.M)
    assert "Within 2.0 h: " in done.stdout
    line = re.search(r"To do it: etude (.*)$", done.stdout, re.M)
    assert line is not None
    asked = words(f"etude {line[1]}")
    assert asked[:2] == ["bench", "--trials"]
    called(*asked, "-o", "done", cwd=tmp_path)
    assert experiment(tmp_path / "done")["plan"]["rule"]["parameters"] == {"count": int(asked[2])}
    document = json.loads(called("plan", "pilot", "--json", cwd=tmp_path).stdout)
    cost = document["plans"][0]["seconds_per_trial"]
    starts = sorted(
        json.loads(row)["start_ns"]
        for file in (tmp_path / "pilot").glob("sleep-0.0[12]/results.jsonl")
        for row in file.read_text().splitlines()
    )
    assert cost == pytest.approx((starts[-1] - starts[0]) / 1e9 / (len(starts) - 1))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none"], 3, "none"),
        (["few"], 3, "pilot of 5"),
        (
            ["one", "--effect", "1%"],
            2,
            "--effect is a difference between two tests, and there is only 'true'",
        ),
        (["one", "--metric", "nonsense"], 2, "metric 'nonsense'"),
        (["one", "--power", "2"], 2, "2 would be 200 %"),
        (["one", "--deadline", "soon"], 2, "expected a duration"),
        ([], 2, "PILOT"),
    ],
)
def test_what_cannot_be_planned_is_one_line(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    called("bench", "--trials", "3", "true", "sleep 0.001", "-o", "few", cwd=tmp_path)
    called("bench", "--trials", "6", "true", "-o", "one", cwd=tmp_path)
    done = called("plan", *arguments, cwd=tmp_path, check=code)
    assert message in one_line(done.stderr)


@pytest.mark.serial
def test_an_experiment_of_bench_is_repeated_with_a_new_order(tmp_path: Path) -> None:
    called("bench", "--trials", "8", "sleep 0.01", "sleep 0.03", "-o", "then", cwd=tmp_path)
    done = called("run", "--again", "then", "-o", "now", cwd=tmp_path)
    assert re.search(r"^ sleep 0.03 / sleep 0.01 .* (reproduced|undecided) *$", done.stdout, re.M)
    assert "not comparable" in done.stdout
    then, now = experiment(tmp_path / "then"), experiment(tmp_path / "now")
    assert now["plan"] | {"seed": 0} == then["plan"] | {"seed": 0}
    assert now["plan"]["seed"] != then["plan"]["seed"]
    assert now["verb"] == "bench"
    same = called("run", "--again", "then", "-o", "same", "--seed", "5", "--json", cwd=tmp_path)
    assert json.loads(same.stdout)["outcome"] in ("reproduced", "undecided")
    assert experiment(tmp_path / "same")["plan"]["seed"] == 5


@pytest.mark.serial
def test_a_verdict_that_is_contradicted_is_exit_code_1(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nsleep 0.3\n")
    program.chmod(0o755)
    called("bench", "--trials", "8", "./program", "sleep 0.1", "-o", "then", cwd=tmp_path)
    program.write_text("#!/bin/sh\nexit 0\n")
    done = called("run", "--again", "then", "-o", "now", cwd=tmp_path, check=1)
    assert re.search(r"sleep 0.1 / ./program: not reproduced", done.stdout)
    assert "opposite direction" in done.stdout
    assert re.search(r"\b1 not reproduced\b", done.stdout.splitlines()[-1])


@pytest.mark.serial
def test_a_script_is_repeated_from_its_text_and_not_from_the_file_on_disk(tmp_path: Path) -> None:
    text = "INCLUDE n.inc\nINTERLEAVE\nTEST a %N%\nEXEC sleep 0.01\nDONE\nTEST b %N%\nEXEC sleep %LONG%\nDONE\nDONE\n"
    (tmp_path / "x.ap").write_text(text)
    (tmp_path / "n.inc").write_text("VAR N=6\n")
    called("run", "x.ap", "LONG=0.03", "-o", "then", cwd=tmp_path)
    (tmp_path / "x.ap").write_text("STOP\n")
    (tmp_path / "n.inc").unlink()
    done = called("run", "--again", "then", "-o", "now", cwd=tmp_path)
    assert f"{tmp_path}/x.ap has changed" in done.stdout
    assert f"{tmp_path}/n.inc is gone" in done.stdout
    assert re.search(r"^ b / a .* (reproduced|undecided) *$", done.stdout, re.M)
    then, now = experiment(tmp_path / "then"), experiment(tmp_path / "now")
    assert [test["name"] for test in now["tests"]] == ["a", "b"]
    for member in ("text", "script", "assignments"):
        assert now["plan"][member] == then["plan"][member]
    assert now["digest"] == then["digest"]
    called("run", "--again", "now", "-o", "third", cwd=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--again", "none"], 3, "none"),
        (["--again", "then", "x.ap"], 2, "--again "),
        (["--again", "then", "--probe", "memory"], 2, "--again "),
        (
            ["--again", "then", "--between-sessions", "-1"],
            2,
            "--between-sessions: '-1': ",
        ),
        (["x.ap", "--between-sessions", "1"], 2, "--between-sessions"),
        (["--again", "then", "-o", "then"], 3, "holds results already"),
        (["--again", "x.res"], 3, "can be repeated"),
        (["--again", "failed"], 3, "no included trial"),
    ],
)
def test_what_cannot_be_repeated_is_one_line(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    called("bench", "--trials", "3", "true", "-o", "then", cwd=tmp_path)
    called("bench", "--trials", "3", "false", "-o", "failed", cwd=tmp_path, check=4)
    (tmp_path / "x.ap").write_text("TEST x 3\nEXEC true\nDONE\n")
    called("run", "x.ap", "-o", "script", cwd=tmp_path)
    (tmp_path / "script" / "x.res").rename(tmp_path / "x.res")
    done = called("run", *arguments, cwd=tmp_path, check=code)
    assert message in one_line(done.stderr)
