"""Builds a Debian package of a wheel for one release, in a bare root of that release.

Étude and the Python packages that it requires are an environment of their own, /usr/lib/etude, on the release's
python3: Debian does not have all of them, and others would be too old. Programs, manual pages and completions are where
Debian has them. Nothing is run when it is installed or removed, so that nothing can be left.

The tests of those packages are left out. The maintainer is DEBFULLNAME <DEBEMAIL>, as of Debian's own tools; without
these, the committer of the last commit.

usage: deb.py WHEEL RELEASE [--output DIRECTORY] [--compression none|zstd|xz]     (RELEASE: bookworm, trixie, noble)
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bare_root import RELEASES, BareRoot, CannotMake, bare_root, scratch
from check_wheel import PROGRAMS, glibc_needed
from wheelhouse import CannotDownload, wheelhouse

PROJECT = Path(__file__).resolve().parent.parent
PLACE = "/usr/lib/etude"
NAMES = {"bookworm": "deb12", "trixie": "deb13", "noble": "ubuntu24.04"}
VERBS = ("etude", "getstats", "graphit", *PROGRAMS)
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/etude",
    "zsh": "usr/share/zsh/vendor-completions/_etude",
    "fish": "usr/share/fish/vendor_completions.d/etude.fish",
}
CONTROL = """\
Package: etude
Version: {version}
Architecture: amd64
Maintainer: {maintainer}
Installed-Size: {size_kib}
Depends: python3 (>= {python}), python3 (<< {next_python}), libc6 (>= 2.{glibc}), libgcc-s1, libstdc++6, zlib1g
Section: utils
Priority: optional
Description: runs programs again and again until their numbers can be trusted
 Étude benchmarks commands, file systems, servers and recorded I/O: it repeats
 trials until a stop rule is met, compares them with confidence intervals, records
 and replays I/O, and finds the peak rate of a server.
 .
 The Python packages that it requires are in /usr/lib/etude, for {release} only.
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: etude
Comment: Python packages below /usr/lib/etude/lib have their licences in their *.dist-info directories.
 The engine holds the crate inferno (CDDL-1.0), unchanged: its source is https://github.com/jonhoo/inferno.

Files: *
Copyright: {holder}
License: MIT

License: MIT
{text}
"""


class NoMaintainer(Exception):
    """One line, what is missing and how it is given."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("release", choices=RELEASES)
    parser.add_argument("--output", type=Path, default=PROJECT / "dist", metavar="DIRECTORY")
    parser.add_argument("--compression", choices=("none", "zstd", "xz"), default="zstd")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what is in memory is removed
    try:
        made = build(options.wheel, options.release, options.output, options.compression)
    except (CannotMake, CannotDownload, NoMaintainer) as reason:
        print(f"deb: {reason}", file=sys.stderr)
        return 5
    print(f"{made}: {made.stat().st_size / 1024:.0f} KiB")
    return 0


def build(wheel: Path, release: str, output: Path, compression: str = "zstd") -> Path:
    """The package's file.

    Raises:
        CannotMake: there is no root of the release.
        CannotDownload: a wheel of what is required is missing.
        NoMaintainer: nobody is named.
    """
    responsible = maintainer(os.environ)
    output.mkdir(parents=True, exist_ok=True)
    with scratch() as work:
        with bare_root(release, work) as root:
            python = root.run(
                "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"
            ).stdout.strip()
        wheels = wheelhouse(python)
        seen = {"/wheel": wheel.resolve().parent, "/wheels": wheels}
        with bare_root(release, work, seen=seen) as root:
            install(root, f"/wheel/{wheel.name}", python)
            tree = work / "tree"
            (tree / PLACE[1:]).parent.mkdir(parents=True)
            for shell, name in COMPLETIONS.items():
                text = root.run(f"{PLACE}/bin/etude", "completion", shell).stdout
                write(tree / name, text.encode())
            root.path(PLACE).rename(tree / PLACE[1:])
        glibc = max(glibc_needed((tree / PLACE[1:] / "bin" / name).read_bytes()) for name in PROGRAMS)
        version = f"{wheel.name.split('-')[1]}-1~{NAMES[release]}"
        fill(tree)
        control(tree, version, responsible, release, python, glibc)
        settle(tree)
        made = output / f"etude_{version}_amd64.deb"
        command = ["dpkg-deb", "--root-owner-group", f"-Z{compression}", "--build", str(tree), str(made)]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return made


def install(root: BareRoot, wheel: str, python: str) -> None:
    """Étude and what it requires into its environment, compiled so that Python never writes there."""
    root.run("python3", "-m", "venv", "--without-pip", PLACE)
    root.run("python3", "-m", "venv", "/tmp/pip")
    pip = ("/tmp/pip/bin/python", "-m", "pip", "--python", f"{PLACE}/bin/python", "--quiet")
    root.run(*pip, "install", "--no-index", "--find-links", "/wheels", "--no-compile", wheel)
    library = f"{PLACE}/lib/python{python}"
    root.run("find", library, "-type", "d", "-name", "tests", "-prune", "-exec", "rm", "-r", "{}", "+")
    root.run(
        "python3", "-m", "compileall", "-qq", "-j", "2", "--invalidation-mode", "unchecked-hash", library
    )
    # Of the environment: what starts a shell in it, and what pip noted of the directory that the wheel came from.
    root.run(
        "sh", "-c", f"rm -f {PLACE}/bin/[Aa]ctivate* {library}/site-packages/*.dist-info/direct_url.json"
    )


def fill(tree: Path) -> None:
    """What Debian has in other places: links to programs, manual pages, licence, changes."""
    programs = tree / "usr/bin"
    programs.mkdir(parents=True)
    for name in VERBS:
        (programs / name).symlink_to(f"../lib/etude/bin/{name}")
    for page in sorted((PROJECT / "docs/man").glob("*.1")):
        write(tree / f"usr/share/man/man1/{page.name}.gz", gzip.compress(page.read_bytes(), mtime=0))
    about = tree / "usr/share/doc/etude"
    write(about / "changelog.gz", gzip.compress((PROJECT / "CHANGELOG.md").read_bytes(), mtime=0))
    licence = (PROJECT / "LICENSE").read_text(encoding="utf-8")
    holder = next(line for line in licence.splitlines() if line.startswith("Copyright"))
    body = "\n".join(f" {line}" if line.strip() else " ." for line in licence.splitlines())
    write(
        about / "copyright",
        COPYRIGHT.format(holder=holder.removeprefix("Copyright ").strip(), text=body).encode(),
    )


def control(tree: Path, version: str, responsible: str, release: str, python: str, glibc: int) -> None:
    """DEBIAN/control and the digests of all files."""
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    major, minor = python.split(".")
    text = CONTROL.format(
        version=version,
        maintainer=responsible,
        size_kib=sum(path.stat().st_size for path in files) // 1024,
        python=python,
        next_python=f"{major}.{int(minor) + 1}",
        glibc=glibc,
        release=RELEASES[release],
    )
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files]
    write(tree / "DEBIAN/control", text.encode())
    write(tree / "DEBIAN/md5sums", "".join(sums).encode())


def settle(tree: Path) -> None:
    """Modes as Debian has them, and times that two builds share."""
    for path in [tree, *tree.rglob("*")]:
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)
        os.utime(path, (epoch(), epoch()), follow_symlinks=False)


def maintainer(environment: Mapping[str, str]) -> str:
    """NAME <EMAIL> of who answers for the package.

    Raises:
        NoMaintainer: neither the environment nor git has both.
    """
    name, email = environment.get("DEBFULLNAME", ""), environment.get("DEBEMAIL", "")
    named = f"{name} <{email}>" if name or email else last_commit("%cn <%ce>")
    if not re.fullmatch(r"[^\s<>][^\n<>]* <[^\s<>@]+@[^\s<>@]+>", named):
        raise NoMaintainer(f"{named!r} is no maintainer: set DEBFULLNAME and DEBEMAIL, a name and an address")
    return named


def epoch() -> int:
    """The time of the last commit, unless the environment names one."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or last_commit("%ct") or 0)


def last_commit(form: str) -> str:
    """What git says of it, in this form of `git log`; empty outside of a clone."""
    command = ["git", "-C", str(PROJECT), "log", "-1", f"--format={form}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
