"""Surfaces of the real thing: commands, a script and a server, killed at any moment, with nothing left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.places import EXAMPLES
from support.real import ETUDE, called, etude, one_line, processes_with

pytestmark = pytest.mark.beside

PORT = 18427
MOST_KILLS = 40


def cells(directory: Path) -> list[dict[str, Any]]:
    """What was measured, in order."""
    files = directory.glob("*/results.jsonl")
    found = [json.loads(line)["surface"] for file in files for line in file.read_text().splitlines()]
    return sorted(found, key=lambda cell: cell["order"])


def decided(directory: Path) -> list[tuple[Any, ...]]:
    """What of it follows from decisions."""
    return [(each["order"], each["cell"], each["visit"], each["expected"]) for each in cells(directory)]


def started(words: list[str], cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [ETUDE, *words], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def until(what: Any, process: subprocess.Popen[str]) -> None:
    while process.poll() is None and not what():
        time.sleep(0.005)


def ended_again_and_again(
    words: list[str],
    directory: Path,
    generator: random.Random,
    numbers: list[int],
    cwd: Path,
    longest_s: float,
) -> int:
    """Until a session comes to its end; how often one did not. Each is ended after its first line on disk, or the
    beginning of its first cell."""
    for kills in range(MOST_KILLS):
        before = len(list(directory.rglob("*.jsonl")))
        process = started(words, cwd)
        until(lambda seen=before: len(list(directory.rglob("*.jsonl"))) > seen, process)
        time.sleep(generator.uniform(0.0, longest_s))
        if process.poll() is None:
            process.send_signal(generator.choice(numbers))
        _, error = process.communicate(timeout=60)
        assert "Traceback" not in error
        if process.returncode in (0, 1):
            return kills
        # By the signal itself where it came before our handler was there, or when the interpreter was ending.
        by_signal = (
            -signal.SIGKILL,
            -signal.SIGTERM,
            -signal.SIGINT,
            128 + signal.SIGTERM,
            128 + signal.SIGINT,
        )
        assert process.returncode in by_signal, error
    pytest.fail(f"not ended after {MOST_KILLS} kills")


def test_a_simulated_surface_that_is_killed_again_and_again_is_the_same(tmp_path: Path) -> None:
    words = ["surface", "--simulate", "DB_TP", "--count", "6", "-q", "-o"]
    called(*words, "once", cwd=tmp_path, check=None)
    numbers = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
    kills = ended_again_and_again(
        [*words, "parts"], tmp_path / "parts", random.Random(7), numbers, tmp_path, 1.0
    )
    assert kills >= 2, "it has to be ended to be a test"
    assert len(cells(tmp_path / "parts")) == 6
    without_time = [[{**cell, "cost_s": 0} for cell in cells(tmp_path / name)] for name in ("once", "parts")]
    assert without_time[0] == without_time[1]
    assert decided(tmp_path / "parts") == decided(tmp_path / "once")


@pytest.mark.quick
def test_a_surface_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "dd.toml").write_text(
        '[response]\ncommand = "dd if=/dev/zero bs={bs} count={count} status=none | {sum} > /dev/null"\n'
        '[factor.bs]\nlevels = [512, 4096]\nscale = "log"\n[factor.count]\nlevels = [1, 200]\nscale = "log"\n'
        '[factor.sum]\nlevels = ["cksum", "sha256sum"]\n[samples]\nplan = "in-order"\n'
        'without = [{ bs = 4096, count = 200 }]\n[budget]\ncell = "1 s"\n'
    )
    done = etude("surface", "dd.toml", "-o", "r", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert [cell["state"] for cell in document["cells"]] == ["measured"] * 6
    assert all(0 < cell["low"] <= cell["value"] <= cell["high"] for cell in document["cells"])
    assert document["unit"] == "s"
    assert [cell["cell"] for cell in cells(tmp_path / "r")] == sorted(
        cell["cell"] for cell in cells(tmp_path / "r")
    )


def test_a_command_that_is_killed_goes_on_within_its_cell(tmp_path: Path) -> None:
    (tmp_path / "killed.toml").write_text(
        '[response]\ncommand = "echo {n} >> runs; sleep 0.0{n}"\nprecision = "40 %"\n'
        "[factor.n]\nlevels = [1, 2, 3]\n"
    )
    words = ["surface", "killed.toml", "-o", "r", "-q"]
    numbers = [signal.SIGKILL, signal.SIGTERM]
    ended_again_and_again(words, tmp_path / "r", random.Random(3), numbers, tmp_path, 0.4)
    found = cells(tmp_path / "r")
    assert sorted(cell["cell"] for cell in found) == [[0], [1], [2]]
    assert all(cell["state"] == "measured" for cell in found)
    for cell in found:
        (entry,) = (tmp_path / "r" / f"n-{cell['cell'][0] + 1}").glob("measured/*/results.jsonl")
        rows = [json.loads(line) for line in entry.read_text().splitlines()]
        trials = [row["trial"] for row in rows]
        assert len(set(trials)) == len(trials)
        assert cell["trials"] == sum(row["kept"] for row in rows)
    assert processes_with("killed.toml") == []


def test_a_surface_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "s.ap").write_text('TEST nap 4\n  EXEC sleep "%time%"\nDONE\n')
    (tmp_path / "in" / "s.toml").write_text(
        '[response]\nscript = "s.ap"\n[factor.time]\nlevels = [0.01, 0.05]\nscale = "log"\n'
    )
    done = called("surface", "in/s.toml", "-o", "r", "--json", cwd=tmp_path)
    short, long = json.loads(done.stdout)["cells"]
    assert 0.01 < short["value"] < long["value"]
    assert (tmp_path / "r" / "time-0.01" / "measured" / "experiment.json").exists()


def server(directory: Path, workers: str, more: str = "") -> None:
    """The example's, on a port of its own, with shorter trials; with 3 workers it does not start."""
    text = (EXAMPLES / "surface" / "known-server.toml").read_text()
    for old, new in (
        ("18420", str(PORT)), ('"20 s"', '"1 s"'), ("--window 1 --warm-up 2", "--window 0.25 --warm-up 0.1"),
        ("--drain 1", "--drain 0.2"), ("exec etude-engine", f"exec {Path(sys.executable).parent}/etude-engine"),
        ("{workers} --law", "{workers} $([ {workers} = 3 ] && echo --none) --law"),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    text = text.replace('start = "exec', 'ready_timeout = "2 s"\nstart = "exec')
    (directory / "known-server.toml").write_text(text)
    (directory / "known.toml").write_text(
        f'[response]\npeak = "known-server.toml"\n[factor.workers]\nlevels = {workers}\n{more}[budget]\ncell = "4 s"\n'
    )


def groups() -> set[str]:
    return {name for _, names, _ in os.walk("/sys/fs/cgroup") for name in names if "etude-held" in name}


@pytest.mark.serial
@pytest.mark.needs_root
def test_a_server_under_a_quota_whose_map_is_killed_leaves_nothing(tmp_path: Path) -> None:
    before = groups()
    server(tmp_path, "[2, 3]", '[factor.cpu]\nresource = "quota"\nlevels = [0.05, 1]\n')
    words = ["surface", "known.toml", "-o", "r", "-q"]
    probe = started([*words, "--count", "1"], tmp_path)
    until(lambda: processes_with(f"127.0.0.1:{PORT}") and list((tmp_path / "r").glob("*/search/*/")), probe)
    probe.send_signal(signal.SIGTERM)
    _, error = probe.communicate(timeout=60)
    if "cannot be set here" in error:
        pytest.skip(error.strip())
    assert probe.returncode == 128 + signal.SIGTERM, error
    assert "ended by SIGTERM; " in one_line(error)
    assert (groups() - before, processes_with(f"127.0.0.1:{PORT}")) == (set(), [])
    killed = started(words, tmp_path)
    until(lambda: groups() - before and processes_with(f"127.0.0.1:{PORT}"), killed)
    killed.kill()
    killed.communicate(timeout=60)
    called(*words, "--plan", "in-order", cwd=tmp_path, check=1)
    found = cells(tmp_path / "r")
    assert sorted(cell["cell"] for cell in found) == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert {cell["state"] for cell in found if cell["cell"][0] == 1} == {"failed"}
    assert all(
        "ready" in cell["why"] or "start" in cell["why"] for cell in found if cell["state"] == "failed"
    )
    assert {cell["state"] for cell in found if cell["cell"][0] == 0} <= {"measured", "bounded"}
    assert (groups() - before, processes_with(f"127.0.0.1:{PORT}")) == (set(), [])
