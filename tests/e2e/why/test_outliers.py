"""What was put into every eighth trial of a real program is named: its call and file, other processes, a cold cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import etude as library
from support.places import EXAMPLES
from support.real import ETUDE, etude, one_line

pytestmark = [pytest.mark.needs_program("cc", package="gcc")]

EIGHTH = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; [ $((n % 8)) = 7 ]"
TRIALS = 48


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The example, built, with its data."""
    for name in ("copy.c", "Makefile"):
        shutil.copy(EXAMPLES / "why" / name, tmp_path)
    subprocess.run(["make", "-s"], cwd=tmp_path, check=True)
    (tmp_path / "copy.data").write_bytes(os.urandom(32 << 20))
    return tmp_path


def explained(place: Path, command: str, *options: str) -> dict[str, Any]:
    etude("bench", "-o", "r", "--trials", "2", "-n", "t", command, *options, cwd=place)
    words = ("why", "r", "--outliers", "--trials", str(TRIALS), "--json", "-q")
    found: dict[str, Any] = json.loads(etude(*words, cwd=place).stdout)
    assert found["trials"] == TRIALS
    return found


def test_an_fsync_in_every_eighth_trial_is_named_with_its_file(place: Path) -> None:
    (place / "t").write_text(f"#!/bin/sh\n{EIGHTH} && set -- fsync=300\nexec ./copy 1 65536 $*\n")
    (place / "t").chmod(0o755)
    told = explained(place, "./t")
    assert len(told["slow"]) >= TRIALS // 8
    assert [
        c
        for c in told["causes"]
        if c["name"] == "fsync" and c["file"].endswith("copy.log") and (c["share"] or 0.0) > 0
    ]
    assert told["typical_s"] < told["bound_s"] < told["slow_s"]
    assert not (place / "r" / "why-outliers" / "raw").exists()
    again = etude("why", "r", "--outliers", "t", "--json", cwd=place)
    assert json.loads(again.stdout) == told
    frame = library.why_outliers(place / "r").to_frame()
    assert "fsync" in frame["name"].to_list()
    assert "fsync()" in etude("why", "r", "--outliers", cwd=place).stdout


MARKED = f"{EIGHTH} && echo 1 >> marks || {{ echo 0 >> marks; exit 0; }}"
"""A hook that goes on in every eighth trial, and writes down which."""


def medians(place: Path, name: str) -> tuple[float, float]:
    """Medians of a quantity in the marked trials, and in the others. The last marks are those of the trials."""
    stored = json.loads((place / "r" / "why-outliers" / "why-outliers.json").read_text())
    values = next(values for _, of, _, _, values in stored["observed"] if of == name)
    marks = (place / "marks").read_text().split()[-TRIALS:]
    sides = [[v for v, mark in zip(values, marks, strict=True) if mark == one] for one in "10"]
    return median(sides[0]), median(sides[1])


@pytest.mark.more
def test_a_program_that_takes_the_cpu_is_seen_as_waiting_for_it(place: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    hog = f"{MARKED}; taskset -c {cpu} sh -c 'while :; do :; done' & echo $! > hog"
    end = "[ ! -f hog ] || kill $(cat hog); rm -f hog"
    explained(place, "./copy 32 65536", "--cpu", str(cpu), "--prepare", hog, "--conclude", end)
    marked, others = medians(place, "run delay")
    assert marked > others


TOUCH = """import mmap, os
data = mmap.mmap(os.open("copy.data", os.O_RDONLY), 0, prot=mmap.PROT_READ)
data.madvise(mmap.MADV_RANDOM)
data[::8192]
"""
"""Reads every other page of a file, each by a fault of its own."""


@pytest.mark.more
def test_a_cold_cache_is_seen_as_faults_and_bytes_from_the_disk(place: Path) -> None:
    (place / "touch.py").write_text(TOUCH)
    drop = f"{MARKED}; dd of=copy.data oflag=nocache conv=notrunc,fdatasync count=0 2>&1"
    explained(place, f"{sys.executable} -SE touch.py", "--prepare", drop)
    for name in ("storage_read", "major_faults"):
        marked, others = medians(place, name)
        assert marked > others


def test_trials_that_were_interrupted_are_continued(place: Path) -> None:
    etude("bench", "-o", "r", "--trials", "2", "-n", "t", "sleep 0.1", cwd=place)
    command = [ETUDE, "why", "r", "--outliers", "--trials", "12"]
    running = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows = place / "r" / "why-outliers" / "t" / "results.jsonl"
    while not rows.exists() or len(rows.read_text().splitlines()) < 3:
        assert running.poll() is None
    running.kill()
    running.wait()
    before = rows.read_text().splitlines()[:3]
    told = json.loads(etude("why", "r", "--outliers", "--json", "-q", cwd=place).stdout)
    assert told["trials"] == 12
    assert rows.read_text().splitlines()[:3] == before


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["--outliers", "--pairs", "9"], "--pairs"),
        (["--outliers", "--trials", "9"], "trials 9"),
        (["--trials", "20"], "--trials"),
        (["--outliers"], "name one of a, b"),
        (["--outliers", "c"], "'c'"),
        (["--outliers", "a", "b"], "2 tests"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_one_line(
    place: Path, arguments: list[str], wrong: str
) -> None:
    etude("bench", "-o", "r", "--trials", "2", "-n", "a", "true", "-n", "b", "true", cwd=place)
    done = etude("why", "r", *arguments, cwd=place, check=2)
    assert wrong in one_line(done.stderr)
    assert {path.name for path in (place / "r").glob("why*")} == set()
