"""`etude-engine ipc`, the real program: each byte arrives once, whatever fails is one line, nobody is left behind."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from support.places import DOCS
from support.real import ETUDE, alive, children

pytestmark = pytest.mark.beside

MODES = ("1thread", "2thread", "2proc")
TRANSPORTS = ("pipe", "local", "tcp")


def ipc(*arguments: str, check: int = 0) -> subprocess.CompletedProcess[str]:
    """Run it without its second of waiting; its exit status must be `check`."""
    command = [engine_path(), "ipc", "-B", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
    return done


def as_json(*arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(ipc("-j", *arguments).stdout)
    return document


def failing(code: int, *arguments: str) -> str:
    """The one line of a run that fails."""
    done = ipc(*arguments, check=code)
    assert done.stdout == ""
    assert re.fullmatch(r"FAIL: [^\n]+\n", done.stderr), done.stderr
    return done.stderr.strip()


def moved(sample: dict[str, Any]) -> int:
    """The bytes that a sample's rate and time stand for."""
    exact: float = sample["bandwidth"] * 1024 * sample["time"]
    assert exact == pytest.approx(round(exact), abs=1e-3)
    return round(exact)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("buffer", "total"), [("4K", 1_000_003), ("128K", 77), ("1000", 100_000), ("7", 7000)]
)
def test_exactly_the_total_arrives(mode: str, transport: str, buffer: str, total: int) -> None:
    before = time.monotonic()
    document = as_json("-i", transport, "-b", buffer, "-t", str(total), "-n", "2", mode)
    whole = time.monotonic() - before
    samples = document["benchmark_samples"]
    assert 0 < sum(sample["time"] for sample in samples) < whole
    assert [moved(sample) for sample in samples] == [total, total]
    asked = document["benchmark_configuration"]
    assert (asked["mode"], asked["ipctype"], asked["totalsize"]) == (mode, transport, total)
    assert asked["blockcount"] == -(-total // asked["buffersize"])
    assert {"machine", "model", "caches", "tlb"} <= set(document["hw_configuration"])
    assert document["os_configuration"]["ostype"] == "Linux"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", ["local", "tcp"])
def test_socket_buffers_are_set_before_anything_is_sent_and_told(mode: str, transport: str) -> None:
    arguments = ("-i", transport, "-b", "8K", "-t", "200001")
    plain, small = as_json(*arguments, mode), as_json(*arguments, "-s", mode)
    assert [moved(sample) for sample in small["benchmark_samples"]] == [200_001]
    for name in ("send_buffer_bytes", "receive_buffer_bytes"):
        # Linux doubles what is asked for (socket(7)), to have room for its own.
        assert small["benchmark_configuration"][name] == 16384 < plain["benchmark_configuration"][name]


def test_the_text_is_the_labs() -> None:
    assert re.fullmatch(r"(\d+\.\d\d KBytes/sec\n){3}", ipc("-n", "3", "2thread").stdout)
    verbose = ipc("-v", "-g", "-i", "local", "2proc").stdout
    assert verbose.splitlines()[1:3] == ["  mode: 2proc", "  ipctype: local"]
    assert "  buffersize: 131072\n  totalsize: 16777216\n  blockcount: 128\n" in verbose
    assert re.search(r"^  time: \d+\.\d{9}$", verbose, re.MULTILINE)
    assert re.search(r"^  nvcsw: \d+$", verbose, re.MULTILINE)
    assert ipc("-q", "-v", "1thread").stdout == ""


def test_help_is_no_failure() -> None:
    assert "\nusage: etude ipc [" in ipc("--help").stdout


@pytest.mark.parametrize("mode", MODES)
def test_usage_is_that_of_both_ends(mode: str) -> None:
    (sample,) = as_json("-g", "-t", "64M", mode)["benchmark_samples"]
    assert sample["utime"] + sample["stime"] > 0
    assert sample["nvcsw"] + sample["nivcsw"] >= (0 if mode == "1thread" else 2)


@pytest.mark.parametrize("counters", ["l1d", "l1i", "l2", "mem", "tlb"])
def test_each_counter_has_a_count_or_a_reason(counters: str) -> None:
    (sample,) = as_json("-P", counters, "2proc")["benchmark_samples"]
    assert {"cycles", "instructions"} < set(sample["counters"])
    for entry in sample["counters"].values():
        assert entry["reason"] if entry["count"] is None else entry["count"] > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "MODE"),
        (("4proc",), "1thread, 2thread or 2proc"),
        (("-i", "udp", "2proc"), "pipe, local or tcp"),
        (("-b", "0", "2proc"), "1 B or more"),
        (("-t", "-5", "2proc"), "expected a size"),
        (("-t", "99999999999T", "2proc"), "at most"),
        (("-P", "axi", "2proc"), "l1d, l1i, l2, mem, tlb"),
        (("-s", "2proc"), "no socket buffers"),
        (("-p", "5001", "-i", "local", "2proc"), "-i local"),
        (("--cpu", "0,1", "1thread"), "one CPU"),
        (("--frobnicate", "2proc"), "--frobnicate"),
    ],
)
def test_wrong_options_are_one_line_and_64(arguments: tuple[str, ...], said: str) -> None:
    assert said in failing(64, *arguments)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_in_use_is_one_line(taken: int) -> None:
    for mode in MODES:
        line = failing(71, "-i", "tcp", "-p", str(taken), mode)
        assert line.startswith(f"FAIL: -p {taken}: {os.strerror(errno.EADDRINUSE)}")


def test_a_port_can_be_used_again_at_once(taken: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for mode in MODES:
        document = as_json("-i", "tcp", "-p", str(port), "-n", "4", "-t", "1M", mode)
        assert document["benchmark_configuration"]["port"] == port
        assert len(document["benchmark_samples"]) == 4


def test_a_cpu_or_memory_that_is_not_there_is_one_line() -> None:
    for mode in MODES:
        assert "--cpu 4095: " in failing(71, "--cpu", "4095", mode)
        assert "this machine has" in failing(71, "-b", "9000T", mode)
    first = min(os.sched_getaffinity(0))
    assert "--cpu 4095: " in failing(71, "--cpu", f"{first},4095", "2proc")
    assert as_json("--cpu", str(first), "2thread")["benchmark_configuration"]["cpus"] == [first, first]


def test_it_may_wait_until_the_receiver_is_ready() -> None:
    for mode in MODES:
        command = [engine_path(), "ipc", "-j", "-n", "2", mode]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert [moved(sample) for sample in json.loads(done.stdout)["benchmark_samples"]] == [1 << 24] * 2


class Running:
    """A run that would take for ever, and its sender."""

    def __init__(self, transport: str, mode: str = "2proc") -> None:
        command = [engine_path(), "ipc", "-B", "-i", transport, "-t", "1000T", mode]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def sender(self) -> int:
        until = time.monotonic() + 20
        while not (found := children(self.process.pid)):
            assert time.monotonic() < until
            time.sleep(0.01)
        return found[0]

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def gone(pid: int) -> bool:
    until = time.monotonic() + 20
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(pid)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_ends_its_sender(transport: str, how: signal.Signals) -> None:
    with Running(transport) as running:
        sender = running.sender()
        running.process.send_signal(how)
        assert running.process.wait(20) == -how
        assert gone(sender)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_sender_that_dies_is_one_line(transport: str) -> None:
    with Running(transport) as running:
        os.kill(running.sender(), signal.SIGKILL)
        out, said = running.process.communicate(timeout=20)
    assert (running.process.returncode, out) == (74, "")
    pattern = r"FAIL: .*\bsignal 9\b.* \d+ of 1099511627776000 bytes\n"
    assert re.fullmatch(pattern, said), said


@pytest.mark.parametrize("mode", ["1thread", "2thread"])
def test_ctrl_c_ends_one_process(mode: str) -> None:
    with Running("local", mode) as running:
        time.sleep(0.1)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(20) == -signal.SIGINT


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    limit = f"ulimit -n 40; exec {engine_path()} ipc -B -q -n 60 -t 1K"
    for transport in TRANSPORTS:
        for mode in MODES:
            subprocess.run(
                ["sh", "-c", f"{limit} -i {transport} {mode}"], check=True, timeout=60, cwd=tmp_path
            )


def test_the_sweeps_of_the_documentation_run(tmp_path: Path) -> None:
    text = (DOCS / "howto" / "ipc.md").read_text()
    lines = re.findall(r"^    (?:.*\n)(?:    .*\n)*", text, re.MULTILINE)
    sweeps = [line for line in lines if "etude-engine ipc" in line]
    assert len(sweeps) == 3 + 1
    # As they stand, but for fewer and smaller points.
    for old, new in (("16777216*2", "8192*16"), ("seq 9 24", "seq 9 10"), ("--trials 10", "--trials 2")):
        assert any(old in line for line in sweeps)
        sweeps = [line.replace(old, new) for line in sweeps]
    path = f"{Path(engine_path()).parent}:{Path(ETUDE).parent}:{os.environ['PATH']}"
    for line in sweeps:
        done = subprocess.run(
            ["bash", "-euc", line],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert re.search(r"[GM]iB/s|KBytes/sec", done.stdout), done.stdout
