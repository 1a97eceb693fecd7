"""`etude profile A B` on what the real recorder wrote: of one program twice, and of two programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.real import called
from support.recordings import environment, record

pytestmark = pytest.mark.beside

PROGRAM = """
import os, sys
with open("numbers", "w", buffering=4096) as file:
    for number in range(20000):
        print(number, file=file)
with open("numbers", "rb") as file:
    total = sum(map(len, iter(lambda: file.read(1000), b"")))
descriptor = os.open("numbers", os.O_RDWR)
for place in range(0, int(sys.argv[1]) * 512, 512):
    os.pwrite(descriptor, bytes(512), place)
os.fsync(descriptor)
os.rename("numbers", "moved")
"""


def recorded(directory: Path, name: str, *words: str) -> Path:
    """The trace of a Python program that is run in a new directory."""
    place = directory / name
    place.mkdir()
    (directory / "program.py").write_text(PROGRAM)
    # -I -S: what Python itself looks for does not depend on where it runs, or on what ran before.
    command = (sys.executable, "-I", "-S", "-B", str(directory / "program.py"), *words)
    done = record(*command, at=directory / f"{name}.trace", cwd=place, env=environment(directory / "cache"))
    if done.status == 5:
        pytest.skip(f"programs cannot be recorded here: {done.stderr.decode().strip()}")
    assert done.status == 0, done.stderr
    return done.path


def test_one_program_recorded_twice_makes_the_same_calls(tmp_path: Path) -> None:
    first, second = recorded(tmp_path, "a", "100"), recorded(tmp_path, "b", "100")
    said = called("profile", str(first), str(second), "--figure", "x.png", cwd=tmp_path).stdout
    assert said.startswith("A: ")
    assert "≠" not in said
    assert "; 0 do not." in said
    assert (tmp_path / "x.png").stat().st_size > 5000
    made = json.loads(called("profile", str(first), str(second), "--json", cwd=tmp_path).stdout)
    assert made["same_program"]
    assert made["ratios"]["events"] == 1.0
    assert {name: each["count"] for name, each in made["ratios"]["calls"].items()} == dict.fromkeys(
        made["a"]["calls"], 1.0
    )
    assert made["ratios"]["reads"]["bytes"] == made["ratios"]["writes"]["bytes"] == 1.0
    assert made["ratios"]["run_s"] == pytest.approx(made["b"]["run_s"] / made["a"]["run_s"])
    text = subprocess.run(
        [sys.executable, "-m", "etude.cli.main", "script", "--events", str(first)],
        capture_output=True,
        check=True,
    ).stdout
    assert made["sizes"]["a"]["text_bytes"] == len(text)
    assert made["sizes"]["a"]["trace_bytes"] == first.stat().st_size


def test_other_words_are_said_first_and_what_they_change_is_marked(tmp_path: Path) -> None:
    first, second = recorded(tmp_path, "a", "100"), recorded(tmp_path, "b", "140")
    said = called("profile", str(first), str(second), cwd=tmp_path).stdout
    assert said.startswith("! A and B ")
    assert "other arguments" in said.partition("\n")[0]
    rows = {
        line.split()[0]: line.split() for line in said.splitlines() if line.startswith(" ") and line.split()
    }
    assert rows["pwrite64"][1:4] == ["100", "140", "≠"]
    assert "≠" not in rows["fsync"]
    made = json.loads(called("profile", str(first), str(second), "--json", cwd=tmp_path).stdout)
    assert not made["same_program"]
    assert made["ratios"]["calls"]["pwrite64"] == pytest.approx(
        {"count": 1.4, "bytes": 1.4, "errors": None, "time_s": made["ratios"]["calls"]["pwrite64"]["time_s"]}
    )
    (differing,) = made["files"]["different"]
    assert differing["path"] == "numbers"
    assert differing["written_bytes"][1] - differing["written_bytes"][0] == 40 * 512
