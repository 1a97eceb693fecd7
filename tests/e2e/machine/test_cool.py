"""Caches on real file systems behind loop devices: brought into a state, and looked at (docs/caches in bench.md)."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.machine.cool import steps
from etude.machine.cool.dataset import LOOP_FILE_SLACK_BYTES
from etude.results.reader import load_results

pytestmark = [pytest.mark.needs_root, pytest.mark.serial]
ETUDE = [sys.executable, "-m", "etude.cli.main"]
FILES, BYTES = 200, 40_000
SIZE = FILES * BYTES
WARM = 0.95 * SIZE
"""The kernel may give up single pages of what was just read at any time."""


def etude(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ETUDE, *words], capture_output=True, text=True, check=False, **options)


def answered(*words: str | Path) -> dict[str, Any]:
    done = etude("cool", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(params=[["ext4"], ["xfs"], ["btrfs"]], ids=["ext4", "xfs", "btrfs"])
def mounted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system behind a loop device that goes with its last close, with a data set in it."""
    [kind] = request.param
    image, where = tmp_path / "image", tmp_path / "mnt"
    where.mkdir()
    with image.open("wb") as file:
        file.truncate(400 << 20)
    subprocess.run([f"mkfs.{kind}", "-q", image], check=True, capture_output=True)
    subprocess.run(["mount", "-o", "loop,noatime", image, where], check=True)
    try:
        (where / "data").mkdir()
        for number in range(FILES):
            (where / "data" / f"{number}").write_bytes(os.urandom(BYTES))
        yield where
    finally:
        wait_for_remounts()
        subprocess.run(["umount", where], check=True)


def mount_line(where: Path) -> str:
    [line] = [line for line in Path("/proc/self/mounts").read_text().splitlines() if f" {where} " in line]
    return line


@pytest.mark.quick
@pytest.mark.parametrize("way", ["drop", "remount"])
def test_a_cold_data_set_has_nothing_in_memory_and_comes_from_the_disk(mounted: Path, way: str) -> None:
    before = mount_line(mounted)
    warm = answered("warm", mounted / "data")
    assert warm["bytes"] == SIZE
    assert warm["resident_bytes"] >= WARM
    cold = answered(way, mounted / "data")
    assert cold["resident_before_bytes"] >= WARM
    assert (cold["resident_bytes"], cold["names_cached"], cold["files"]) == (0, 0, FILES)
    assert cold["backing_resident_bytes"] < LOOP_FILE_SLACK_BYTES
    assert "wrong" not in cold
    assert mount_line(mounted) == before
    assert sum(file.stat().st_size for file in (mounted / "data").iterdir()) == SIZE


def test_a_file_system_in_use_is_left_as_it_is_and_the_user_named(mounted: Path) -> None:
    with (mounted / "data/0").open():
        done = etude("cool", "remount", mounted / "data")
    assert done.returncode == 5
    assert f"{os.getpid()} (" in done.stderr
    assert done.stderr.count("\n") == 1
    assert mount_line(mounted)


def test_a_killed_remount_leaves_the_file_system_mounted(mounted: Path) -> None:
    for pause in (0.15, 0.25, 0.35, 0.45):
        words = [*ETUDE, "cool", "remount", mounted / "data"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as cooling:
            time.sleep(pause)
            cooling.kill()
        wait_for_remounts()
        assert os.path.ismount(mounted)


def wait_for_remounts() -> None:
    """Return when no shell mounts anew: it has the lock from its beginning to its end."""
    steps.DIRECTORY.mkdir(exist_ok=True)
    with (steps.DIRECTORY / f"{steps.NAME}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def test_each_row_of_bench_says_what_was_in_memory(mounted: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("bench", "--trials", "3", "--cool", "remount", "--data", mounted / "data", "-o", out)
    done = etude(*words, f"cat {mounted}/data/0 {mounted}/data/1")
    assert done.returncode == 0, done.stderr
    [rows] = load_results(out).measurements.values()
    kept = [row for row in rows if row.kept]
    assert [row.cache and row.cache["performed"] for row in rows] == [None, *["remount"] * 3]
    for row in kept:
        assert row.cache is not None
        assert row.cache["resident_bytes"] == row.cache["names_cached"] == 0
        assert row.metrics["storage_read"][0] >= 2 * BYTES


SCRIPT = """
TEST remount 2
  CACHE remount {data}
  EXEC cat {data}/0
DONE
TEST warm 2
  CACHE warm {data}
  EXEC sh -c 'cat {data}/*'
DONE
TEST cold 2
  CACHE drop {data}
  SETUP sh -c 'cat {data}/*'
  EXEC cat {data}/0
  EXEC cat {data}/0
DONE
"""


def test_a_script_cools_before_the_first_exec_of_each_trial(mounted: Path, tmp_path: Path) -> None:
    script, out = tmp_path / "a.ap", tmp_path / "out"
    script.write_text(SCRIPT.format(data=mounted / "data"))
    done = etude("run", script, "-o", out)
    assert done.returncode == 0, done.stderr
    found = load_results(out).measurements
    caches = {name: [row.cache for row in rows if row.kept] for name, rows in found.items()}
    assert [c and (c["performed"], c["resident_bytes"]) for c in caches["remount"]] == [("remount", 0)] * 2
    assert all(c and c["resident_bytes"] >= WARM for c in caches["warm"])
    assert all(c and c["resident_before_bytes"] >= WARM for c in caches["cold"])
    assert [c and c["resident_bytes"] for c in caches["cold"]] == [0] * 4
    read = [row.metrics["storage_read"][0] for row in found["cold"]]
    assert all(first >= BYTES > second for first, second in zip(read[::2], read[1::2], strict=True))


def test_a_remount_that_cannot_be_done_fails_the_trial_in_one_line(mounted: Path, tmp_path: Path) -> None:
    script, out = tmp_path / "a.ap", tmp_path / "out"
    script.write_text(f"TEST a 1\nCACHE remount {mounted}/data\nEXEC cat {mounted}/data/0\nDONE\n")
    with (mounted / "data/0").open():
        done = etude("run", script, "-o", out)
    assert done.returncode == 4
    assert "target is busy" in done.stderr
    assert "Traceback" not in done.stderr


KILLED = """
import os, subprocess, sys
from etude.machine.cool import steps

def unmount_and_die(*words, **_):
    subprocess.run(["umount", sys.argv[1]], check=True)
    os.kill(os.getpid(), 9)

steps.tool = unmount_and_die
steps.remount([sys.argv[1]])
"""
"""A remount that dies together with its shell."""


def test_what_a_killed_remount_left_unmounted_is_mounted_by_status(mounted: Path) -> None:
    before = mount_line(mounted)
    assert subprocess.run([sys.executable, "-c", KILLED, mounted], check=False).returncode == -9
    assert not mounted.is_mount()
    done = json.loads(etude("cool", "status", "--json").stdout)
    assert done == {"mounted_again": [str(mounted)]}
    assert mount_line(mounted).split()[1:] == before.split()[1:]  # the loop device may be another
    assert json.loads(etude("cool", "status", "--json").stdout) == {"mounted_again": []}
