"""NFS spoken directly: GETATTR of one file by `etude load`, beside a loop over libnfs's synchronous interface.

Ganesha serves a file system in its memory, in a network of its own on this machine
(examples/lib/nfs-server.sh, needs root).
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from etude.program import engine_path
from etude.results.histograms import decode
from rows import ROOT, Row, at_most, interleave, peer, ratios, shown, spread

SERVER = ROOT / "examples" / "lib" / "nfs-server.sh"
SECONDS = 3
QUICK_SECONDS = 0.5
UNDER_WAY = 256
"""Calls at a time where they are pipelined."""
REACH_PIPELINED = 2.0
REACH_DEPTH_1 = 1.1
NET = "10.79.97"


@dataclass(frozen=True)
class Place:
    """A server that runs, for programs in its client's network."""

    environment: dict[str, str]
    seconds: float

    def server(self, *words: str) -> str:
        """Run nfs-server.sh; what it printed."""
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
            "pipelined": lambda: offered(place, UNDER_WAY)[0],
            "alone": lambda: offered(place, 1)[1],
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
    """A row that says why nothing was measured."""
    return shown("NFS GETATTR, etude load / libnfs", "libnfs", f"not measured: {why}")


@contextmanager
def serving(seconds: float) -> Iterator[Place]:
    """A server in a network that is gone afterwards, with the file that is asked about."""
    with tempfile.TemporaryDirectory(prefix="etude-bench-nfs-") as scratch:
        own = {"APSCRATCH": scratch, "NFSNAME": "etude-bench-nfs", "NFSNET": NET, "APRESULTS": ""}
        place = Place(os.environ | own, seconds)
        try:
            place.server("restart")
            yield place
        finally:
            place.server("stop")


def offered(place: Place, clients: int) -> tuple[float, float]:
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


def looped(place: Place) -> tuple[float, float]:
    """libnfs's loop: the same two."""
    program = peer("libnfs_getattr", libraries=("-lnfs",))
    said = place.server("client", "1", program, f"nfs://{NET}.1/mem/one", str(place.seconds))
    calls, seconds, median_s, _ = map(float, said.split())
    return calls / seconds, median_s
