"""Killed at any moment, Étude loses at most the trial in flight, and --resume finishes the experiment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from support.real import ETUDE, alive, called, children, experiment, lines

pytestmark = [pytest.mark.beside]

MOMENTS = 20
AT_THE_START = 2
"""Of the moments, those counted from the start of the program; others from when the experiment begins."""
TRIALS = 12


def start(directory: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [ETUDE, "bench", "-o", str(directory), "--seed", "7", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill(etude_process: subprocess.Popen[bytes], victim: str) -> None:
    """SIGKILL to étude, its engine, or both. The engine is the child; without one there is no engine yet. Of both,
    étude is stopped while its engine is killed, so that neither sees the other end."""
    victims = children(etude_process.pid) if victim != "etude" else []
    if victim != "engine":
        etude_process.send_signal(signal.SIGSTOP)
        victims.append(etude_process.pid)
    for pid in victims:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    etude_process.wait(timeout=30)


def completed(log: Path) -> int:
    """How often the measured command came to its end."""
    return len(log.read_text().splitlines()) if log.exists() else 0


def on_disk(directory: Path) -> dict[str, list[str]]:
    """Whole lines of each test's results."""
    found = {}
    for path in directory.glob("*/results.jsonl"):
        text = path.read_text()
        found[path.parent.name] = text[: text.rfind("\n") + 1].splitlines()
    return found


def check_resumed(directory: Path, before: dict[str, list[str]], tests: list[str]) -> None:
    document = experiment(directory)
    assert document["sittings"][-1]["how_ended"] == "complete"
    for test in tests:
        after = on_disk(directory)[test]
        assert after[: len(before.get(test, []))] == before.get(test, []), "what was on disk stays as it was"
        rows = lines(directory, test)
        trials = [(row["trial"], row["worker"]) for row in rows]
        assert len(set(trials)) == len(trials), "no trial twice"
        kept = [row["block"] for row in rows if row["kept"]]
        assert sorted(kept) == list(range(1, TRIALS + 1)), "each block once, none missing"


@pytest.mark.parametrize("victim", ["etude", "engine", "both"])
@pytest.mark.parametrize("kind", ["blocks", "repeat"])
def test_nothing_is_lost_but_the_trial_in_flight(victim: str, kind: str, tmp_path: Path) -> None:
    generator = random.Random(f"{victim} {kind}")
    hits = 0
    for moment in range(MOMENTS // 2):
        directory = tmp_path / f"r{moment}"
        log = tmp_path / f"log{moment}"
        command = f"sh -c 'sleep 0.01; echo x >> {log}'"
        tests = ["A", "B"] if kind == "blocks" else ["A"]
        named = [word for name in tests for word in ("-n", name, command)]
        process = start(directory, "--trials", str(TRIALS), *named)
        if moment >= AT_THE_START:  # a busy machine may take a while until there is something to lose
            while process.poll() is None and not (directory / "experiment.json").exists():
                time.sleep(0.002)
        time.sleep(generator.uniform(0.0, 0.4 if kind == "blocks" else 0.25))
        kill(process, victim)
        time.sleep(0.05)  # the engine, if it lives, ends what it started
        before, ran = on_disk(directory), completed(log)
        written = sum(map(len, before.values()))
        assert written >= ran - 1, f"{ran} trials came to their end, {written} are on disk"
        if not (directory / "experiment.json").exists():
            continue  # killed before there was anything to resume
        unfinished = (
            experiment(directory)["sittings"][-1:] and not experiment(directory)["sittings"][-1]["end"]
        )
        hits += bool(unfinished) or victim == "engine"
        called("bench", "--resume", str(directory), cwd=tmp_path)
        check_resumed(directory, before, tests)
    assert hits >= MOMENTS // 4, "most moments must be within the experiment"


@pytest.mark.parametrize("daemon", ["setsid", pytest.param("env -i setsid", marks=pytest.mark.needs_root)])
def test_a_daemon_that_survived_a_kill_is_ended_before_the_next_trial(daemon: str, tmp_path: Path) -> None:
    directory, noted, script = tmp_path / "r", tmp_path / "pid", tmp_path / "once"
    script.write_text(f"""test -e {noted} && exit
{daemon} sh -c 'echo $$ > {noted}.new; mv {noted}.new {noted}; exec sleep 600' </dev/null >/dev/null 2>&1 &
exec sleep 600
""")
    process = start(directory, "--trials", "2", "-n", "A", f"sh {script}")
    while process.poll() is None and not noted.exists():
        time.sleep(0.01)
    kill(process, "both")
    pid = int(noted.read_text())
    assert alive(pid), "it has outlived both"
    try:
        called("bench", "--resume", str(directory), cwd=tmp_path)
        assert not alive(pid)
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    [_, session] = experiment(directory)["sittings"]
    assert session["ended"] == [f"sleep (process {pid})"]
