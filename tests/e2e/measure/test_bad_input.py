"""Bad input is one line that says what, where and what to do, with the documented exit code; nothing is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from etude.program import engine_path
from support.real import ETUDE, called, etude, experiment, lines, one_line

pytestmark = pytest.mark.beside


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    done = called("bench", "no-such-program-here", cwd=tmp_path, check=4)
    assert "no-such-program-here" in one_line(done.stderr)
    assert "not found" in one_line(done.stderr)
    (directory,) = (tmp_path / "etude-results").iterdir()
    told = called("stats", str(directory), cwd=tmp_path).stdout  # its results can be read
    assert re.search(r": 0 trials, 1\b", told)


def test_a_command_that_is_not_executable(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program\n")
    done = called("bench", str(tmp_path / "data"), cwd=tmp_path, check=4)
    assert "data" in one_line(done.stderr)
    assert "ermission" in one_line(done.stderr) or "executable" in one_line(done.stderr)


def test_a_command_that_dies_by_a_signal(tmp_path: Path) -> None:
    done = called("bench", "-o", "r", "-n", "dies", "sh -c 'kill -SEGV $$'", cwd=tmp_path, check=4)
    assert "signal 11 (SIGSEGV)" in one_line(done.stderr)
    (row,) = lines(tmp_path / "r", "dies")
    assert (row["signal"], row["exit_status"], row["kept"], row["why"]) == (11, None, False, "failed")


def test_a_command_that_fails_late_keeps_what_was_measured(tmp_path: Path) -> None:
    command = f"sh -c 'echo x >> {tmp_path}/n; test $(wc -l < {tmp_path}/n) -lt 5 || {{ echo broken >&2; exit 3; }}'"
    done = called("bench", "-o", "r", "-n", "late", command, cwd=tmp_path, check=4)
    line = one_line(done.stderr)
    assert "trial 4" in line
    assert "exit status 3" in line
    assert "broken" in line
    assert "--ignore-failure" in line
    rows = lines(tmp_path / "r", "late")
    assert [row["kept"] for row in rows] == [False, True, True, True, False]


def test_a_failing_repetition_keeps_what_was_measured(tmp_path: Path) -> None:
    command = f"sh -c 'echo x >> {tmp_path}/n; test $(wc -l < {tmp_path}/n) -lt 5'"
    done = called("bench", "--trials", "50", "-o", "r", "-n", "late", command, cwd=tmp_path, check=4)
    assert "trial 4" in one_line(done.stderr)
    assert [row["kept"] for row in lines(tmp_path / "r", "late")] == [False, True, True, True, False]


def test_a_failing_hook_names_itself(tmp_path: Path) -> None:
    done = called("bench", "--prepare", "echo no disk >&2; false", "true", cwd=tmp_path, check=4)
    line = one_line(done.stderr)
    assert "prepare" in line
    assert "exit status 1" in line
    assert "no disk" in line


@pytest.mark.skipif(
    os.geteuid() == 0, reason="root may write anywhere; a file in the way stands in for it below"
)
def test_a_directory_that_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    done = called("bench", "-o", "locked/r", "true", cwd=tmp_path, check=5)
    assert "locked/r" in one_line(done.stderr)


def test_a_results_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = called("bench", "-o", "file/r", "true", cwd=tmp_path, check=5)
    assert "file/r" in one_line(done.stderr)


@pytest.mark.needs_root
@pytest.mark.serial
@pytest.mark.parametrize("options", [["--trials", "3000"], ["--trials", "3000", "--conclude", "true"]])
def test_a_full_disk_keeps_every_whole_trial(tmp_path: Path, options: list[str]) -> None:
    """A tmpfs of 1 MiB in a mount namespace of its own; what is on it is copied out."""
    small, copy = tmp_path / "small", tmp_path / "copy"
    small.mkdir()
    script = f"""
        mount -t tmpfs -o size=1m none {small}
        head -c 900000 /dev/zero > {small}/ballast
        {ETUDE} bench -o {small}/r -n true {" ".join(options)} true; code=$?
        rm {small}/ballast; cp -r {small}/r {copy}
        {ETUDE} stats {copy} > {tmp_path}/stats || exit 99
        exit $code
    """
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 5, done.stderr
    assert "o space" in one_line(done.stderr)
    text = (copy / "true" / "results.jsonl").read_text()
    assert text.endswith("\n")
    trials = [json.loads(line)["trial"] for line in text.splitlines()]
    assert trials == list(range(len(trials)))
    assert len(trials) > 10
    assert f": {len(trials) - 1} trials" in (tmp_path / "stats").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "at least one command"),
        (["--metric", "n=(", "true"], "regular expression"),
        (["--metric", "=x", "true"], "NAME=REGEX"),
        (["-P", "n=1..", "echo {n}"], "1..32*2"),
        (["-P", "n=8..1", "echo {n}"], "never gets"),
        (["-P", "n=1,2", "true"], "{n}"),
        (["--precision", "wide", "true"], "5%"),
        (["--precision", "7", "true"], "7 would be 700 %"),
        (["--time", "soon", "true"], "90s"),
        (["--trials", "0", "true"], "at least 1"),
        (["--min-trials", "1", "true"], "at least 2"),
        (["--workers", "0", "true"], "at least 1"),
        (["--cpu", "x", "true"], "0,2-3"),
        (["--cpu", "0", "--workers", "2", "true"], "2 workers on CPUs 0"),
        (["--shell", "--inner", "auto", "true"], "--shell"),
        (["--timeout", "-1", "true"], "500ms"),
        (["--export", "pdf", "true"], "markdown"),
        (["-n", "a", "-n", "b", "true"], "2 names"),
        (["true", "true"], "called"),
        (["'unclosed"], "quote"),
        ([""], "empty"),
        (["--frobnicate", "true"], "frobnicate"),
    ],
)
def test_a_bad_option_value_starts_nothing(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = called("bench", *arguments, cwd=tmp_path, check=2)
    assert says in one_line(done.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def results(tmp_path: Path) -> Path:
    called("bench", "-o", "r", "-n", "true", "--trials", "3", "true", cwd=tmp_path)
    return tmp_path / "r"


def test_results_of_a_newer_version(results: Path) -> None:
    document = experiment(results) | {"version": 99}
    (results / "experiment.json").write_text(json.dumps(document))
    for arguments in (["stats", "r"], ["bench", "--resume", "r"], ["bench", "--baseline", "r", "true"]):
        done = called(*arguments, cwd=results.parent, check=3)
        assert "version 99" in one_line(done.stderr)
        assert "newer" in one_line(done.stderr)


def test_a_torn_last_line_is_left_out_and_reported(results: Path) -> None:
    path = results / "true" / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    done = called("stats", "r", cwd=results.parent)
    assert "was truncated" in done.stdout
    assert ": 2 trials" in done.stdout


def test_a_bad_line_in_the_middle_is_named(results: Path) -> None:
    path = results / "true" / "results.jsonl"
    text = path.read_text().splitlines(keepends=True)
    path.write_text("".join([text[0], "nonsense\n", *text[1:]]))
    done = called("stats", "r", cwd=results.parent, check=3)
    assert "results.jsonl:2:" in one_line(done.stderr)


@pytest.mark.parametrize("content", [None, "", "{}", "[1]", '{"format": "something else", "version": 1}'])
def test_a_directory_that_is_not_ours(tmp_path: Path, content: str | None) -> None:
    (tmp_path / "x").mkdir()
    if content is not None:
        (tmp_path / "x" / "experiment.json").write_text(content)
    done = called("stats", "x", cwd=tmp_path, check=3)
    assert "x" in one_line(done.stderr)


def test_results_are_never_overwritten(results: Path) -> None:
    before = (results / "true" / "results.jsonl").read_text()
    done = called("bench", "-o", "r", "true", cwd=results.parent, check=3)
    assert "--resume" in one_line(done.stderr)
    assert (results / "true" / "results.jsonl").read_text() == before


def test_an_engine_that_is_missing(tmp_path: Path) -> None:
    done = etude(
        "bench", "true", cwd=tmp_path, check=5, env=os.environ | {"ETUDE_ENGINE": "/nowhere/etude-engine"}
    )
    assert "/nowhere/etude-engine" in one_line(done.stderr)


def test_an_engine_that_is_not_one(tmp_path: Path) -> None:
    other = shutil.which("true") or sys.executable
    done = etude("bench", "true", cwd=tmp_path, check=5, env=os.environ | {"ETUDE_ENGINE": other})
    assert other in one_line(done.stderr)


def test_output_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [ETUDE, "bench", "--trials", "2", "true"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 5
    assert "standard output" in one_line(done.stderr)


@pytest.mark.parametrize("verb", [["bench"], ["peak"], ["load"], []])
def test_help_that_cannot_be_written_is_one_line(tmp_path: Path, verb: list[str]) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" > /dev/full', "sh", ETUDE, *verb, "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5
    assert "standard output" in one_line(done.stderr)


@pytest.mark.parametrize("verb", ["load", "replay", "compile", "record", "capture", "io", "ipc", "measure"])
def test_an_error_that_cannot_be_written_keeps_its_exit_code(tmp_path: Path, verb: str) -> None:
    line = ["sh", "-c", 'exec "$@" 2> /dev/full', "sh", engine_path(), verb, "--no-such-option"]
    assert subprocess.run(line, cwd=tmp_path, check=False).returncode in {2, 64}


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_do_no_harm(tmp_path: Path, closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{ETUDE} bench -o r -n t --trials 2 true {closed}"], cwd=tmp_path, check=False
    )
    assert done.returncode == (5 if ">&-" in closed.split() else 0), "what is asked for is not printed"
    assert len(lines(tmp_path / "r", "t")) == 3


def test_an_encoding_that_lacks_characters_does_no_harm(tmp_path: Path) -> None:
    done = etude(
        "bench", "--trials", "2", "true", cwd=tmp_path, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )
    assert "trials" in done.stdout
