"""A search that is killed at any moment, again and again, makes the same decisions and gives the same answer."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from etude.peak.search_store import SearchStore
from etude.peak.task import Trial
from support.real import ETUDE, etude, one_line

pytestmark = pytest.mark.beside

POLICIES = ("binsearch", "posterior")
SPEED = "8000"
"""Of simulated time: a trial takes some 40 ms, so that most kills are within the search."""
MOST_KILLS = 60
MOST_TRIALS = 4
"""Of a session, before it is killed within its next two; however busy the machine is, the search gets on."""


def arguments(policy: str, directory: Path, seed: int) -> list[str]:
    return [
        "peak", "--simulate", "mmc:430", "--policy", policy, "--seed", str(seed), "--seed-load", "300",
        "-o", str(directory), "--json", "--quiet",
    ]  # fmt: skip


def offers(directory: Path) -> list[tuple[int, float, float, str]]:
    """What was decided, in order."""
    found = []
    for path in directory.glob("load-*/results.jsonl"):
        for line in map(json.loads, path.read_text().splitlines()):
            peak = line["peak"]
            found.append((line["trial"], peak["load"], peak["runlength_s"], peak["why"]))
    return sorted(found)


def without_place(text: str) -> dict[str, Any]:
    (found,) = json.loads(text)["searches"]
    del found["results"]
    found["status"] = [word for word in found["status"] if word != "resumed"]
    return dict(found)


def killed_until_it_ends(
    words: list[str], directory: Path, generator: random.Random
) -> tuple[str, int, list[int]]:
    """Standard output of the session that came to its end, how many were killed, and trials on disk after each."""
    on_disk = []
    for kills in range(MOST_KILLS):
        process = subprocess.Popen(
            [ETUDE, *words, "--speed", SPEED], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        began, enough = sittings(directory), rows(directory) + generator.randint(0, MOST_TRIALS)
        while process.poll() is None and (sittings(directory) == began or rows(directory) < enough):
            time.sleep(0.005)
        time.sleep(generator.uniform(0.0, 0.08))
        if process.poll() is not None:
            out, _ = process.communicate()
            return out, kills, on_disk
        process.send_signal(signal.SIGKILL)
        process.communicate()
        on_disk.append(len(trials(directory)))
    pytest.fail(f"not ended after {MOST_KILLS} kills")


def rows(directory: Path) -> int:
    """Trials that are written whole."""
    return sum(path.read_bytes().count(b"\n") for path in directory.glob("load-*/results.jsonl"))


def sittings(directory: Path) -> int:
    try:
        return len(json.loads((directory / "experiment.json").read_text())["sittings"])
    except FileNotFoundError:
        return 0


def trials(directory: Path) -> list[Trial]:
    return SearchStore(directory).trials() if (directory / "experiment.json").exists() else []


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_decisions_follow_after_any_kill(policy: str, tmp_path: Path) -> None:
    if policy == "posterior":
        pytest.importorskip("etude.peak.policies.posterior")
    generator = random.Random(policy)
    seed = POLICIES.index(policy)
    undisturbed = etude(*arguments(policy, tmp_path / "once", seed), cwd=tmp_path, check=None)
    assert undisturbed.returncode in (0, 1), undisturbed.stderr
    directory = tmp_path / "killed"
    out, kills, on_disk = killed_until_it_ends(arguments(policy, directory, seed), directory, generator)
    assert kills >= 2, "it has to be killed to be a test"
    assert on_disk == sorted(on_disk), "nothing that was on disk is lost"
    assert any(0 < count < len(trials(directory)) for count in on_disk), "some kills are within the search"
    assert offers(directory) == offers(tmp_path / "once")
    assert trials(directory) == trials(tmp_path / "once")
    assert without_place(out) == without_place(undisturbed.stdout)


def test_an_interrupt_keeps_all_and_says_how_to_go_on(tmp_path: Path) -> None:
    directory = tmp_path / "r"
    words = arguments("binsearch", directory, 5)
    process = subprocess.Popen(
        [ETUDE, *words, "--speed", "500"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and len(trials(directory)) < 2:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    line = one_line(error)
    assert line.startswith("etude: ended by SIGINT; ")
    assert f" -o {directory} " in line
    kept = trials(directory)
    assert len(kept) >= 2
    etude(*words, cwd=tmp_path, check=None)
    assert trials(directory)[: len(kept)] == kept
