"""Builds the test machine's disk image in two layers, each made once and kept in a cache.

The base is Debian with systemd, its cloud kernel, GRUB, and what Étude requires; minutes, and seldom. Étude's wheel is
installed on a copy of it; seconds, and after each edit. Both are named by a digest of what goes into them.
Needs root, mmdebstrap, and for the base the mirrors that this machine's apt uses. Ends with 5 where something of that
is missing; build/guest.img is there only where all went well.

usage: build.py WHEEL [--source DIRECTORY] [--engine PROGRAM]
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path

import image

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
IMAGE_BYTES = 4 << 30
"""Of the disk; the file is sparse, and about a quarter of that."""

MADE_BY = ("build.py", "image.py", "inside.sh", "packages.txt", "files")
"""What the base is made by, beside Debian's packages: it is made again after a change."""

KEPT_BASES = 2
KEPT_MACHINES = 4
KEPT_S = 2 * 24 * 3600
"""What is older, and not among the newest, is removed from the cache."""

LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")

INSIDE = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root"}
"""The environment of what runs within the guest's file system: nothing of this machine's (its proxies, its pip)."""


class CannotBuild(Exception):
    """Something is missing here; one line, what to do."""


def main() -> int:
    """Build what is not there; prints the image's path last."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument(
        "--source", type=Path, help="a directory such as src/etude, installed over the wheel's"
    )
    parser.add_argument("--engine", type=Path, help="a program etude-engine, in place of the wheel's")
    options = parser.parse_args()
    link = PROJECT / "build" / "guest.img"
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    try:
        disk = machine(options.wheel, options.source, options.engine)
    except CannotBuild as reason:
        print(f"guest: {reason}", file=sys.stderr)
        return 5
    except subprocess.CalledProcessError as failed:
        print(f"guest: {' '.join(map(str, failed.cmd))}: exit {failed.returncode}", file=sys.stderr)
        return 1
    link.symlink_to(disk)
    print(disk)
    return 0


def machine(wheel: Path, source: Path | None, engine: Path | None) -> Path:
    """The image with Étude in it.

    Raises:
        CannotBuild: something is missing.
        subprocess.CalledProcessError: a program failed.
    """
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "lock"):
        below = base(cache)
        name = f"machine-{digest([below.parent.name, wheel_contents(wheel), contents(source), contents(engine)])}"
        disk = kept(cache, name, "Étude, installed on a copy of the base")
        if not disk.exists():
            with building(disk.parent) as directory:
                run("cp", "--sparse=always", below, directory / "disk.img")
                # Tests boot it alone, to see what QEMU can do here.
                shutil.copy(below.with_name("vmlinuz"), directory)
                install(directory / "disk.img", wheel, source, engine)
        prune(cache, "machine-", KEPT_MACHINES)
    return disk


def base(cache: Path) -> Path:
    """The image of Debian and of what Étude requires."""
    suite, sources = apt_sources()
    wanted = requirements()
    name = (
        f"base-{digest([suite, IMAGE_BYTES, wanted, pins(), *(contents(HERE / each) for each in MADE_BY)])}"
    )
    disk = kept(cache, name, f"Debian {suite}, with what Étude requires")
    if disk.exists():
        return disk
    missing = [program for program in ("mmdebstrap", "mkfs.ext4") if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        raise CannotBuild(
            "needs root" if not missing else f"install {' and '.join(missing)} (Debian packages)"
        )
    with building(disk.parent) as directory:
        root = directory / "root"
        step("packages", lambda: bootstrap(root, suite, sources))
        step("wheels", lambda: download(root, wanted))
        identity = str(uuid.uuid4())
        step("configuration", lambda: configure(root, identity))
        step("image", lambda: image.make(root, directory / "disk.img", IMAGE_BYTES, identity))
        shutil.copy(root / "vmlinuz", directory / "vmlinuz")
        shutil.rmtree(root)
    prune(cache, "base-", KEPT_BASES)
    return disk


def bootstrap(root: Path, suite: str, sources: list[Path]) -> None:
    """Debian's packages, from this machine's own mirrors, through its own proxy."""
    apt = root.parent / "apt.conf"
    dump = subprocess.run(
        ["apt-config", "dump", "Acquire"], check=True, capture_output=True, text=True
    ).stdout
    apt.write_text(
        "".join(line for line in dump.splitlines(keepends=True) if "::Proxy" in line or "Retries" in line)
    )
    words = [line.split("#")[0].strip() for line in (HERE / "packages.txt").read_text().splitlines()]
    log = root.parent / "mmdebstrap.log"
    with log.open("wb") as written:
        status = subprocess.run(
            [
                *(
                    "mmdebstrap",
                    "--mode=root",
                    "--variant=minbase",
                    f"--include={','.join(filter(None, words))}",
                ),
                *("--aptopt=APT::Install-Recommends false", f"--aptopt={apt}"),
                *(f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT),
                # What packages look at while they are installed is there before them.
                f'--setup-hook=cp -r {HERE}/files/. "$1"',
                *(suite, str(root), *map(str, sources)),
            ],
            stdout=written,
            stderr=written,
            check=False,
        ).returncode
    if status:
        tail = log.read_text(errors="replace").splitlines()[-20:]
        raise CannotBuild("mmdebstrap failed, does apt-get work here? Its last lines:\n" + "\n".join(tail))


def download(root: Path, wanted: list[str]) -> None:
    """Wheels of what Étude requires, for the Python of `root`, into its /wheels."""
    wheels = root / "wheels"
    wheels.mkdir()
    version = next(
        path.name.removeprefix("python") for path in sorted((root / "usr/bin").glob("python3.[0-9]*"))
    )
    (wheels / "requirements.txt").write_text("\n".join(wanted) + "\n")
    # pip takes hashes only where each requirement is pinned; what these need in turn it finds itself.
    versions = [line.split(" ")[0] for line in pins().splitlines() if "==" in line]
    (wheels / "constraints.txt").write_text("\n".join(versions) + "\n")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    where = ["--dest", str(wheels), "--only-binary=:all:", "--python-version", version]
    try:
        run(*pip, *where, "-r", wheels / "requirements.txt", "-c", wheels / "constraints.txt")
    except subprocess.CalledProcessError:
        raise CannotBuild("pip cannot download the wheels of what Étude requires") from None


def configure(root: Path, identity: str) -> None:
    """What is done within the file system."""
    shutil.copy(HERE / "inside.sh", root / "inside.sh")
    log = root.parent / "inside.log"
    with log.open("wb") as written:
        status = subprocess.run(
            ["chroot", root, "/bin/sh", "/inside.sh", identity, uuid.uuid4().hex],
            env=INSIDE,
            stdout=written,
            stderr=written,
            check=False,
        ).returncode
    if status:
        raise CannotBuild(
            "inside.sh failed; its last lines:\n" + "\n".join(log.read_text().splitlines()[-20:])
        )
    (root / "inside.sh").unlink()


def install(disk: Path, wheel: Path, source: Path | None, engine: Path | None) -> None:
    """Étude's wheel into the image, and over it what is under way."""
    offset = image.FIRST_SECTOR * image.SECTOR
    with tempfile.TemporaryDirectory(prefix="etude-guest-") as name:
        root = Path(name)
        try:
            run("mount", "-o", f"loop,offset={offset}", disk, root)
        except subprocess.CalledProcessError:
            raise CannotBuild("a disk image cannot be mounted here, by a loop device") from None
        try:
            shutil.copy(wheel, root / "tmp")
            python = "/opt/etude/bin/python"
            pip = ("chroot", root, python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps")
            run(*pip, f"/tmp/{wheel.name}", env=INSIDE)
            (root / "tmp" / wheel.name).unlink()
            package = next((root / "opt/etude/lib").glob("python3*/site-packages/etude"))
            if source is not None:
                shutil.rmtree(package)
                shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
                run(
                    "chroot",
                    root,
                    python,
                    "-m",
                    "compileall",
                    "-q",
                    f"/{package.relative_to(root)}",
                    env=INSIDE,
                )
            if engine is not None:
                shutil.copy(engine, root / "opt/etude/bin/etude-engine")
        finally:
            run("umount", root)


def requirements() -> list[str]:
    """What pyproject.toml says that Étude needs to run."""
    document = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(document["project"]["dependencies"])


def pins() -> str:
    """The exact versions of all of it."""
    return (PROJECT / "constraints.txt").read_text(encoding="utf-8")


def apt_sources() -> tuple[str, list[Path]]:
    """This Debian's code name, and the files that name its mirrors.

    Raises:
        CannotBuild: this is not a Debian for PCs.
    """
    release = platform.freedesktop_os_release() if sys.platform == "linux" else {}
    if release.get("ID") != "debian" or platform.machine() != "x86_64":
        raise CannotBuild("the test machine is built on a Debian for amd64 only")
    suite = release["VERSION_CODENAME"]
    etc = Path("/etc/apt")
    candidates = [
        etc / "sources.list",
        *etc.glob("sources.list.d/*.sources"),
        *etc.glob("sources.list.d/*.list"),
    ]
    found = [path for path in candidates if path.is_file() and names_suite(path, suite)]
    if not found:
        raise CannotBuild(f"no file below /etc/apt names a mirror of {suite}")
    return suite, found


def names_suite(path: Path, suite: str) -> bool:
    """Whether a list of apt's speaks of Debian's own archive and not only of somebody else's packages."""
    lines = [line.split("#")[0] for line in path.read_text(errors="replace").splitlines()]
    return any(
        suite in line.split() and line.lstrip().startswith(("deb ", "Suites:")) and "packages." not in line
        for line in lines
    )


def digest(parts: list[object]) -> str:
    """Of all that goes into a layer."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def contents(path: Path | None) -> str:
    """Of a file, or of all files below a directory, with their names and modes."""
    if path is None:
        return "none"
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    total = hashlib.sha256()
    for each in files:
        if "__pycache__" not in each.parts:
            total.update(f"{each.relative_to(path.parent)} {each.stat().st_mode & 0o111}\0".encode())
            total.update(hashlib.sha256(each.read_bytes()).digest())
    return total.hexdigest()


def wheel_contents(wheel: Path) -> str:
    """Of the files in a wheel: two wheels of the same sources differ in their times alone."""
    with zipfile.ZipFile(wheel) as archive:
        items = sorted((item.filename, item.CRC, item.external_attr) for item in archive.infolist())
    return digest([wheel.name, items])


def cache_directory() -> Path:
    """Outside of any clone."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "etude" / "guest"


def kept(cache: Path, name: str, what: str) -> Path:
    """Where a layer's image is or will be; says which of both."""
    disk = cache / name / "disk.img"
    if disk.exists():
        os.utime(disk.parent)
    say(f"{what}: {'is there' if disk.exists() else 'being built'} ({disk.parent})")
    return disk


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Two builds at once would make the same thing twice."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def building(directory: Path) -> Iterator[Path]:
    """A directory that gets its name when all is in it."""
    work = Path(tempfile.mkdtemp(prefix="work-", dir=directory.parent))
    try:
        yield work
        work.rename(directory)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def prune(cache: Path, prefix: str, keep: int) -> None:
    """Remove layers that nobody has used for a while."""
    layers = sorted(cache.glob(prefix + "*"), key=lambda each: each.stat().st_mtime, reverse=True)
    for layer in layers[keep:]:
        if time.time() - layer.stat().st_mtime > KEPT_S:
            shutil.rmtree(layer)


def step(what: str, work: object) -> None:
    """Do it, and say how long it took."""
    start = time.monotonic()
    assert callable(work)
    work()
    say(f"  {what}: {time.monotonic() - start:.1f} s")


def run(*words: object, env: dict[str, str] | None = None) -> None:
    """A program that must succeed."""
    subprocess.run([str(word) for word in words], check=True, env=env)


def say(line: str) -> None:
    """Progress, beside the path that is the output."""
    print(f"guest: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
