"""A bisection that is killed or interrupted ends as one that is not; what is measured before is not measured again."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.bisections import EXACT, ROUNDS, SHOWN, Bisect
from support.c_history import CHistory
from support.real import ETUDE, experiment, processes_with

pytestmark = [pytest.mark.needs_program("git")]

PATIENCE_S = 120.0


def started(history: CHistory, here: Path, *words: str) -> subprocess.Popen[str]:
    """A bisection into `here`/results."""
    place = str(history.repository)
    return subprocess.Popen(
        [ETUDE, "bisect", "v1", "main", "--repository", place, "-o", "results", *words],
        cwd=here,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def trials(results: Path) -> dict[str, list[str]]:
    """Whole lines of each commit's results."""
    return {
        path.parent.name: path.read_text().splitlines()
        for path in results.glob("*/results.jsonl")
        if path.read_text().endswith("\n")
    }


def wait_for(process: subprocess.Popen[str], results: Path, count: int) -> None:
    """Until so many trials are on disk."""
    until = time.monotonic() + PATIENCE_S
    while sum(map(len, trials(results).values())) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


def check_kept(results: Path, before: dict[str, list[str]]) -> None:
    """Nothing of what was measured is lost, or was made twice."""
    after = trials(results)
    for name, rows in before.items():
        assert after[name][: len(rows)] == rows
    for rows in after.values():
        numbers = [json.loads(row)["trial"] for row in rows]
        assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("count", [1, 3, 14, 40])
def test_it_resumes_to_the_same_commit(
    history: CHistory, bisect: Bisect, number: signal.Signals, count: int
) -> None:
    results = bisect.here / "results"
    process = started(history, bisect.here, *EXACT, *SHOWN)
    wait_for(process, results, count)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE_S)
    before = trials(results)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    words = ["--resume", "results"]
    if number != signal.SIGKILL:
        line = said.strip().splitlines()[-1]
        program, verb, *words = shlex.split(line[line.rindex("etude bisect --resume") :])
        assert (program, verb) == ("etude", "bisect")
        assert "Traceback" not in said
    found = bisect.run(*words)
    assert found["answer"] == "commit"
    assert found["commits"] == [history.commits[history.step_at]]
    assert found["skipped"] == []
    check_kept(results, before)
    assert len(experiment(results)["sittings"]) == 2
    assert found["trials"] == sum(
        json.loads(row)["kept"] for rows in trials(results).values() for row in rows
    )


def sleeping(seconds: str) -> list[int]:
    """Processes that sleep for so long."""
    return [pid for pid in processes_with(seconds) if cmdline(pid) == f"sleep\0{seconds}\0"]


def cmdline(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_build_ends_with_it(history: CHistory, bisect: Bisect, number: signal.Signals) -> None:
    mark = f"3{os.getpid()}"
    process = started(history, bisect.here, "--build", f"sleep {mark}", "--metric", ROUNDS, *SHOWN)
    until = time.monotonic() + PATIENCE_S
    while not (found := sleeping(mark)):
        assert time.monotonic() < until
        time.sleep(0.01)
    begun = time.monotonic()
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert time.monotonic() - begun < int(mark), "it has not waited for the build"
        assert sleeping(mark) == []
    # One that was killed leaves its build, which the next session ends.
    document = experiment(bisect.here / "results")
    document["plan"]["request"]["build"] = f"true sleep {mark}"
    (bisect.here / "results" / "experiment.json").write_text(json.dumps(document))
    assert bisect.run("--resume", "results")["commits"] == [history.commits[history.step_at]]
    assert not set(found) & set(sleeping(mark))


def test_two_at_once_are_refused(history: CHistory, bisect: Bisect) -> None:
    process = started(history, bisect.here, *EXACT, "--", "sleep", "1000")
    until = time.monotonic() + PATIENCE_S
    while not (bisect.here / "results" / "experiment.json").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    done = subprocess.run(
        [ETUDE, "bisect", "--resume", "results"], cwd=bisect.here, capture_output=True, text=True, check=False
    )
    assert done.returncode == 5
    process.terminate()
    process.communicate(timeout=PATIENCE_S)


def test_other_commits_of_that_name_are_refused(history: CHistory, bisect: Bisect) -> None:
    bisect(history, *EXACT, "-o", "results", "--budget", "1ms", *SHOWN, check=8)
    file = bisect.here / "results" / "experiment.json"
    document = json.loads(file.read_text())
    document["plan"]["request"]["bad"] = "main~2"
    file.write_text(json.dumps(document))
    done = subprocess.run(
        [ETUDE, "bisect", "--resume", "results"], cwd=bisect.here, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
