"""Disks brought into a state, on real file systems behind loop devices (docs/howto/disk-state.md)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from etude.results.blocks import members_of, read_blocks
from etude.results.reader import load_results, read_experiment
from support.places import ROOT

pytestmark = pytest.mark.serial
ETUDE = [sys.executable, "-m", "etude.cli.main"]
MIB = 1 << 20
MEMORY = Path("/dev/shm")


def engine(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [engine_path(), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, **options)


def answered(*words: str | Path, status: int = 0) -> dict[str, Any]:
    done = engine(*words, "--json")
    assert done.returncode == status, (done.stdout, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(*words: str | Path, status: int) -> str:
    """The one line that it says."""
    done = engine(*words)
    assert (done.returncode, done.stdout) == (status, ""), (done.stdout, done.stderr)
    [line] = done.stderr.splitlines()
    return line


@contextmanager
def file_system(place: Path, kind: str, mib: int = 256) -> Iterator[Path]:
    """One behind a loop device that goes with its last close."""
    where = place / f"mnt-{kind}"
    where.mkdir()
    with images(place, mib) as directory:
        image = directory / f"image-{kind}"
        with image.open("wb") as file:
            file.truncate(mib * MIB)
        subprocess.run([f"mkfs.{kind}", "-q", image], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", image, where], check=True)
        try:
            yield where
        finally:
            subprocess.run(["umount", where], check=True)


@contextmanager
def images(place: Path, mib: int) -> Iterator[Path]:
    """A directory for images of so many MiB: in memory where there is room, since a disk takes long for nothing that is
    looked at here."""
    room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= 2 * mib * MIB
    with tempfile.TemporaryDirectory(dir=MEMORY if room else place, prefix="etude-disk-") as directory:
        yield Path(directory)


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[Path]:
    with file_system(tmp_path, "ext4") as where:
        yield where


def tree_digest(where: Path) -> str:
    """Of names and bytes of all that age made, without its own notes and what filled the rest."""
    found = hashlib.sha256()
    for path in sorted((where / "etude-aged").rglob("*")):
        if path.is_file() and path.name not in ("manifest.json", "ballast"):
            found.update(f"{path.relative_to(where)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def level(where: Path) -> float:
    """As df says it."""
    found = os.statvfs(where)
    used = found.f_blocks - found.f_bfree
    return used / (used + found.f_bavail)


def write_files(where: Path) -> Path:
    """The same names and bytes each time."""
    data = where / "data"
    data.mkdir()
    for number in range(24):
        (data / f"{number}").write_bytes(hashlib.sha256(f"{number}".encode()).digest() * (MIB // 32))
    os.sync()
    return data


@pytest.mark.needs_root
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_the_same_files_have_ten_times_the_fragments_on_an_aged_file_system(
    tmp_path: Path, kind: str
) -> None:
    size = 320 if kind == "xfs" else 256
    with file_system(tmp_path, kind, size) as where:
        fresh = answered("fragments", write_files(where))
    (other := tmp_path / "aged").mkdir()
    with file_system(other, kind, size) as where:
        aged = answered("age", where, "--to", "70%", "--times", "1", "--piece", "8K")
        assert (aged["complete"], aged["ended"]) == (True, "complete")
        assert aged["written_bytes"] >= aged["planned_bytes"]
        assert abs(level(where) - 0.7) < (0.05 if kind == "btrfs" else 0.02)
        assert abs(aged["level"] - level(where)) < 0.005
        old = answered("fragments", write_files(where))
    assert (fresh["files"], fresh["bytes"]) == (old["files"], old["bytes"]) == (24, 24 * MIB)
    assert old["mean"] >= 10 * fresh["mean"], (fresh, old)
    assert fresh["layout_score"] > old["layout_score"]


@pytest.mark.needs_root
def test_the_same_seed_is_the_same_tree_byte_for_byte(tmp_path: Path) -> None:
    trees = []
    for number, seed in enumerate(("5", "5", "6")):
        place = tmp_path / str(number)
        place.mkdir()
        with file_system(place, "ext4", 128) as where:
            done = answered("age", where, "--to", "60%", "--times", "1.5", "--seed", seed)
            trees.append((done["digest"], tree_digest(where)))
    assert trees[0] == trees[1]
    assert trees[0][0] != trees[2][0]
    assert trees[0][1] != trees[2][1]


@pytest.mark.needs_root
def test_a_file_system_without_fallocate_is_aged_by_syncing(tmp_path: Path) -> None:
    with file_system(tmp_path, "ext2", 32) as where:
        done = answered("age", where, "--to", "60%", "--times", "1", "--piece", "64K")
        assert done["by"] == "sync"
        assert done["fragments"]["mean"] > 1


@pytest.mark.needs_root
def test_what_was_aged_is_not_aged_again_but_removed(ext4: Path) -> None:
    before = level(ext4)
    answered("age", ext4, "--to", "60%", "--allocated", "--times", "1")
    assert "etude-engine age --remove" in refused("age", ext4, status=5)
    done = answered("age", ext4, "--to", "70%", "--allocated", "--times", "1", "--again")
    assert done["allocated"]
    assert engine("age", "--remove", ext4).returncode == 0
    assert not (ext4 / "etude-aged").exists()
    assert abs(level(ext4) - before) < 0.01
    assert "nothing to remove" in refused("age", "--remove", ext4, status=2)
    (ext4 / "etude-aged").mkdir()
    assert "no manifest" in refused("age", "--remove", ext4, status=5)
    assert (ext4 / "etude-aged").exists()


@pytest.mark.needs_root
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_a_signal_ends_ageing_where_it_is_and_the_manifest_says_so(
    ext4: Path, ending: signal.Signals
) -> None:
    words = [engine_path(), "age", str(ext4), "--times", "500", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as aging:
        wait_for(lambda: (ext4 / "etude-aged/00003").exists())
        aging.send_signal(ending)
        said, _ = aging.communicate(timeout=60)
    assert aging.returncode == 128 + ending
    kept = json.loads((ext4 / "etude-aged/manifest.json").read_text())
    assert kept == json.loads(said)
    assert (kept["complete"], kept["ended"]) == (False, f"signal {ending}")
    assert engine("age", "--remove", ext4).returncode == 0


@pytest.mark.needs_root
def test_killed_ageing_left_a_manifest_that_says_it_is_not_complete(ext4: Path) -> None:
    with subprocess.Popen([engine_path(), "age", ext4, "--times", "500"]) as aging:
        wait_for(lambda: (ext4 / "etude-aged/00003").exists())
        aging.kill()
    kept = json.loads((ext4 / "etude-aged/manifest.json").read_text())
    assert kept["complete"] is False
    assert "level" not in kept
    assert engine("age", "--remove", ext4).returncode == 0


def wait_for(there: Any) -> None:
    end = time.monotonic() + 60
    while not there():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.needs_root
def test_a_file_system_that_somebody_else_fills_meanwhile_is_said_to_stay_full(ext4: Path) -> None:
    with subprocess.Popen([engine_path(), "age", ext4, "--times", "500"], stderr=subprocess.PIPE) as aging:
        wait_for(lambda: (ext4 / "etude-aged/00001").exists())
        aging.send_signal(signal.SIGSTOP)
        answered("fill", ext4, "--leave", "1", "--written")
        aging.send_signal(signal.SIGCONT)
        try:
            wait_for(lambda: aging.poll() is not None or level(ext4) < 0.99)
        finally:
            aging.terminate()
            _, said = aging.communicate(timeout=60)
    kept = json.loads((ext4 / "etude-aged/manifest.json").read_text())
    assert kept["complete"] is False
    assert kept["refused"] > 0, said


@pytest.mark.needs_root
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_file_system_is_filled_to_its_level_and_emptied_again(tmp_path: Path, kind: str) -> None:
    with file_system(tmp_path, kind, 400) as where:
        before = level(where)
        done = answered("fill", where, "--to", "80%")
        group = 128 * MIB / done["capacity_bytes"]
        assert abs(level(where) - 0.8) < (0.001 if kind != "btrfs" else group), done
        assert "which is more" in refused("fill", where, "--to", "50%", status=5)
        assert "was filled already" in refused("fill", where, "--to", "90%", status=5)
        left = answered("fill", where, "--leave", "10M", "--again")
        assert abs(left["available_bytes"] - 10 * MIB) <= (8192 if kind != "btrfs" else 16 * MIB)
        assert engine("fill", "--remove", where).returncode == 0
        os.sync()
        assert abs(level(where) - before) < 0.02


@pytest.mark.needs_root
def test_writing_fills_as_taking_space_does(ext4: Path) -> None:
    done = answered("fill", ext4, "--to", "0.5", "--written")
    assert abs(level(ext4) - 0.5) < 0.001
    assert (ext4 / "etude-fill").stat().st_blocks * 512 >= done["filled_bytes"]


@pytest.mark.needs_root
def test_a_level_below_what_is_used_is_refused_and_nothing_is_made(ext4: Path) -> None:
    answered("fill", ext4, "--to", "50%")
    line = refused("age", ext4, "--to", "40%", status=2)
    assert "--to 40%: " in line
    assert not (ext4 / "etude-aged").exists()


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that everybody may enter."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="etude-disk-") as place:
        os.chmod(place, 0o755)
        yield Path(place)


def test_fragments_are_counted_without_root(public: Path) -> None:
    place = public
    (place / "a").write_bytes(b"x" * 100_000)
    somebody: dict[str, Any] = {"user": 65534} if os.geteuid() == 0 else {}
    words = [engine_path(), "fragments", "--json", str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **somebody)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["files"] == 1
    assert (found["free"] is None) == bool(found["why_free"])
    assert "expected more than" in refused("age", place, "--to", "0.001%", status=2)


@pytest.mark.needs_root
def test_a_user_ages_and_fills_a_file_system_of_which_root_keeps_a_part(public: Path) -> None:
    with file_system(public, "ext4") as where:
        os.chmod(where, 0o777)
        for words in (["age", "--to", "70%", "--times", "1"], ["fill", "--to", "80%"]):
            command = [engine_path(), *words, "--json", str(where)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, user=65534)
            assert done.returncode == 0, done.stderr
            assert abs(level(where) - (0.7 if words[0] == "age" else 0.8)) < 0.02


def test_files_whose_place_is_not_told_are_counted_apart(tmp_path: Path) -> None:
    place = MEMORY / f"etude-disk-{os.getpid()}"
    place.mkdir()
    try:
        (place / "a").write_text("a")
        found = answered("fragments", place)
    finally:
        (place / "a").unlink()
        place.rmdir()
    assert (found["files"], found["unknown"], found["mean"]) == (1, 1, None)
    assert found["why_unknown"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["age"], "DIR"),
        (["age", ".", "--to", "80"], '--to "80": '),
        (["age", ".", "--to", "96%"], "less than --peak"),
        (["age", ".", "--sed", "1"], "--sed"),
        (["age", ".", "."], "one argument too many"),
        (["fill", "."], "--to, --leave or --remove"),
        (["fill", ".", "--leave"], "--leave needs a value"),
        (["fragments", "no-such"], "no-such: No such file"),
        (["precondition", "no-such"], "no-such: No such file"),
        (["precondition", ".", "--write", "1000"], "multiple of 4096"),
        (["precondition", "/dev/null"], "/dev/null"),
    ],
    ids=[str(number) for number in range(11)],
)
def test_what_is_wrong_is_one_line_that_says_what_was_expected(words: list[str], what: str) -> None:
    assert what in refused(*words, status=2)


# --- preconditioning -----------------------------------------------------------------------------------


@contextmanager
def loop_device(image: Path) -> Iterator[str]:
    words = ["losetup", "--find", "--show", image]
    device = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


QUICK = ("--round", "0.05", "--passes", "1", "--seconds", "20")
LOOSE = ("--range", "100%", "--slope", "100%")


@pytest.mark.needs_root
def test_a_device_is_written_over_and_trimmed_first_when_asked(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(b"\xff" * (32 * MIB))
    with loop_device(image) as device:
        done = answered("precondition", device, "--trim", *QUICK, *LOOSE)
        assert (done["trimmed"], done["ended"], done["steady"]) == (True, "steady", True)
        assert done["written_bytes"] >= 32 * MIB
        assert len(done["series"]) >= done["window"] == 5
        assert 0 <= done["last"]["range"] <= 1
    assert b"\xff" * 4096 not in image.read_bytes()


@pytest.mark.needs_root
def test_a_mounted_device_and_one_that_holds_something_are_refused(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(32 * MIB)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    with loop_device(image) as device:
        line = refused("precondition", device, status=5)
        assert "ext4 file system" in line
        assert "--force" in line
        where = tmp_path / "mnt"
        where.mkdir()
        subprocess.run(["mount", device, where], check=True)
        try:
            assert "mounted" in refused("precondition", device, "--force", status=5)
        finally:
            subprocess.run(["umount", where], check=True)
        answered("precondition", device, "--force", *QUICK, *LOOSE)


def test_a_file_is_made_and_written_and_not_written_over(tmp_path: Path) -> None:
    place = tmp_path / "file"
    done = answered("precondition", place, "--size", "8M", *QUICK, *LOOSE)
    assert place.stat().st_size == 8 * MIB == done["capacity_bytes"]
    assert "holds 8388608 bytes; --force" in refused("precondition", place, status=5)
    short = answered("precondition", place, "--force", "--bytes", "1M", "--passes", "0", status=1)
    assert (short["ended"], short["steady"], short["written_bytes"]) == ("bytes", False, MIB)
    late = answered("precondition", place, "--force", "--seconds", "0.1", "--passes", "0", status=1)
    assert late["ended"] == "time"


# --- in scripts ----------------------------------------------------------------------------------------

SCRIPT = """
TEST a 2
  PRECONDITION ONCE {image} size=8M passes=1 round=0.05 range=100% slope=100% force=yes
  AGE ONCE {where} to=60% times=1 allocated=yes
  FILL {where} to=75%
  EXEC true
DONE
"""


@pytest.mark.needs_root
def test_a_script_brings_the_disk_into_its_state_and_notes_it(ext4: Path, tmp_path: Path) -> None:
    script, out = tmp_path / "a.ap", tmp_path / "out"
    script.write_text(SCRIPT.format(where=ext4, image=tmp_path / "file"))
    done = subprocess.run([*ETUDE, "run", script, "-o", out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    blocks, whole = read_blocks(out / "a" / "blocks.jsonl")
    assert whole
    assert [(kept.trial, kept.block.name) for kept in blocks] == [
        (1, "preconditioning"),
        (1, "aging"),
        (1, "filling"),
        (2, "filling"),
    ]
    aging = members_of(blocks[1].block)
    assert (aging["complete"], aging["seed"]) == (True, 1)
    assert abs(aging["level"] - 0.6) < 0.02
    [entry] = read_experiment(out)["tests"]
    assert {name: state["trial"] for name, state in entry["disk"].items()} == {
        "preconditioning": 1,
        "aging": 1,
        "filling": 2,
    }
    assert abs(entry["disk"]["filling"]["level"] - 0.75) < 0.001
    assert len(load_results(out).measurements["a"]) == 2
    said = subprocess.run([*ETUDE, "stats", out], capture_output=True, text=True, check=False)
    assert "disk: preconditioned" in said.stdout
    assert "filled to 75" in said.stdout


@pytest.mark.needs_root
def test_a_trial_whose_disk_cannot_be_brought_into_its_state_fails_in_one_line(
    ext4: Path, tmp_path: Path
) -> None:
    script, out = tmp_path / "a.ap", tmp_path / "out"
    script.write_text(f"TEST a 1\nAGE {ext4} to=1%\nEXEC true\nDONE\n")
    done = subprocess.run([*ETUDE, "run", script, "-o", out], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "--to 1%: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.needs_root
def test_the_example_compares_a_fresh_file_system_with_an_aged_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [*ETUDE, "run", "-o", out, ROOT / "examples/aging/aging.ap", "TRIALS=2", "FSIMAGESIZE=120M"]
    with images(tmp_path, 120) as directory:
        scratch = directory / "scratch"
        words += ["AGING_FILES=16", f"APSCRATCH={scratch}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr
        assert not (scratch / "files").exists()
    found = {
        name: [row.value("fragments_per_file") for row in rows]
        for name, rows in load_results(out).measurements.items()
    }
    fresh, aged = found["read:ext4:fresh"], found["read:ext4:aged"]
    assert min(value or 0.0 for value in aged) >= 10 * max(value or 99.0 for value in fresh)
    assert "read:ext4:aged" in done.stdout
    assert "ratio" in done.stdout
