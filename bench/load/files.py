"""Load on files beside fio: how late requests are sent, what sending costs, and the highest rate beside a bare loop.

Both read cached blocks of 4 KiB here and there in such files, bound to one processor. fio does not tell how late it
sends: `peers/fio_schedule.c` notes the gaps that it draws and the instants of its reads. fio means to send the first
request at once and each other one a gap after the instant of the one before (its backend.c: `usec_for_io` adds
1e6/rate × -ln(u), cut to whole microseconds), counted from an instant that is not known; it is taken for the earliest
one at which no request was early. That is in fio's favour: its least late request counts as on time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.program import engine_path
from etude.results.histograms import decode
from rows import ROOT, Row, at_most, interleave, need, peer, printed, ratios, shown, spread

RATE = 10_000
WAIT = "hybrid"
"""fio's own: it sleeps until shortly before an instant, and spins for the rest."""
FILES, FILE_BYTES, BLOCK = 8, 4 << 20, 4096
REACH_CPU, REACH_RATE, REACH_OFFERED = 1.2, 0.8, 0.005
KNOBS = (
    "mix=read=1",
    f"files={FILES}",
    "files_per_rate=0",
    f"sizes=fixed:{FILE_BYTES}",
    "popularity=uniform",
    "read_sequential=0",
    f"read_size=fixed:{BLOCK}",
    f"alignment={BLOCK}",
)


@dataclass(frozen=True)
class Sent:
    """What a run at the rate was like."""

    late_p99_s: float
    cpu_s: float
    """Per request."""
    requests: int
    duration_s: float


def load_files(rounds: int) -> list[Row]:
    """The rows; with fewer than three rounds also the runs are short."""
    need("fio")
    seconds = 10 if rounds > 2 else 1
    # One round has no quartiles.
    rounds = max(2, rounds)
    with tempfile.TemporaryDirectory(prefix="etude-bench-") as scratch:
        place = Path(scratch)
        offered(place, 1, 0.5, "sleep", 1)
        return [*at_a_rate(place, rounds, seconds), highest(place, rounds, min(seconds, 3))]


def at_a_rate(place: Path, rounds: int, seconds: float) -> list[Row]:
    """Lateness, what was offered, and CPU time, of pairs of runs."""
    found: dict[str, list[Sent]] = {WAIT: [], "spin": [], "fio": []}
    seeds = iter(range(1, 1 + 3 * rounds))

    def party(name: str, run: Callable[[], Sent]) -> float:
        found[name].append(run())
        return found[name][-1].cpu_s

    parties = {
        WAIT: lambda: party(WAIT, lambda: offered(place, RATE, seconds, WAIT, next(seeds))),
        "spin": lambda: party("spin", lambda: offered(place, RATE, seconds, "spin", next(seeds))),
        "fio": lambda: party("fio", lambda: by_fio(place, seconds, next(seeds))),
    }
    cpu = interleave(parties, rounds)
    late = {name: [sent.late_p99_s for sent in runs] for name, runs in found.items()}
    share = sum(sent.requests for sent in found[WAIT]) / sum(RATE * sent.duration_s for sent in found[WAIT])
    lateness = ratios(late[WAIT], late["fio"])
    us = {name: 1e6 * spread(values).median for name, values in late.items()}
    cpu_us = {name: 1e6 * spread(values).median for name, values in cpu.items()}
    at = f"at {RATE:,} requests/s, Poisson, one processor, {WAIT} wait"
    base = f"fio psync, rate_process=poisson: {us['fio']:,.0f} µs"
    value = f"{lateness}; load {us[WAIT]:,.0f} µs, spinning {us['spin']:,.0f} µs"
    near = (f"1 ± {REACH_OFFERED:g}", abs(share - 1) <= REACH_OFFERED)
    own = f"fio: {cpu_us['fio']:.1f} µs; load {cpu_us[WAIT]:.1f} µs, spinning {cpu_us['spin']:.1f} µs"
    return [
        Row(f"files: lateness of sends, p99, load / fio, {at}", base, value, "< 1", lateness.median < 1),
        Row(f"files: requests sent / asked, {at}", "the rate that was asked for", f"{share:.4f}", *near),
        at_most(
            f"files: own CPU per request, load / fio, {at}", own, ratios(cpu[WAIT], cpu["fio"]), REACH_CPU
        ),
    ]


def highest(place: Path, rounds: int, seconds: float) -> Row:
    """One client that does not think, beside a loop in C on the same files."""
    (root,) = place.glob("etude-load-*")
    files = sorted(str(path) for path in root.rglob("*") if path.is_file())
    loop = ["taskset", "-c", "0", peer("pread_loop"), str(seconds), *files]
    parties = {
        "load": lambda: closed(place, seconds),
        "loop": lambda: float(printed(*loop)),
    }
    found = interleave(parties, rounds)
    ratio = ratios(found["load"], found["loop"])
    what = (
        f"files: highest rate of cached reads of {BLOCK} bytes, load / bare loop, one client, one processor"
    )
    base, value = (f"{spread(found[name]).median:,.0f}/s" for name in ("loop", "load"))
    reach = (f"≥ {REACH_RATE:g}", ratio.median >= REACH_RATE)
    return Row(what, f"the same calls in C, {base}", f"{ratio}; load {value}", *reach)


def loaded(place: Path, seed: int, words: Sequence[str]) -> dict[str, Any]:
    """The last line of a load on one processor; nothing may have failed."""
    # What spins at real-time priority is stopped by the kernel for 50 ms of each second.
    priority = ["chrt", "--other", "0"] if "spin" in words else []
    command = ["taskset", "-c", "0", *priority, *command_of(place, seed), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    end: dict[str, Any] = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    if not end or end["summary"]["failed"]:
        sys.exit(f"bench: {' '.join(command)}: {done.stderr or end['summary']['failures']}")
    return end


def offered(place: Path, rate: float, seconds: float, wait: str, seed: int) -> Sent:
    how = ["--rate", str(rate), "--seconds", str(seconds), "--warm-up", "0.5", "--wait", wait]
    end = loaded(place, seed, how)
    summary = end["summary"]
    return Sent(
        end["lateness_p99_s"], *(summary[name] for name in ("cpu_per_request_s", "started", "duration_s"))
    )


def closed(place: Path, seconds: float) -> float:
    end = loaded(place, 1, ["--clients", "1", "--seconds", str(seconds), "--warm-up", "0.2"])
    return float(end["summary"]["completed"] / end["summary"]["duration_s"])


def by_fio(place: Path, seconds: float, seed: int) -> Sent:
    """The same by fio, on files of its own of the same size."""
    out, files = place / "schedule", place / "fio"
    files.mkdir(exist_ok=True)
    command = ["taskset", "-c", "0", "fio", "--name=r", f"--directory={files}", f"--nrfiles={FILES}"]
    command += [f"--size={FILES * FILE_BYTES}", "--rw=randread", "--norandommap", f"--bs={BLOCK}"]
    command += ["--ioengine=psync", "--numjobs=1", f"--rate_iops={RATE}", "--rate_process=poisson"]
    command += [f"--randseed={seed}", "--time_based", f"--runtime={seconds}", "--output-format=json"]
    shim = peer("fio_schedule", "-shared", "-fPIC", libraries=("-ldl",))
    said = printed(*command, env={**os.environ, "LD_PRELOAD": shim, "FIO_SCHEDULE": str(out)})
    job = json.loads(said[said.index("{") :])["jobs"][0]
    late_ns = fio_lateness(out)
    runtime_s = job["job_runtime"] / 1e3
    # Of the job's own process, from when it began to read.
    cpu_s = (job["usr_cpu"] + job["sys_cpu"]) / 100 * runtime_s / len(late_ns)
    return Sent(float(np.quantile(late_ns, 0.99)) / 1e9, cpu_s, len(late_ns), runtime_s)


def fio_lateness(path: Path) -> NDArray[np.int64]:
    """How late each send of fio's was, ns; at least 0."""
    with path.open("rb") as file:
        gaps, sends = (int(count) for count in np.fromfile(file, np.uint64, 2))
        logarithms = np.fromfile(file, np.float32, gaps)
        sent = np.fromfile(file, np.uint64, sends).astype(np.int64)
    if abs(gaps - sends) > 1:
        sys.exit(f"bench: fio drew {gaps} gaps for {sends} reads: the shim is not for this version of fio")
    # As fio computes: a product of floats, cut to whole microseconds.
    steps = (np.float32(1_000_000 // RATE) * -logarithms).astype(np.int64) * 1000
    due = np.concatenate([[0], np.cumsum(steps)])[: len(sent)]
    late = sent[: len(due)] - due
    return np.asarray(late - late.min(), dtype=np.int64)


def command_of(place: Path, seed: int) -> list[str]:
    knobs = [word for knob in KNOBS for word in ("--set", knob)]
    command = [engine_path(), "load", "--json", "--directory", str(place), "--preset", "web", *knobs]
    return [*command, "--seed", str(seed), "--sized-for", "1"]


SERVER = ROOT / "examples" / "lib" / "nfs-server.sh"
SECONDS = 3
QUICK_SECONDS = 0.5
UNDER_WAY = 256
"""Calls at a time where they are pipelined."""
REACH_PIPELINED = 2.0
REACH_DEPTH_1 = 1.1
NET = "10.79.97"


@dataclass(frozen=True)
class NfsPlace:
    """A server that runs, for programs in its client's network."""

    environment: dict[str, str]
    seconds: float

    def server(self, *words: str) -> str:
        done = subprocess.run([SERVER, *words], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"bench: {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout


def load_nfs(rounds: int) -> list[Row]:
    """Two rows: the rate of many calls under way, and the median latency of one at a time; both against libnfs."""
    if os.geteuid() != 0:
        return [missing("it needs root, for a server in a network of its own")]
    if not Path("/usr/include/nfsc/libnfs.h").exists():
        return [missing("no libnfs.h: apt-get install libnfs-dev")]
    with serving(SECONDS if rounds > 3 else QUICK_SECONDS) as place:
        medians: list[float] = []

        def looped_rate() -> float:
            rate, median_s = looped(place)
            medians.append(median_s)
            return rate

        parties = {
            "pipelined": lambda: offered_calls(place, UNDER_WAY)[0],
            "alone": lambda: offered_calls(place, 1)[1],
            "libnfs": looped_rate,
        }
        found = interleave(parties, max(rounds, 2))
    faster = ratios(found["pipelined"], found["libnfs"])
    what = f"NFS GETATTR, one connection, {UNDER_WAY} calls under way: rate, etude load / libnfs"
    base = f"libnfs, one call after the other, {spread(found['libnfs']).median:,.0f}/s"
    reach = (f"≥ {REACH_PIPELINED:g}", faster.median >= REACH_PIPELINED)
    alone = "NFS GETATTR, one call at a time: median latency, etude load / libnfs"
    libnfs = f"libnfs, {1e6 * spread(medians).median:.1f} µs"
    return [
        Row(what, base, str(faster), *reach),
        at_most(alone, libnfs, ratios(found["alone"], medians), REACH_DEPTH_1),
    ]


def missing(why: str) -> Row:
    return shown("NFS GETATTR, etude load / libnfs", "libnfs", f"not measured: {why}")


@contextmanager
def serving(seconds: float) -> Iterator[NfsPlace]:
    """A server in a network that is gone afterwards, with the file that is asked about."""
    with tempfile.TemporaryDirectory(prefix="etude-bench-nfs-") as scratch:
        own = {"APSCRATCH": scratch, "NFSNAME": "etude-bench-nfs", "NFSNET": NET, "APRESULTS": ""}
        place = NfsPlace(os.environ | own, seconds)
        try:
            place.server("restart")
            yield place
        finally:
            place.server("stop")


def offered_calls(place: NfsPlace, clients: int) -> tuple[float, float]:
    """A closed loop of GETATTRs: calls per second, and the median of their response times in s."""
    url, knobs = f"nfs://{NET}.1/mem", str(ROOT / "bench" / "getattr.toml")
    words = ["--workload", knobs, "--clients", str(clients), "--seconds", str(place.seconds)]
    warm = ["--warm-up", "0.2", "--window", str(place.seconds)]
    said = place.server("client", "1", engine_path(), "load", "--json", "--nfs", url, *words, *warm)
    window, end = (json.loads(line) for line in said.splitlines())
    if end["summary"]["failed"]:
        raise SystemExit(f"bench: etude load: {end['summary']['failures']}")
    latency = decode(window["latency"])
    middle = int(np.searchsorted(latency.counts.cumsum(), latency.counts.sum() / 2))
    return window["completed"] / window["duration_s"], float(latency.values[middle]) / 1e9


def looped(place: NfsPlace) -> tuple[float, float]:
    """libnfs's loop: the same two."""
    program = peer("libnfs_getattr", libraries=("-lnfs",))
    said = place.server("client", "1", program, f"nfs://{NET}.1/mem/one", str(place.seconds))
    calls, seconds, median_s, _ = map(float, said.split())
    return calls / seconds, median_s
