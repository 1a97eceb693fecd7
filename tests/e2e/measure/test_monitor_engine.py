"""`etude-engine monitor` on this machine: what happens stands in its file, and its file is whole however it ends."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from support.places import DOCS

BUSY_S = 1.5
BUSY = f"""
import time
while time.process_time() < {BUSY_S}: pass
input()
"""


class Monitor:
    """One that runs, and what it has written."""

    def __init__(self, file: Path, *options: str, prefix: tuple[str, ...] = ()) -> None:
        self.file = file
        command = [*prefix, engine_path(), "monitor", "--output", str(file), *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def begun(self) -> Monitor:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "monitoring\n"
        return self

    def lines(self) -> list[dict[str, Any]]:
        """All lines that are whole."""
        text = self.file.read_bytes()
        return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]

    def samples(self) -> list[dict[str, Any]]:
        return [line for line in self.lines() if "v" in line]

    def await_samples(self, count: int) -> None:
        while len(self.samples()) < count:
            assert self.process.poll() is None, self.process.stderr
            time.sleep(0.02)

    def end(self) -> list[dict[str, Any]]:
        """Ends its input, and has all that it wrote."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        return self.lines()

    def complaint(self) -> str:
        """Waits until it ends by itself; what it says."""
        self.process.wait(timeout=60)
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def column(self, name: str) -> list[float | None]:
        """A column of all samples, None also where it was not there."""
        found, columns = [], []
        for line in self.lines():
            if "columns" in line:
                columns = [column["name"] for column in line["columns"]]
            elif "v" in line:
                assert len(line["v"]) == len(columns)
                found.append(line["v"][columns.index(name)] if name in columns else None)
        return found

    def sum(self, name: str) -> float:
        return sum(value or 0 for value in self.column(name))


@contextmanager
def monitoring(file: Path, *options: str) -> Iterator[Monitor]:
    monitor = Monitor(file, *options)
    with monitor.process:
        try:
            yield monitor.begun()
        finally:
            monitor.process.kill()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "monitor-1.jsonl"


def test_the_file_begins_with_head_and_columns_and_ends_with_its_cost(file: Path) -> None:
    with monitoring(file, "--every", "50ms") as monitor:
        head, columns = monitor.lines()[:2]
        assert (head["format"], head["version"], head["every_s"], head["top"]) == (
            "etude-monitor",
            1,
            0.05,
            5,
        )
        assert head["pid"] == monitor.process.pid
        assert head["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert 0 < head["start_ns"] < time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        assert head["cpus"] == sorted(set(head["cpus"]))
        assert {column["kind"] for column in columns["columns"]} == {"interval", "level"}
        assert all(len(why) > 10 for why in columns["absent"].values())
        monitor.await_samples(4)
        lines = monitor.end()
    end, samples = lines[-1], [line for line in lines if "v" in line]
    assert end["end"] is True
    assert end["samples"] == len(samples)
    assert 0 < end["cost"]["cpu_s"] < end["ns"] / 1e9
    assert end["cost"]["wall_ns_median"] <= end["cost"]["wall_ns_max"]
    assert [sample["ns"] for sample in samples] == sorted({sample["ns"] for sample in samples})


def test_every_column_is_explained_with_its_unit_and_kind(file: Path) -> None:
    page = (DOCS / "howto" / "monitor.md").read_text()
    explained = []
    for names, unit, kind in re.findall(
        r"^\| (`[^|]*) \| ([^|]*) ?\| (interval|level) \|", page, re.MULTILINE
    ):
        for name in re.findall(r"`([^`]+)`", names):
            pattern = re.sub(r"NAME|RESOURCE|\bN\b", "(.+)", name.replace(".", r"\."))
            explained.append((pattern, (unit.strip(), kind)))
    assert len(explained) > 40
    with monitoring(file) as monitor:
        columns = monitor.end()[1]["columns"]
    for column in columns:
        said = [meant for pattern, meant in explained if re.fullmatch(pattern, column["name"])]
        assert (column["unit"], column["kind"]) in said, column


def test_the_lines_in_the_documentation_are_lines() -> None:
    page = DOCS / "howto" / "monitor.md"
    (block,) = re.findall(r"```jsonl\n(.*?)```", page.read_text(), re.DOTALL)
    head, columns, message, sample, end = map(json.loads, block.splitlines())
    assert head["format"] == "etude-monitor"
    assert len(sample["v"]) == len(columns["columns"])
    assert (message["level"], end["samples"]) == (6, 2)


def test_samples_lie_behind_whole_multiples_of_the_interval_and_do_not_drift(file: Path) -> None:
    with monitoring(file, "--every", "20ms", "--top", "0") as monitor:
        monitor.await_samples(100)
        samples = monitor.samples()
    behind = sorted(sample["ns"] % 20_000_000 for sample in samples)
    assert behind[len(behind) // 2] < 10_000_000, "drift would spread them over the whole interval"
    assert all("top" not in sample for sample in samples)


def test_what_was_missed_while_it_could_not_run_is_left_out(file: Path) -> None:
    with monitoring(file, "--every", "20ms", "--top", "0") as monitor:
        monitor.await_samples(2)
        monitor.process.send_signal(signal.SIGSTOP)
        count = len(monitor.samples())
        time.sleep(0.5)
        monitor.process.send_signal(signal.SIGCONT)
        monitor.await_samples(count + 3)
        instants = [sample["ns"] for sample in monitor.samples()]
    gaps = [b - a for a, b in pairwise(instants)]
    assert max(gaps) > 400_000_000, "it was stopped for half a second"
    late = instants[gaps.index(max(gaps)) + 1]
    assert sum(late <= instant < late + 20_000_000 for instant in instants) <= 2, "no burst catches up"


def test_a_busy_program_stands_in_the_top_list_with_its_cpu_time(file: Path) -> None:
    with monitoring(file, "--every", "200ms", "--top", "100") as monitor:
        busy = subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE)
        try:
            while True:
                monitor.await_samples(len(monitor.samples()) + 1)
                entries = [
                    one for sample in monitor.samples() for one in sample["top"] if one["pid"] == busy.pid
                ]
                if sum(one["cpu"] for one in entries) > BUSY_S - 0.05:
                    break
        finally:
            busy.communicate(b"\n")
    assert sum(one["cpu"] for one in entries) == pytest.approx(BUSY_S, abs=0.2)
    assert entries[0]["name"].startswith("python")
    assert entries[0]["parent"] == os.getpid()
    assert entries[0]["rss"] > 1_000_000
    assert len({one["start"] for one in entries}) == 1
    assert (
        monitor.sum("cpu.user") + monitor.sum("cpu.system") >= 0.8 * BUSY_S
    )  # it mostly asks the kernel for the time


def test_programs_that_ended_between_samples_stand_with_their_parent(file: Path, tmp_path: Path) -> None:
    done = tmp_path / "done"
    short = f"{sys.executable} -S -c 'sum(range(100000))'"
    script = f"for i in $(seq 100); do {short}; done; touch {done}; read x"
    with monitoring(file, "--every", "500ms") as monitor:
        shell = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE)
        try:
            while not done.exists():
                time.sleep(0.02)
            monitor.await_samples(len(monitor.samples()) + 2)
            samples, waited = monitor.samples(), waited_s(shell.pid)
        finally:
            shell.communicate(b"\n")
    entries = [one for sample in samples for one in sample["top"] if one["pid"] == shell.pid]
    told = sum(one.get("children", 0) for one in entries)
    assert 0.5 * waited < told < 1.05 * waited + 0.05, "most of them lived between two samples"
    assert sum(sample["unseen"] for sample in samples) > 0.9 * told


def waited_s(pid: int) -> float:
    """CPU time of the children that a process waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.serial
@pytest.mark.needs_root
def test_what_is_written_to_a_loop_device_stands_in_its_columns(file: Path, tmp_path: Path) -> None:
    image, size = tmp_path / "image", 32 << 20
    image.write_bytes(b"")
    os.truncate(image, size)
    with monitoring(file, "--every", "100ms") as monitor:
        monitor.await_samples(1)
        device = subprocess.check_output(["losetup", "--find", "--show", image], text=True).strip()
        try:
            dd = ["dd", "if=/dev/zero", f"of={device}", "bs=1M", "oflag=direct", "status=none"]
            subprocess.run([*dd, "count=1"], check=True)
            known = len(monitor.samples())
            monitor.await_samples(known + 2)
            name, rounds = f"disk.{Path(device).name}", 0
            while (
                rounds == 0 or monitor.sum(f"{name}.busy") == 0
            ):  # the kernel counts busy ticks, and may meet none
                subprocess.run([*dd, "count=16"], check=True)
                rounds += 1
                known = len(monitor.samples())
                monitor.await_samples(known + 2)
            assert monitor.sum(f"{name}.written") >= rounds * 16 << 20
            assert monitor.sum(f"{name}.writes") > 0
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.skipif(not Path("/dev/kmsg").exists(), reason="there is no /dev/kmsg here, as in containers")
def test_a_message_of_the_kernels_log_is_told_with_its_instant(file: Path) -> None:
    text = f'etude: "a message" \\ é of process {os.getpid()}'
    with monitoring(file, "--every", "100ms") as monitor:
        monitor.await_samples(1)
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        Path("/dev/kmsg").write_bytes(f"<4>{text}\n".encode())
        monitor.await_samples(len(monitor.samples()) + 2)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        lines = monitor.end()
    (message,) = [line for line in lines if line.get("kernel") == text]
    assert (message["level"], message["facility"]) == (4, 1)
    assert before - 100_000_000 <= message["ns"] + lines[0]["start_ns"] <= after
    assert not [line for line in lines if "kernel" in line and line["ns"] > lines[-1]["ns"]]


def test_a_killed_monitor_leaves_a_file_of_whole_lines(file: Path) -> None:
    with monitoring(file, "--every", "10ms") as monitor:
        monitor.await_samples(20)
        monitor.process.kill()
        monitor.process.wait()
        assert file.read_bytes().endswith(b"}\n")
        assert len(monitor.samples()) >= 20
        assert not any("end" in line for line in monitor.lines())


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_it_orderly(file: Path, end: signal.Signals) -> None:
    with monitoring(file, "--every", "1h") as monitor:
        time.sleep(0.01)
        monitor.process.send_signal(end)
        assert monitor.process.wait(timeout=60) == 0
        *_, sample, last = monitor.lines()
    assert last["end"] is True
    assert sample["ns"] <= last["ns"], "the last interval is sampled, though it is not over"


def test_a_full_disk_ends_it_with_one_line_and_a_whole_file(file: Path) -> None:
    # A limit of the file's size refuses in the middle of a line, as a full disk does.
    with monitoring(file, "--every", "10ms") as monitor:
        limit = file.stat().st_size + 2500
        resource.prlimit(monitor.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        complaint = monitor.complaint()
        assert monitor.process.returncode == 5
        assert len(complaint.splitlines()) == 1
        assert str(file) in complaint
        assert file.read_bytes().endswith(b"}\n")
        assert monitor.samples()


@pytest.mark.serial
@pytest.mark.needs_root
def test_a_file_system_without_room_ends_it_the_same_way(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "nodev", small], check=True)
    try:
        with monitoring(small / "monitor-1.jsonl", "--every", "10ms") as monitor:
            complaint = monitor.complaint()
            assert (monitor.process.returncode, len(complaint.splitlines())) == (5, 1)
            assert "no space left" in complaint
            assert monitor.file.read_bytes().endswith(b"}\n")
            assert monitor.samples()
    finally:
        subprocess.run(["umount", small], check=True)


def test_where_there_is_little_to_read_it_says_why(tmp_path: Path, file: Path) -> None:
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    (root / "proc/stat").write_text("cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nctxt 9\n")
    with monitoring(file, "--every", "10ms", "--root", str(root)) as monitor:
        monitor.await_samples(2)
        _, columns, first, *_ = monitor.end()
    assert {"kernel", "pressure", "frequency", "temperature", "throttle", "disk", "net"} <= set(
        columns["absent"]
    )
    assert (first["top"], first["processes"]) == ([], 0)
    assert monitor.column("cpu.user")[0] == 0


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        pytest.param((), 2, "--output is missing", id="nothing"),
        pytest.param(("--output", "{new}", "--every", "5ms"), 2, "10ms to 1h", id="too-often"),
        pytest.param(("--output", "{new}", "--top", "many"), 2, "--top", id="no-number"),
        pytest.param(("--output", "{old}"), 5, "is there already", id="file-there"),
        pytest.param(("--output", "/proc/none/file"), 5, "cannot be written", id="no-directory"),
        pytest.param(("--output", "{new}", "--root", "/var/empty/none"), 5, "/proc", id="no-proc"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    tmp_path: Path, options: tuple[str, ...], status: int, said: str
) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("precious")
    command = [engine_path(), "monitor", *(word.format(new=new, old=old) for word in options)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.PIPE, check=False)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, said in line) == (status, True), line
    assert not new.exists()
    assert old.read_text() == "precious"
