"""`etude diff` of real results: a changed sysctl, another mount option and another compiler are named, nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.real import ETUDE, called, experiment, one_line

SWAPPINESS = Path("/proc/sys/vm/swappiness")

IN_A_NAMESPACE = """\
set -e
mount -o loop,relatime disk.img mounted
ln -sf "$(command -v gcc)" bin/cc
"$ETUDE" bench --trials 4 --seed 1 -o first 'cc -c mounted/t.c -o t.o'
mount -o remount,noatime mounted
ln -sf "$(command -v gcc-11)" bin/cc
echo "$OTHER" > /proc/sys/vm/swappiness
"$ETUDE" bench --trials 4 --seed 2 -o second 'cc -c mounted/t.c -o t.o'
"""
"""Mounts are its own, and go away with it, however it ends."""


@pytest.fixture
def swappiness() -> Iterator[int]:
    """As it is; it is put back whatever happens."""
    before = SWAPPINESS.read_text()
    try:
        yield int(before)
    finally:
        SWAPPINESS.write_text(before)


@pytest.fixture
def both(tmp_path: Path, swappiness: int) -> Path:
    """A directory with two results, `first` and `second`, between which three things were changed."""
    for name in ("mounted", "bin", "source"):
        (tmp_path / name).mkdir()
    (tmp_path / "source" / "t.c").write_text("int answer(void) { return 42; }\n")
    image = tmp_path / "disk.img"
    with open(image, "wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-d", tmp_path / "source", image], check=True)
    environment = os.environ | {
        "ETUDE": ETUDE,
        "OTHER": str(swappiness - 1 if swappiness else 1),
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", IN_A_NAMESPACE],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return tmp_path


@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.needs_program("gcc", package="gcc")
@pytest.mark.needs_program("gcc-11", package="gcc-11")
@pytest.mark.needs_program("mkfs.ext4", package="e2fsprogs")
def test_a_sysctl_a_mount_option_and_a_compiler_are_named_and_nothing_else(
    both: Path, swappiness: int
) -> None:
    told = json.loads(called("diff", "first", "second", "--json", cwd=both).stdout)
    other = swappiness - 1 if swappiness else 1
    by_name = {d["what"]: (d["first"], d["second"]) for d in told["differs"]}
    point = f"mounts.{both}/mounted.options"
    assert sorted(by_name) == sorted(["sysctl.vm.swappiness", point, "program cc"])
    assert by_name["sysctl.vm.swappiness"] == (str(swappiness), str(other))
    assert "relatime" in by_name[point][0]
    assert "noatime" in by_name[point][1]
    old, new = by_name["program cc"]
    assert "gcc-11" in new
    assert "gcc-11" not in old
    assert told["unknown"] == []

    moved = {d["what"] for d in told["moved"]}
    assert {"plan.seed", "load.total_ticks", "system.uptime_s", "mounts./.free_bytes"} & moved
    assert not {d["what"] for d in told["differs"]} & moved

    shown = called("diff", "first", "second", cwd=both).stdout
    assert "load.total_ticks" not in shown
    assert "not shown: " in shown
    assert "load.total_ticks: " in called("diff", "first", "second", "--all", cwd=both).stdout

    called("diff", "first", "second", "--fail-if", "sysctl.*", cwd=both, check=1)
    called("diff", "first", "second", "--fail-if", "cpu.*", cwd=both, check=0)
    stats = called("stats", "first", "second", cwd=both).stdout
    (note,) = (line for line in stats.splitlines() if line.startswith("Note: Machine or settings "))
    warned = "of first and second"
    assert "etude diff first second" in note
    assert warned in note
    documents = called("stats", "first", "second", "--json", cwd=both).stdout
    assert '"machines": [' in documents
    assert warned in documents
    report = called("report", "first", "second", "--format", "markdown", cwd=both).stdout
    assert warned in report.split("\n\n")[1]


@pytest.mark.serial
def test_a_result_is_compared_with_itself_with_another_and_with_the_machine_as_it_is(tmp_path: Path) -> None:
    called("bench", "--trials", "3", "-o", "a", "true", cwd=tmp_path)
    called("bench", "--trials", "3", "-o", "b", "true", cwd=tmp_path)
    called("bundle", "a", "-o", "a.tar.gz", cwd=tmp_path)
    for words in (["a"], ["a", "b"], ["a.tar.gz", "b"], ["a", "now"], ["now", "b"]):
        told = json.loads(called("diff", *words, "--json", "--fail-if", "*", cwd=tmp_path).stdout)
        assert told["differs"] == [], words
        assert told["moved"] != [], words
    assert "Nothing differs" in called("diff", "a", cwd=tmp_path).stdout
    assert "Note: Machine" not in called("stats", "a", "b", cwd=tmp_path).stdout


def test_what_cannot_be_compared_is_one_line(tmp_path: Path) -> None:
    called("bench", "--trials", "3", "-o", "a", "true", cwd=tmp_path)
    document = experiment(tmp_path / "a")
    document["machine"]["after"] = None
    (tmp_path / "a" / "experiment.json").write_text(json.dumps(document))
    assert "was killed" in one_line(called("diff", "a", cwd=tmp_path, check=3).stderr)
    assert "no results here" in one_line(called("diff", "a", "nothing", cwd=tmp_path, check=3).stderr)
    assert "etude diff DIR now" in one_line(called("diff", "now", cwd=tmp_path, check=2).stderr)


def test_a_result_of_an_older_version_is_compared_in_what_both_recorded(tmp_path: Path) -> None:
    for name in ("old", "new"):
        called("bench", "--trials", "3", "-o", name, "true", cwd=tmp_path)
    document = experiment(tmp_path / "old")
    for part in ("sysctl", "limits", "mounts", "disks", "environment", "programs", "toolchain"):
        del document["machine"]["before"][part]
    document["machine"]["before"]["memory"]["swappiness"] += 1
    (tmp_path / "old" / "experiment.json").write_text(json.dumps(document))
    told = json.loads(called("diff", "old", "new", "--json", cwd=tmp_path).stdout)
    assert [d["what"] for d in told["differs"]] == ["sysctl.vm.swappiness"]
    unknown = {d["what"]: d["first"] for d in told["unknown"]}
    assert {"sysctl", "limits", "mounts", "environment", "toolchain"} <= set(unknown)
    assert set(unknown.values()) == {None}
