"""p99 while the target stands still for 100 ms of each second, beside what it must be by the schedule of the stalls.

Two targets whose stalls are known: the known server over HTTP, and a file system in user space whose reads stall
(peers/stall_fuse.c). A generator that waits for answers before it sends on asks neither while it stalls, and finds a
p99 that is far too good: coordinated omission.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from etude.peak.harnesses.tools.httperf import histogram
from etude.program import engine_path
from etude.results.histograms import Histogram, decode
from rows import Row, peer, printed, shown

STALL_S, PERIOD_S = 0.1, 1.0
RATE = 200.0
SERVICE_MS = 5
WORKERS = 128
"""Of the known server: so many that none waits for a worker. About 21 are in service at the end of a stall."""
FILE_BYTES = 16 << 20
READ_BYTES = 4096
REACH = 0.05
SHARE = 0.99
SECONDS = 20
"""Of load, a round."""
MOUNT_OPTIONS = ("-o", "fsname=etude-stalls")


def exact_s(share: float, *, stall_s: float, period_s: float, service_s: float) -> float:
    """Which response time that share of all responses does not exceed.

    A period is T, a stall S, and a request takes M of time in which the target does not stall; none waits for another.
    Poisson arrivals fall evenly over the period (so do arrivals at a constant rate whose gap divides it not). One that
    comes u after a stall's beginning takes

        S - u + M   where u < S: it waits for the stall's end, and is then served
        M + S       where u > T - M: the next stall begins before it is served, and interrupts it
        M           else

    So for 0 <= w < S the share whose response is above M + w is (S - w + M) / T, which solved for w is the percentile
    above M where it lies between 0 and S; a percentile that fewer than (S + M) / T exceed is M. M is below T - S.
    """
    above = (1 - share) * period_s
    wait_s = stall_s + service_s - above
    return service_s + min(max(wait_s, 0.0), stall_s)


def error_s(share: float, *, period_s: float, requests: float) -> float:
    """Standard error of that percentile as it is measured of so many requests: √(p(1-p)/n) over the density, which is
    1/T between M and M + S."""
    return math.sqrt(share * (1 - share) / requests) * period_s


def percentile_s(found: Sequence[Histogram], share: float) -> float:
    """Of several histograms together."""
    values = np.concatenate([each.values for each in found])
    counts = np.concatenate([each.counts for each in found])
    order = np.argsort(values)
    reached = np.cumsum(counts[order]) >= share * counts.sum()
    return float(values[order][int(np.argmax(reached))]) / 1e9


def load_stalls(rounds: int) -> list[Row]:
    return [*over_http(rounds), *over_files(rounds)]


def over_http(rounds: int) -> list[Row]:
    """The engine's client, and httperf with a new connection a request."""
    exact = exact_s(SHARE, stall_s=STALL_S, period_s=PERIOD_S, service_s=SERVICE_MS / 1e3)
    with known_server() as port:
        ours = offered(["--url", f"http://127.0.0.1:{port}/"], rounds * SECONDS)
        theirs = httperf(port, rounds * SECONDS)
    what = f"p99 of HTTP, the server stalls {1e3 * STALL_S:g} ms each {PERIOD_S:g} s"
    return [
        row(what, "exact, from the stalls", percentile_s(ours, SHARE), exact, reach=True),
        row(f"{what}: the peer's", "httperf", percentile_s([theirs], SHARE), exact, reach=False),
    ]


@contextmanager
def known_server() -> Iterator[int]:
    command = [engine_path(), "known-server", "--workers", str(WORKERS), "--law", "constant"]
    command += ["--mean-ms", str(SERVICE_MS), "--stall", f"{1e3 * STALL_S:g}", "--every", f"{PERIOD_S:g}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(json.loads(process.stdout.readline())["port"])
        finally:
            process.terminate()


def httperf(port: int, seconds: int) -> Histogram:
    """What it says of a connection a request: it spins on a CPU of its own, and sends by the clock."""
    command = ["httperf", "--hog", "--server", "127.0.0.1", "--port", str(port), "--uri", "/"]
    command += [f"--rate={RATE:g}", f"--num-conns={int(RATE * seconds)}", "--num-calls=1", "-v", "-v"]
    found = histogram(said := printed(*command))
    assert found is not None, said
    return found


def over_files(rounds: int) -> list[Row]:
    what = f"p99 of reads, the file system stalls {1e3 * STALL_S:g} ms each {PERIOD_S:g} s"
    missing = lacking()
    if missing:
        return [Row(what, "exact, from the stalls", missing, f"within {REACH:.0%}", None)]
    with stalling() as mount:
        target = mount / "load"
        target.mkdir()
        workload = mount.parent / "reads.toml"
        workload.write_text(reads())
        ours = offered(["--directory", str(target), "--workload", str(workload)], rounds * SECONDS)
        theirs = fio(mount, rounds * SECONDS)
    # A read besides takes tens of microseconds, which is a thousandth of what is looked at.
    exact = exact_s(SHARE, stall_s=STALL_S, period_s=PERIOD_S, service_s=0.0)
    return [
        row(what, "exact, from the stalls", percentile_s(ours, SHARE), exact, reach=True),
        row(f"{what}: the peer's, from issue", "fio psync", theirs, exact, reach=False),
    ]


def lacking() -> str:
    """Why there is no such file system here; empty where there is."""
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        return "not measured: root and /dev/fuse are needed"
    if not Path("/usr/include/fuse3/fuse.h").exists():
        return "not measured: install the Debian package libfuse3-dev"
    return ""


@contextmanager
def stalling() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="etude-stalls-", dir="/dev/shm") as place:
        below, mount = Path(place) / "below", Path(place) / "mount"
        below.mkdir()
        mount.mkdir()
        times = (f"{1e3 * PERIOD_S:g}", f"{1e3 * STALL_S:g}")
        program = peer("stall_fuse", libraries=("-I/usr/include/fuse3", "-lfuse3", "-lpthread"))
        command = [program, str(below), *times, str(mount), *MOUNT_OPTIONS]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                schedule: dict[str, Any] = json.loads(process.stdout.readline())
                assert schedule["stall_ns"] == STALL_S * 1e9
                yield mount
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                subprocess.run(["umount", "--lazy", str(mount)], capture_output=True, check=False)


def reads() -> str:
    return f"""
name = "reads"
files = 1
sizes = "fixed:{FILE_BYTES}"
read_size = "fixed:{READ_BYTES}"
read_sequential = 0.0
directories = 0
directory_files = 0

[mix]
read = 1.0
"""


def fio(mount: Path, seconds: int) -> float:
    """One thread at the same rate; its p99, s."""
    command = ["fio", "--name=reads", f"--filename={mount / 'fio'}", f"--size={FILE_BYTES}", "--rw=randread"]
    command += [f"--bs={READ_BYTES}", "--ioengine=psync", f"--rate_iops={RATE:g}", "--rate_process=poisson"]
    command += ["--thread=1", "--time_based=1", f"--runtime={seconds}", "--percentile_list=99"]
    command += ["--lat_percentiles=1", "--output-format=json"]
    said = printed(*command, cwd=mount.parent)
    job = json.loads(said[said.index("{") :])["jobs"][0]
    return float(job["read"]["lat_ns"]["percentile"]["99.000000"]) / 1e9


def offered(target: Sequence[str], seconds: int) -> list[Histogram]:
    """The histograms of all windows, and of what was drained."""
    how = ("--rate", f"{RATE:g}", "--seconds", str(seconds), "--warm-up", "2", "--seed", "1")
    lines = [
        json.loads(line) for line in printed(engine_path(), "load", "--json", *target, *how).splitlines()
    ]
    drained = lines[-1].get("drained") or {}
    texts = [line.get("latency") for line in [*lines[:-1], drained]]
    return [decode(text) for text in texts if text]


def row(what: str, base: str, found: float, exact: float, *, reach: bool) -> Row:
    off = found / exact - 1
    value = f"{1e3 * found:.1f} ms, exact {1e3 * exact:.1f} ms: {off:+.1%}"
    return (
        Row(what, base, value, f"within {REACH:.0%}", abs(off) <= REACH)
        if reach
        else shown(what, base, value)
    )
