"""Three hosts on this machine: network namespaces on one bridge, each with a hostname and an sshd of its own.

They share file system, processes and boot with this machine; the network between them and us is a real one.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_numbers = itertools.count()
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


def _run(*words: str, check: bool = True) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0 or not check, (words, done.stderr)
    return done.stdout


@dataclass
class Machine:
    """One of them. `directory` holds what it keeps of its own."""

    name: str
    address: str
    namespace: str
    directory: Path
    sshd_name: str
    """The name of its sshd's processes, which no other lab's have: all labs are in one space of processes."""
    port: int = 2222
    sshd: subprocess.Popen[bytes] | None = None
    extra: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_sshd(self, *options: str) -> None:
        """Start its sshd, and wait until it listens."""
        words = [*self.words("unshare", "-u", "sh", "-c", 'hostname "$0"; exec "$@"', self.name)]
        log = self.directory / "sshd.log"
        words += [
            str(self.directory.parent / self.sshd_name),
            "-D",
            "-f",
            str(self.directory / "sshd_config"),
            "-E",
            str(log),
            *options,
        ]
        self.sshd = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + 10
        while f":{self.port} " not in _run(*self.words("ss", "-ltn")):
            assert self.sshd.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.02)

    def words(self, *words: str) -> list[str]:
        """A command that runs in its network."""
        return ["ip", "netns", "exec", self.namespace, *words]

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a program in its network; it is ended with the lab."""
        self.extra.append(
            subprocess.Popen(
                self.words(*words),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        return self.extra[-1]

    def sessions(self) -> list[int]:
        """Processes of its sshd that serve connections, and all below them."""
        assert self.sshd is not None
        found, left = [], [self.sshd.pid]
        while left:
            pid = left.pop()
            with suppress(OSError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                left += map(int, children)
                found += map(int, children)
        return found

    def signal_all(self, number: int) -> None:
        """Send a signal to its sshd and to all sessions: to the sshd's own processes only."""
        assert self.sshd is not None
        self.signal_sessions(number)
        os.kill(self.sshd.pid, number)

    def inside(self, *words: str) -> None:
        """Run a command among its mounts, which are its own."""
        assert self.sshd is not None
        _run("nsenter", "-m", "-t", str(self.sshd.pid), *words)

    def seen(self, path: Path) -> list[str]:
        """The names in a directory as it sees it."""
        assert self.sshd is not None
        return sorted(os.listdir(f"/proc/{self.sshd.pid}/root{path}"))

    def signal_sessions(self, number: int) -> None:
        """Send a signal to all processes of its sshd that serve a connection."""
        for pid in self.sessions():
            with suppress(OSError):
                if "sshd" in Path(f"/proc/{pid}/comm").read_text():
                    os.kill(pid, number)

    def cut(self, *, down: bool = True) -> None:
        """Take its network away, without a word; or give it back."""
        _run(*self.words("ip", "link", "set", "eth0", "down" if down else "up"))

    def end(self) -> None:
        """End all that was started here."""
        for pid in self.sessions() if self.sshd is not None else ():
            with suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        self.cut(down=False) if Path(f"/run/netns/{self.namespace}").exists() else None
        for process in (*self.extra, *([self.sshd] if self.sshd else [])):
            with suppress(OSError):
                os.kill(process.pid, signal.SIGCONT)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def table(self, **changes: str) -> str:
        """Its table of a hosts file. `changes`: keys with their TOML values."""
        keys = {
            "address": f'"{self.address}"',
            "user": '"root"',
            "port": str(self.port),
            "identity": '"id"',
            "known_hosts": '"known_hosts"',
            "directory": f'"{self.directory / "work"}"',
            "silence": '"3 s"',
            "connect_timeout": '"3 s"',
        } | changes
        return (
            "\n".join([f"[hosts.{self.name}]", *(f"{key} = {value}" for key, value in keys.items())]) + "\n"
        )


@dataclass(frozen=True)
class Lab:
    """The machines, and where the hosts file and the keys are."""

    directory: Path
    machines: dict[str, Machine]
    number: int
    """No other lab has it."""

    def __getitem__(self, name: str) -> Machine:
        return self.machines[name]

    def write(self, *names: str, **changes: str) -> Path:
        """hosts.toml with these machines (all, if none is named)."""
        path = self.directory / "hosts.toml"
        path.write_text("\n".join(self[name].table(**changes) for name in names or self.machines))
        return path

    def left(self) -> list[str]:
        """What stands in the working directories of all machines."""
        return sorted(str(path) for m in self.machines.values() for path in (m.directory / "work").iterdir())


@contextmanager
def laboratory(directory: Path, names: Sequence[str] = ("server", "client1", "client2")) -> Iterator[Lab]:
    """Set up and take down."""
    number = os.getpid() * 10 + next(_numbers)
    bridge, net = f"eb{number}"[-15:], _make_bridge(f"eb{number}"[-15:])
    machines = {
        name: Machine(name, f"{net}.{index}", f"etude-{number}-{name}", directory / name, f"sshd{number}")
        for index, name in enumerate(names, 2)
    }
    # It stays: the sshd of another lab may have come to need it.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    try:
        _keys(directory, machines)
        (directory / f"sshd{number}").symlink_to(SSHD)
        for index, machine in enumerate(machines.values()):
            veth = f"ev{number}{index}"[-15:]
            _run("ip", "netns", "add", machine.namespace)
            _run(
                "ip", "link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", machine.namespace
            )
            _run("ip", "link", "set", veth, "master", bridge, "up")
            _run("ip", "-n", machine.namespace, "addr", "add", f"{machine.address}/24", "dev", "eth0")
            _run("ip", "-n", machine.namespace, "link", "set", "lo", "up")
            _run("ip", "-n", machine.namespace, "link", "set", "eth0", "up")
            machine.start_sshd()
        yield Lab(directory, machines, number)
    finally:
        for machine in machines.values():
            machine.end()
            _run("ip", "netns", "del", machine.namespace, check=False)
        _run("ip", "link", "del", bridge, check=False)


def _make_bridge(name: str) -> str:
    """With the first address of a network that no other has: the network, without its last number."""
    with open("/run/lock/etude-test-hosts", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        taken = _run("ip", "-o", "-4", "addr", "show")
        net = next(net for net in (f"10.77.{number}" for number in range(250)) if f" {net}." not in taken)
        _run("ip", "link", "add", name, "type", "bridge")
        _run("ip", "addr", "add", f"{net}.1/24", "dev", name)
    _run("ip", "link", "set", name, "up")
    return net


def _keys(directory: Path, machines: dict[str, Machine]) -> None:
    known = []
    for key in ("id", "host_key"):
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(directory / key))
    shutil.copy(directory / "id.pub", directory / "authorized")
    for machine in machines.values():
        (machine.directory / "work").mkdir(parents=True)
        known.append(f"[{machine.address}]:{machine.port} {(directory / 'host_key.pub').read_text()}")
        (machine.directory / "sshd_config").write_text(
            f"""\
Port {machine.port}
ListenAddress {machine.address}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
MaxStartups 100
"""
        )
    (directory / "known_hosts").write_text("".join(known))
