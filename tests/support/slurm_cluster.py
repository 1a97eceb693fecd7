"""A Slurm cluster on this machine: munged, slurmctld and as many slurmd as wanted, all of it in one directory.

Each node is a process namespace with a host name of its own. To kill its first process is a power cut: slurmd, its
step daemons and whatever a job has started are gone at once, and nobody has been told.

    with Cluster(nodes=2) as cluster:
        cluster.run("srun", "-N2", "hostname")
        cluster.kill_node("n1")

Names, ports and files are each cluster's own: several may run at once. All of it ends with the process that began it,
however that ends. A test that uses it is marked with `needs_slurm`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

import pytest

from support.ports import free_ports, is_free
from support.real import children

_MARKS = (
    pytest.mark.needs_root,
    pytest.mark.needs_program("munged", package="munge"),
    pytest.mark.needs_program("slurmctld", package="slurmctld"),
    pytest.mark.needs_program("slurmd", package="slurmd"),
    pytest.mark.needs_program("sbatch", package="slurm-client"),
)

PATIENCE_S = 60.0
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")

OPTIONS = {
    "ClusterName": "bench",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "AuthType": "auth/munge",
    "CryptoType": "crypto/munge",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "SwitchType": "switch/none",
    "MpiDefault": "none",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_interval=1,sched_interval=1,batch_sched_delay=0",
    "SlurmdTimeout": "5",
    "MessageTimeout": "3",
    "TCPTimeout": "1",
    "KillWait": "2",
    "ReturnToService": "2",
}
"""Of slurm.conf, besides what hangs on the place: a node that says nothing for 5 s is down."""


def needs_slurm(test: Callable[..., None]) -> Callable[..., None]:
    """Skipped, visibly, where Slurm is not installed, and for other users than root."""
    for mark in _MARKS:
        test = mark(test)
    return test


class Cluster:
    """A running cluster, as a context manager. Nodes are `n1`, `n2`, …; all are in the partition `bench`."""

    def __init__(
        self,
        nodes: int = 2,
        *,
        options: Mapping[str, str] | None = None,
        partitions: Sequence[str] = (),
        features: Mapping[str, str] | None = None,
        private: Path | None = None,
    ) -> None:
        """`options` go into slurm.conf above those here; `partitions` are further lines of it, behind
        `PartitionName=`; `features` are those of nodes. `private`: a directory of which each node has its own."""
        self.nodes = tuple(f"n{number}" for number in range(1, nodes + 1))
        self._options, self._partitions = dict(options or {}), tuple(partitions)
        self._features = dict(features or {})
        self._private = f"mount -t tmpfs none {private}; " if private is not None else ""
        self._stack = ExitStack()
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Cluster:
        self.directory = Path(tempfile.mkdtemp(prefix="slurm-"))
        self._stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        try:
            self._write()
            self._start_munge()
            self._stack.callback(self._stop_all)
            self.start_controller()
            for node in self.nodes:
                self.start_node(node, wait=False)
            self.wait_for_nodes("idle")
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def environment(self) -> dict[str, str]:
        """Of a process that is to use it."""
        path = os.environ.get("PATH", "/usr/bin")
        return {
            **os.environ,
            "PATH": f"{path}:/usr/sbin:/sbin",
            "SLURM_CONF": str(self.directory / "slurm.conf"),
        }

    def run(self, *command: str, check: bool = True) -> str:
        """What a command of Slurm said."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert not check or done.returncode == 0, f"{command}: {done.stderr}\n{self.log()}"
        return done.stdout

    def state(self, node: str) -> str:
        """`idle`, `allocated`, `down*`, …"""
        return self.run("sinfo", "-h", "-n", node, "-o", "%T").splitlines()[0].strip()

    def wait_for_nodes(self, *states: str, nodes: Sequence[str] = ()) -> None:
        """Until each of these nodes (all of them) is in one of these states; `*` behind one is passed over."""
        wait_until(
            lambda: all(self.state(node).strip("*~#$@+-") in states for node in nodes or self.nodes),
            lambda: f"nodes are not {states}: {self.run('sinfo', check=False)}\n{self.log()}",
        )

    def kill_node(self, node: str) -> None:
        """A power cut: all its processes are gone. Slurm finds out `SlurmdTimeout` later."""
        self._end(node, signal.SIGKILL)

    def start_node(self, node: str, *, wait: bool = True) -> None:
        """Bring a node up, or up again."""
        self._start(
            node,
            *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"),
            # The shell stays, as the init that takes in what jobs leave behind; slurmd would not.
            *("sh", "-c", f"{self._private}hostname {node}; slurmd -D -N {node}; :"),
        )
        if wait:
            wait_until(lambda: not is_free(self._ports[node]), self.log)
            self.wait_for_nodes("idle", nodes=[node])

    def enter(self, node: str, *command: str) -> str:
        """Run a command within a node: what it mounts is mounted there alone."""
        return self.run(
            "nsenter", "--target", str(self.first_process(node)), "--mount", "--pid", "--uts", *command
        )

    def first_process(self, node: str) -> int | None:
        """Of the namespace of a node, by its number out here: the kernel kills all others with it. None where it is
        down."""
        return next(iter(children(self._daemons[node].pid)), None) if node in self._daemons else None

    def drain(self, node: str) -> None:
        """Take a node away from new jobs."""
        self.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")

    def resume(self, node: str) -> None:
        """Give it back."""
        self.run("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def stop_controller(self) -> None:
        """End slurmctld; nodes and jobs go on."""
        self._end("slurmctld", signal.SIGTERM)

    def start_controller(self, *, forgetful: bool = False) -> None:
        """Start slurmctld, and wait until it answers; if `forgetful`, it knows of no earlier job."""
        if forgetful:
            shutil.rmtree(self.directory / "state")
            (self.directory / "state").mkdir()
        self._start("slurmctld", "slurmctld", "-D")
        wait_until(
            lambda: "is UP" in self.run("scontrol", "ping", check=False), lambda: f"no answer:\n{self.log()}"
        )

    def tidy(self) -> None:
        """As it has begun: no jobs, and all nodes up and idle, with nothing on them but their slurmd."""
        jobs = self.run("squeue", "-h", "-o", "%A").split()
        if jobs:
            self.run("scancel", *jobs)
        wait_until(lambda: not self.run("squeue", "-h"), self.log)
        for node in self.nodes:
            if self._processes(node) != ["slurmd"]:
                if node in self._daemons:
                    self.kill_node(node)
                self.start_node(node)
            if self.state(node) != "idle":
                self.resume(node)
        self.wait_for_nodes("idle")

    def log(self) -> str:
        """The last lines of what the daemons wrote."""
        logs = (path.read_text(errors="replace")[-1500:] for path in sorted(self.directory.glob("*.log")))
        return "\n".join(logs)

    def _write(self) -> None:
        place, host = self.directory, socket.gethostname()
        ports = free_ports(len(self.nodes) + 1)
        self._ports = dict(zip(self.nodes, ports[1:], strict=True))
        (place / "state").mkdir()
        options = OPTIONS | {
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "AuthInfo": f"socket={place}/munge.socket",
            "StateSaveLocation": f"{place}/state",
            "SlurmdSpoolDir": f"{place}/%n",
            "SlurmctldPidFile": f"{place}/slurmctld.pid",
            "SlurmdPidFile": f"{place}/%n.pid",
            "SlurmctldLogFile": f"{place}/slurmctld.log",
            "SlurmdLogFile": f"{place}/%n.log",
            "SlurmctldPort": str(ports[0]),
        }
        lines = [f"{key}={value}" for key, value in (options | self._options).items()]
        for node, port in self._ports.items():
            (place / node).mkdir()
            feature = f" Feature={self._features[node]}" if node in self._features else ""
            lines.append(
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1{feature}"
            )
        everywhere = f"Nodes={','.join(self.nodes)}"
        lines.append(f"PartitionName=bench {everywhere} Default=YES MaxTime=INFINITE State=UP")
        lines += [f"PartitionName={line.replace('Nodes=ALL', everywhere)}" for line in self._partitions]
        (place / "slurm.conf").write_text("\n".join(lines) + "\n")

    def _start_munge(self) -> None:
        place = self.directory
        key = place / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        files = {"key-file": key, "socket": place / "munge.socket", "pid-file": place / "munge.pid"}
        files |= {"log-file": place / "munge.log", "seed-file": place / "munge.seed"}
        self._start("munged", "munged", "--force", "--foreground", *(f"--{a}={b}" for a, b in files.items()))
        wait_until((place / "munge.socket").exists, lambda: f"munged does not start:\n{self.log()}")

    def _start(self, name: str, *command: str) -> None:
        assert name not in self._daemons, f"{name} runs"
        with open(self.directory / f"{name}.said", "ab") as said:
            self._daemons[name] = subprocess.Popen(
                [*ENDS_WITH_US, *command],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )

    def _end(self, name: str, number: int) -> None:
        first = self.first_process(name) if name in self.nodes else None
        daemon = self._daemons.pop(name)
        os.kill(first or daemon.pid, number)
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def _processes(self, node: str) -> list[str]:
        """What runs on a node, besides its first process."""
        first, found = self.first_process(node), []
        for pid in below(first) if first else ():
            with suppress(OSError):
                found.append(Path(f"/proc/{pid}/comm").read_text().strip())
        return found

    def _stop_all(self) -> None:
        """At once: slurmctld would take seconds to keep what nobody reads."""
        for name in sorted(self._daemons, key=lambda name: (name == "munged", name == "slurmctld")):
            self._end(name, signal.SIGKILL)


def wait_until(ready: Callable[[], object], otherwise: Callable[[], str]) -> None:
    """Wait for something that will be so; `otherwise` says what was instead."""
    until = time.monotonic() + PATIENCE_S
    while not ready():
        assert time.monotonic() < until, otherwise()
        time.sleep(0.05)


def below(pid: int) -> list[int]:
    """The descendants of a process."""
    found = children(pid)
    return found + [each for child in found for each in below(child)]
