"""Bare roots: file systems of other releases with little more than Python, in which commands run by themselves.

A root is made once by mmdebstrap and kept in a cache. Each user works on an overlay of it, which starts empty: what a
command writes stays until the `with` ends and never reaches the cache. Each command has mounts, processes and a network
of its own, which end with it, also where it fails, hangs or is killed. Needs root.

    with bare_root("trixie", tmp_path) as root:
        root.write("/root/note", "text")
        done = root.run("cat", "/root/note")
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

RELEASES = {"bookworm": "Debian 12", "trixie": "Debian 13", "noble": "Ubuntu 24.04"}
WITH_PYTHON = ("python3", "python3-venv")
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root"}
"""Nothing of this machine's: no proxies, and no settings of pip or cargo."""

ROOM_BYTES = 4 << 30

NODES = "null zero full random urandom tty"

# The arguments: the cached root, this one's directory, pairs of a directory here and where it is seen, --, the command.
# The shell is process 1 and stays, so that the command is an ordinary process and strays are reaped.
INSIDE = f"""
set -e
lower=$1 state=$2 root=$2/root
shift 2
mount -t overlay -o "lowerdir=$lower,upperdir=$state/upper,workdir=$state/work" overlay "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for node in {NODES}; do : >"$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"; done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs shm "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
for link in ptmx:pts/ptmx fd:/proc/self/fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do
    ln -s "${{link#*:}}" "$root/dev/${{link%%:*}}"
done
while [ "$1" != -- ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
    shift 2
done
shift
! command -v ip >/dev/null || ip link set lo up || :
set +e
chroot "$root" "$@"
exit $?
"""


class CannotMake(Exception):
    """A root cannot be made here; one line, what is missing."""


@dataclass(frozen=True)
class BareRoot:
    """A root and what was written to it."""

    release: str
    lower: Path
    state: Path
    seen: Mapping[str, Path] = field(default_factory=dict)
    """Directories of this machine that commands may read, by where they see them."""

    def words(self, *command: str | Path, network: bool = False) -> list[str]:
        """The command line that runs `command` in the root; by itself it has the environment of its caller."""
        namespaces = ["--mount", "--pid", "--ipc", "--uts", *([] if network else ["--net"])]
        seen = [word for inside, outside in self.seen.items() for word in (str(outside), inside)]
        return [
            *("unshare", *namespaces, "--fork", "--kill-child", "--propagation", "private"),
            *("sh", "-c", INSIDE, "sh", str(self.lower), str(self.state), *seen, "--", *map(str, command)),
        ]

    def run(
        self,
        *command: str | Path,
        env: Mapping[str, str] | None = None,
        network: bool = False,
        timeout: float = 600,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run `command` in the root, in its directory /.

        Args:
            env: variables beside those of `ENVIRONMENT`.
            network: use this machine's network, and its names of hosts.

        Raises:
            AssertionError: it failed, and `check` is true.
            subprocess.TimeoutExpired: it took too long; all of it is ended.
        """
        if network:
            self.write("/etc/resolv.conf", Path("/etc/resolv.conf").read_text())
        words = self.words(*command, network=network)
        done = subprocess.run(
            words,
            env={**ENVIRONMENT, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or done.returncode == 0, (
            f"{self.release}: {' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done

    def path(self, inside: str) -> Path:
        """Where a file of the root lies on this machine, for reading."""
        written = self.state / "upper" / inside.lstrip("/")
        return written if os.path.lexists(written) else self.lower / inside.lstrip("/")

    def write(self, inside: str, text: str, mode: int = 0o644) -> None:
        """Write a file, while no command runs."""
        self._place(inside).write_text(text)
        self._place(inside).chmod(mode)

    def copy(self, outside: Path, inside: str) -> None:
        """Copy a file or a directory into the root, while no command runs."""
        if outside.is_dir():
            shutil.copytree(outside, self._place(inside), symlinks=True)
        else:
            shutil.copy2(outside, self._place(inside))

    def _place(self, inside: str) -> Path:
        path = self.state / "upper" / inside.lstrip("/")
        # A directory of the overlay hides the mode of the one below: /tmp and /root are as they were.
        for above in reversed(path.parents[: len(path.relative_to(self.state).parts) - 2]):
            if not above.exists():
                below = self.lower / above.relative_to(self.state / "upper")
                above.mkdir(mode=(below.stat().st_mode & 0o7777) if below.is_dir() else 0o755)
                above.chmod((below.stat().st_mode & 0o7777) if below.is_dir() else 0o755)
        return path


@contextmanager
def bare_root(
    release: str,
    directory: Path,
    packages: Sequence[str] = WITH_PYTHON,
    seen: Mapping[str, Path] | None = None,
) -> Iterator[BareRoot]:
    """A root of `release` (of `RELEASES`) with Debian's smallest set of packages and these.

    Args:
        directory: where what is written goes; removed at the end.
        seen: directories of this machine that its commands may read, by where they see them.

    Raises:
        CannotMake: it is not in the cache, and cannot be made.
    """
    lower = cached_root(release, packages)
    state = Path(tempfile.mkdtemp(prefix=f"root-{release}-", dir=directory))
    try:
        for name in ("upper", "work", "root"):
            (state / name).mkdir()
        (state / "upper").chmod(0o755)
        yield BareRoot(release, lower, state, seen or {})
    finally:
        shutil.rmtree(state, ignore_errors=True)


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory for roots: in memory where there is room, since disks that discard take minutes to delete a root."""
    memory = Path("/dev/shm")
    with_room = memory.is_dir() and shutil.disk_usage(memory).free >= ROOM_BYTES
    with tempfile.TemporaryDirectory(prefix="etude-", dir=memory if with_room else None) as name:
        yield Path(name)


def cached_root(release: str, packages: Sequence[str] = WITH_PYTHON) -> Path:
    """The root in the cache, made there if need be: a minute. Never write into it.

    Raises:
        CannotMake: it cannot be made.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = Path(home) / "etude" / "roots"
    name = f"{release}-{hashlib.sha256(' '.join(sorted(packages)).encode()).hexdigest()[:12]}"
    made = cache / name
    if made.is_dir():
        return made
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        raise CannotMake(f"a root of {release} is made by root, with the Debian package mmdebstrap")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.is_dir():
            with tempfile.TemporaryDirectory(prefix="work-", dir=cache) as work:
                _make(release, packages, Path(work))
                (Path(work) / "root").rename(made)
    return made


def _make(release: str, packages: Sequence[str], work: Path) -> None:
    """Write work/root, from the distribution's own mirror through this machine's proxy."""
    keys = []
    if RELEASES[release].startswith("Ubuntu"):
        # Debian 12 has no package of Ubuntu's keys: they come from a later Debian, and are checked by its signatures.
        _mmdebstrap(work, "trixie", work / "keys", "--variant=extract", "--include=ubuntu-keyring")
        # Python's venv is in universe there.
        keys = [
            f"--keyring={work}/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg",
            "--components=main,universe",
        ]
    excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    _mmdebstrap(
        work, release, work / "root", "--variant=minbase", f"--include={','.join(packages)}", *keys, *excluded
    )


def _mmdebstrap(work: Path, release: str, root: Path, *options: str) -> None:
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    kept = [line for line in dump.splitlines() if line.startswith("Acquire::") and "::Proxy" in line]
    settings = work / "apt.conf"
    settings.write_text("\n".join([*kept, 'APT::Install-Recommends "false";', 'Acquire::Retries "3";', ""]))
    log = work / f"{root.name}.log"
    with log.open("w") as written:
        command = ["mmdebstrap", "--mode=root", f"--aptopt={settings}", *options, release, str(root)]
        status = subprocess.run(command, stdout=written, stderr=written, check=False).returncode
    if status:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("E:")]
        raise CannotMake(f"mmdebstrap {release} ended with {status}: {' '.join(lines[:2])}")
