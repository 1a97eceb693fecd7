"""What an idle node of a pool bears: its processes and their CPU time, beside Slurm without Étude.

A cluster of two nodes on this machine (tests/support/slurm_cluster.py, needs root). With the pool, a controller keeps
the first node busy with job after job, and looks for their ends; the second has nothing to do, and is looked at.
Without, there is no controller. Stretches of both take turns in random order.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rows import Row, interleave

STRETCHES, STRETCH_S = 10, 30.0
"""Of each: 300 s."""
QUICK_S = 3.0
REACH = 0.1
"""Percent of a core."""
OF_SLURM = frozenset(("slurmd", "slurmstepd"))
OF_TEST = frozenset(("sh", "unshare"))
"""What the cluster starts slurmd by."""

CONTROLLER = """
import sys
from pathlib import Path
from etude.cluster.pool.job import Job
from etude.cluster.pool.spec import open_pool, read_pool

base = Path(sys.argv[1])
with open_pool(read_pool("slurm"), base) as pool:
    number = 0
    while True:
        number += 1
        place = base / str(number)
        place.mkdir(parents=True)
        pool.submit(Job(f"job {number}", ("sleep", "2"), place, base, only=sys.argv[2]))
        while not pool.ended(60.0):
            pass
"""


@dataclass(frozen=True)
class Use:
    """Of all processes of a node."""

    names: frozenset[str]
    ran_ns: int


def pool_idle(rounds: int) -> list[Row]:
    """Two rows: processes of ours on an idle node, and what CPU time it uses more than under Slurm alone."""
    if os.geteuid() != 0:
        return [_missing("it needs root, for a cluster on this machine")]
    from support.slurm_cluster import Cluster

    quick = rounds < STRETCHES
    stretch_s = QUICK_S if quick else STRETCH_S
    names: set[str] = set()
    with Cluster(nodes=2) as cluster:
        node = cluster.nodes[1]

        def use_percent() -> float:
            before, began = _use(node), time.monotonic()
            ends = began + stretch_s
            while time.monotonic() < ends:
                time.sleep(0.1)
                names.update(_use(node).names)
            after = _use(node)
            return 100.0 * (after.ran_ns - before.ran_ns) / 1e9 / (time.monotonic() - began)

        def with_pool() -> float:
            with _controller(cluster.environment, cluster.directory, cluster.nodes[0]):
                return use_percent()

        parties: dict[str, Callable[[], float]] = {"pool": with_pool, "alone": use_percent}
        found = interleave(parties, rounds)
    pool, alone = (sum(found[name]) / rounds for name in ("pool", "alone"))
    ours = sorted(names - OF_SLURM - OF_TEST)
    processes = f"{len(ours)} {' '.join(ours)}".strip()
    spent = f"{rounds * stretch_s:.0f} s of each"
    used = f"{pool - alone:+.4f} % of a core ({pool:.4f} % and {alone:.4f} %; {spent})"
    cpu_time, less = "CPU time of an idle node of a pool, by schedstat", pool - alone < REACH
    return [
        Row("processes of ours on an idle node of a pool", "Slurm alone", processes, "0", not ours),
        Row(cpu_time, "Slurm alone", used, f"< {REACH} %", less),
    ]


@contextmanager
def _controller(environment: dict[str, str], directory: Path, node: str) -> Iterator[None]:
    """A controller at work; it has begun its first job when this returns."""
    base = directory / f"controller-{time.monotonic_ns()}"
    program = subprocess.Popen([sys.executable, "-c", CONTROLLER, str(base), node], env=environment)
    try:
        while not (base / "1").exists():
            if program.poll() is not None:
                raise SystemExit(f"bench: the controller ended with {program.returncode}")
            time.sleep(0.05)
        yield
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait()


def _use(node: str) -> Use:
    """Of the processes in the node's own process namespace, by their threads' schedstat."""
    names, ran_ns, there = set(), 0, _namespace(node)
    for directory in _processes():
        try:
            if (directory / "ns" / "pid").readlink() != there:
                continue
            names.add((directory / "comm").read_text().strip())
            for task in (directory / "task").iterdir():
                ran_ns += int((task / "schedstat").read_text().split()[0])
        except OSError:
            continue  # it has ended
    return Use(frozenset(names), ran_ns)


def _namespace(node: str) -> Path:
    for directory in _processes():
        try:
            if (directory / "cmdline").read_bytes() == f"slurmd\0-D\0-N\0{node}\0".encode():
                return (directory / "ns" / "pid").readlink()
        except OSError:
            continue
    raise SystemExit(f"bench: slurmd of node {node} does not run")


def _processes() -> Iterator[Path]:
    return (path for path in Path("/proc").iterdir() if path.name.isdigit())


def _missing(why: str) -> Row:
    return Row("an idle node of a pool", "Slurm alone", f"not measured: {why}", f"< {REACH} %", None)
