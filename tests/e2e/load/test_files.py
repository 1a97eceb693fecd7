"""`etude-engine load --directory`: file sets on real file systems, the calls that are made, and what can go wrong."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from support.recordings import record, small_disk

pytestmark = pytest.mark.beside

Document = dict[str, Any]
PRESETS = ("specsfs97", "sfs2008", "web", "db_tp", "mail", "postmark")
SMALL = {
    "specsfs97": ["bytes_per_rate=100000"],
    "sfs2008": ["bytes_per_rate=100000"],
    "db_tp": ["scale=0.00001"],
}
"""Knobs for a disk of a test; the mixes are the presets'."""


def words(directory: Path, preset: str, *more: str) -> list[str]:
    """A load's command."""
    knobs = [word for knob in SMALL.get(preset, []) for word in ("--set", knob)]
    return [engine_path(), "load", "--directory", str(directory), "--preset", preset, *knobs, *more]


def run(command: Sequence[str], check: int = 0) -> tuple[list[Document], Document, str]:
    """Windows, the last line, and what was said besides."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == check, (done.returncode, done.stderr)
    *windows, end = [json.loads(line) for line in done.stdout.splitlines()] or [{}]
    return windows, end, done.stderr


def tree(directory: Path) -> dict[str, tuple[str, int]]:
    """What is below a directory: its kind, and a file's size."""
    found = {}
    for path in directory.rglob("*"):
        status = path.lstat()
        kind = stat.S_IFMT(status.st_mode)
        name = {stat.S_IFDIR: "directory", stat.S_IFREG: "file", stat.S_IFLNK: "link"}[kind]
        found[str(path.relative_to(directory))] = (name, status.st_size if name == "file" else 0)
    return found


QUICK = (("web", "calls"), ("postmark", "io_uring"))
PRESETS_AND_WAYS = [
    pytest.param(*each, marks=pytest.mark.quick if each in QUICK else (), id="-".join(each))
    for each in product(PRESETS, ("calls", "io_uring"))
]


@pytest.mark.parametrize(("preset", "way"), PRESETS_AND_WAYS)
def test_a_preset_runs_without_failures_and_its_file_set_is_put_right_again(
    tmp_path: Path, preset: str, way: str
) -> None:
    beside = tmp_path / "mine"
    beside.write_text("untouched")
    options = ["--rate", "200", "--seconds", "2", "--seed", "5", "--files-seed", "5"]
    run(words(tmp_path, preset, *options, "--populate"))
    (root,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert root.name == f"etude-load-{preset}-5"
    made = tree(root)
    assert any(kind == "file" for kind, _ in made.values())
    windows, end, _ = run(words(tmp_path, preset, *options, "--way", way))
    summary = end["summary"]
    assert (summary["failed"], summary["abandoned"]) == (0, 0), summary
    assert summary["offered"] == summary["completed"] > 200
    assert sum(by["completed"] for window in windows for by in window["by"].values()) <= summary["completed"]
    assert (summary["target"], summary["workload"]) == ("files", preset)
    run(words(tmp_path, preset, *options, "--populate"))
    assert tree(root) == made
    assert beside.read_text() == "untouched"


NAMES = {
    "getattr": {"newfstatat", "fstatat"},
    "lookup": {"statx"},
    "access": {"faccessat", "faccessat2"},
    "read": {"pread64"},
    "write": {"pwrite64"},
    "remove": {"unlinkat"},
    "readdir": {"getdents64"},
    "readdirplus": {"getdents64"},
    "fsstat": {"fstatfs"},
    "setattr": {"utimensat"},
    "readlink": {"readlinkat"},
    "commit": {"fdatasync"},
}
"""The main call of each operation."""


def test_the_calls_that_are_recorded_are_those_that_windows_count(tmp_path: Path) -> None:
    options = ["--rate", "100", "--seconds", "3"]
    run(words(tmp_path, "specsfs97", *options, "--populate"))
    recorded = record(*words(tmp_path, "specsfs97", *options), at=tmp_path / "trace")
    assert recorded.status == 0, recorded.stderr
    end = json.loads(recorded.stdout.splitlines()[-1])
    counted: Counter[str] = Counter()
    for window in [*map(json.loads, recorded.stdout.splitlines()[:-1]), end["drained"] or {}]:
        counted.update({kind: by["completed"] for kind, by in window.get("by", {}).items()})
    assert counted.total() == end["summary"]["completed"] > 100
    trace = recorded.trace()
    made = Counter(trace.names[call] for call in trace.call)
    for kind, calls in NAMES.items():
        if kind not in ("readdir", "readdirplus", "getattr", "write", "commit"):
            assert sum(made[call] for call in calls) >= counted[kind], (kind, made)
    assert made["pread64"] == counted["read"]
    assert made["getdents64"] >= counted["readdir"] + counted["readdirplus"]


@pytest.mark.needs_root
@pytest.mark.serial
def test_a_disk_that_fills_up_fails_requests_by_name_and_the_run_goes_on(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "8m") as small:
        options = ["--rate", "300", "--sized-for", "1", "--set", "files=100", "--seconds", "3"]
        run(words(small, "mail", *options, "--populate"))
        ballast = small / "ballast"
        free = os.statvfs(small)
        ballast.write_bytes(bytes(free.f_bavail * free.f_frsize))
        _, end, _ = run(words(small, "mail", *options))
        errors = end["summary"]["failures"]["errors"]
        assert set(errors) == {"ENOSPC"}, errors
        assert end["summary"]["completed"] > 0


@pytest.mark.needs_root
@pytest.mark.serial
def test_a_file_set_that_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "1m") as small:
        _, _, said = run(words(small, "web", "--rate", "100", "--seconds", "1"), check=5)
        assert len(said.splitlines()) == 1
        assert "file set" in said
        assert "--sized-for" in said
        assert list(small.iterdir()) == []


def test_a_directory_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    _, _, said = run(words(tmp_path / "away", "web", "--rate", "1", "--seconds", "1"), check=5)
    assert said.count("\n") == 1
    assert str(tmp_path / "away") in said


def test_a_file_set_that_vanishes_in_mid_run_is_counted(tmp_path: Path) -> None:
    command = words(tmp_path, "web", "--rate", "300", "--sized-for", "1", "--seconds", "9", "--window", "0.5")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        (root,) = tmp_path.iterdir()
        root.rename(tmp_path / "gone")
        subprocess.run(["rm", "-rf", str(tmp_path / "gone")], check=True)
        *_, end = [json.loads(line) for line in process.stdout]
    assert process.returncode == 0
    assert first["failed"] == 0
    summary = end["summary"]
    assert set(summary["failures"]["errors"]) == {"ENOENT"}
    assert summary["offered"] == summary["completed"] + summary["failed"]


@pytest.mark.parametrize("way", ["calls", "io_uring"])
def test_a_signal_ends_it_with_a_summary(tmp_path: Path, way: str) -> None:
    command = words(tmp_path, "web", "--rate", "50", "--sized-for", "1", "--seconds", "100", "--way", way)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        *_, end = [json.loads(line) for line in process.stdout]
    assert process.returncode == 0
    assert end["summary"]["ended"] == "early"
    assert end["summary"]["abandoned"] == 0


def test_clients_wait_for_their_answers_and_think(tmp_path: Path) -> None:
    options = ["--clients", "4", "--think", "0.05", "--think-law", "constant", "--seconds", "2"]
    windows, end, _ = run(words(tmp_path, "web", *options))
    summary = end["summary"]
    # Each of four clients sends at most one request in 0.05 s, and the first at once.
    assert 4 < summary["offered"] <= 4 * (2 / 0.05 + 1)
    assert summary["failed"] == 0
    assert all(window["outstanding"] <= 4 for window in windows)


@pytest.mark.needs_root
@pytest.mark.serial
@pytest.mark.needs_program("mkfs.ext4", package="e2fsprogs")
def test_calls_that_do_not_return_time_out_and_the_run_goes_on(tmp_path: Path) -> None:
    """On a frozen file system a write waits until it is thawed; the load is told to wait for a shorter time."""
    image, disk = tmp_path / "image", tmp_path / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True)
    try:
        options = ["--rate", "200", "--sized-for", "1", "--set", "files=200", "--seconds", "4"]
        command = words(disk, "mail", *options, "--window", "0.5", "--timeout", "0.3", "--outstanding", "16")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            before = json.loads(process.stdout.readline())
            subprocess.run(["fsfreeze", "-f", disk], check=True)
            try:
                windows = [json.loads(process.stdout.readline()) for _ in range(3)]
            finally:
                subprocess.run(["fsfreeze", "-u", disk], check=True)
            *_, end = [json.loads(line) for line in process.stdout]
    finally:
        subprocess.run(["umount", disk], check=True)
    summary = end["summary"]
    assert before["completed"] > 0
    assert sum(window["failures"]["timeout"] for window in windows if window["failed"]) > 16
    # A removal that was given up before it was made: its file is there when it is made again.
    assert set(summary["failures"]["errors"]) <= {"EEXIST", "ENOENT"}
    assert summary["offered"] == summary["completed"] + summary["failed"] + summary["abandoned"]


def test_what_reads_no_further_ends_it(tmp_path: Path) -> None:
    command = words(
        tmp_path, "web", "--rate", "50", "--sized-for", "1", "--seconds", "100", "--window", "0.1"
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        begin = time.monotonic()
        process.wait(timeout=60)
        assert process.returncode == 0, time.monotonic() - begin
