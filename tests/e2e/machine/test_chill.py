"""`etude-engine chill` on this machine: what it evicts, what it spares, and where it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from support.cached import Watch, disk, drop, fill, listing, look, output, read_all

Document = dict[str, Any]
MIB = 1 << 20
KEPT = 3 << 30
pytestmark = pytest.mark.serial

# Fills memory with a pattern, says so, waits for a line, and checks that each page is as it was.
BYSTANDER = """
import sys
memory = bytearray(b"etude!..") * (8 << 20)
print("ready", flush=True)
sys.stdin.readline()
print(memory.count(b"etude!..") == 8 << 20, flush=True)
"""


def chill(*words: str) -> Document:
    found: Document = json.loads(output(engine_path(), "chill", "--json", *words))
    return found


def counted(name: str) -> int:
    (value,) = [
        line.split()[1] for line in Path("/proc/vmstat").read_text().splitlines() if line.split()[0] == name
    ]
    return int(value)


def killer_in_kernel_log() -> list[str]:
    done = subprocess.run(["dmesg"], capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if "oom-kill" in line or "Out of memory" in line]


def available_bytes() -> int:
    rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(rows["MemAvailable"].split()[0]) * 1024


@pytest.fixture
def small_machine() -> Iterator[None]:
    """Most memory is reserved as huge pages, which takes no time: what is left is evicted in seconds."""
    pages = Path("/proc/sys/vm/nr_hugepages")
    aside = (available_bytes() - KEPT) // (2 * MIB)
    before = pages.read_text() if pages.exists() and aside > 0 else None
    try:
        if before is not None:
            pages.write_text(str(int(before) + aside))
        yield
    finally:
        if before is not None:
            pages.write_text(before)


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", BYSTANDER]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.needs_root
@pytest.mark.needs_program("mkfs.ext4", package="e2fsprogs")
@pytest.mark.usefixtures("small_machine")
def test_a_data_set_is_evicted_and_nobody_is_harmed(bystander: subprocess.Popen[str], tmp_path: Path) -> None:
    with disk(tmp_path, "ext4") as made:
        fill(made.root, 4000, 50_000)
        listed = listing(tmp_path, made.root)
        drop()
        read_all(made.root)
        assert look(listed)["resident_bytes"] > 0.99 * 200_000_000
        kills, log = counted("oom_kill"), killer_in_kernel_log()
        watch = Watch(listed)
        found = chill("--seconds", "600")
        seen = watch.look()
        assert found["stopped"] in ("evicted", "leave"), found
        assert (found["oom_kills"], counted("oom_kill")) == (0, kills)
        assert killer_in_kernel_log() == log
        assert bystander.communicate("\n", timeout=60)[0] == "True\n"
        assert found["after"]["file_bytes"] < found["before"]["file_bytes"]
        assert found["after"]["available_bytes"] > found["allocated_bytes"] / 2, "it was given back"
        assert seen["resident_bytes"] < 40 * MIB, (
            "what is left to others, and the last step, may be its pages"
        )
        assert look(listed, "--plainly")["resident_bytes"] <= seen["resident_bytes"]


def test_a_ceiling_is_kept_and_the_memory_given_back() -> None:
    found = chill("--most", "48M")
    assert (found["stopped"], found["allocated_bytes"]) == ("most", 48 * MIB)
    assert found["oom_kills"] == 0


def test_nothing_is_taken_that_should_be_left() -> None:
    found = chill("--most", "1G", "--leave", str(available_bytes() - 20 * MIB), "--seconds", "5")
    assert found["stopped"] in ("leave", "time")
    assert found["allocated_bytes"] < 200 * MIB


def test_it_ends_when_its_time_is_over() -> None:
    found = chill("--seconds", "0.001")
    assert found["stopped"] == "time"
    assert found["allocated_bytes"] <= 256 * MIB


def test_it_stops_where_the_kernel_gives_no_more() -> None:
    limited = ["prlimit", f"--as={96 * MIB}", "--", engine_path(), "chill", "--json", "--most", "1G"]
    found = json.loads(output(*limited))
    assert found["stopped"] == "refused"
    assert found["allocated_bytes"] < 96 * MIB


@pytest.mark.needs_program("strace")
def test_it_volunteers_for_the_killer_before_its_first_page() -> None:
    traced = ["strace", "-f", "-e", "trace=openat,write,madvise", engine_path(), "chill", "--most", "4M"]
    said = subprocess.run(traced, capture_output=True, text=True, check=True).stderr
    assert said.index("oom_score_adj") < said.index('"1000"') < said.index("MADV_POPULATE_WRITE")


@pytest.fixture
def limited() -> Iterator[Path]:
    """A group whose memory is limited, of v1 or v2."""
    v1, v2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    if (v1 / "memory.limit_in_bytes").exists():
        group, limit = v1 / f"etude-chill-{os.getpid()}", "memory.limit_in_bytes"
    elif "memory" in (v2 / "cgroup.subtree_control").read_text().split():
        group, limit = v2 / f"etude-chill-{os.getpid()}", "memory.max"
    else:
        pytest.skip("no control group that limits memory can be made here")
    group.mkdir()
    (group / limit).write_text(str(256 * MIB))
    (group / "below").mkdir()
    yield group / "below"
    (group / "below").rmdir()
    group.rmdir()


@pytest.mark.needs_root
def test_in_a_group_of_limited_memory_it_refuses_though_the_limit_is_an_ancestors(limited: Path) -> None:
    script = 'echo $$ > "$1/cgroup.procs"; exec "$2" chill --most 4M'
    command = ["sh", "-c", script, "sh", limited, engine_path()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 5
    (line,) = done.stderr.splitlines()
    assert "256 MiB" in line
    assert "only itself" in line


@pytest.mark.parametrize(
    "words", [["--most", "0"], ["--leave", "1M"], ["--seconds", "-1"], ["stray"]], ids=" ".join
)
def test_what_cannot_be_meant_is_one_line(words: list[str]) -> None:
    done = subprocess.run([engine_path(), "chill", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.needs_root
def test_small_caches_are_not_taken_for_evicted_ones_before_the_kernel_evicts() -> None:
    drop()
    assert chill("--most", "64M")["stopped"] == "most"
