"""Makes a release from a clean clone whose commit has the tag vVERSION: archives, checks, SHA256SUMS, a signature.

The source distribution is made first, and the wheel from it, so that it has all that building needs. Debian packages
are made of that wheel. Nothing is uploaded. Ends with 1 where something is wrong, and says what.

usage: release.py --key KEY [--output DIRECTORY] [--releases bookworm,trixie,noble]     (KEY: of gpg --local-user)
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
SUMS = "SHA256SUMS"


class Refused(Exception):
    """One line, what is wrong and what to do."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--key", required=True, help="the key that signs, as gpg --local-user takes it")
    parser.add_argument("--output", type=Path, default=PROJECT / "dist", metavar="DIRECTORY")
    parser.add_argument("--releases", default="bookworm,trixie,noble", help="of Debian packages; '' for none")
    options = parser.parse_args()
    output = options.output.resolve()
    try:
        check_tree(PROJECT)
        run("gpg", "--list-secret-keys", options.key)
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        archives(output)
        for release in filter(None, options.releases.split(",")):
            run(sys.executable, PROJECT / "packaging/deb.py", wheel(output), release, "--output", output)
        check_archives(output)
        sign(output, options.key)
        verify(output)
    except Refused as reason:
        print(f"release: {reason}", file=sys.stderr)
        return 1
    print(f"{output}: {', '.join(sorted(path.name for path in output.iterdir()))}")
    return 0


def check_tree(project: Path) -> None:
    """Nothing is edited, the commit has the tag of the version, and the changelog has its section.

    Raises:
        Refused: one of these is not so.
    """
    text = (project / "src/etude/version.py").read_text(encoding="utf-8")
    version = re.findall(r'__version__ = "(.+)"', text)[0]
    if edited := run("git", "-C", project, "status", "--porcelain"):
        raise Refused(f"{edited.splitlines()[0][3:]} is not committed: commit or remove it")
    if f"v{version}" not in run("git", "-C", project, "tag", "--points-at", "HEAD").split():
        raise Refused(f"this commit has no tag v{version}: git tag -s v{version}, or correct version.py")
    if f"\n## [{version}]" not in (project / "CHANGELOG.md").read_text(encoding="utf-8"):
        raise Refused(f"CHANGELOG.md has no section [{version}]: name [Unreleased] so")


def archives(output: Path) -> None:
    """The source distribution, and from it the wheel, with the time of the commit in both."""
    stamp = run("git", "-C", PROJECT, "log", "-1", "--format=%ct")
    # What was compiled of other crates is taken from the clone.
    environment = {"SOURCE_DATE_EPOCH": stamp, "CARGO_TARGET_DIR": str(PROJECT / "target")}
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", output, PROJECT, **environment)


def check_archives(output: Path) -> None:
    """By check_wheel, auditwheel and twine; dpkg-deb reads each package."""
    tools = PROJECT / "build/release-tools"
    install_tools(tools, PROJECT / "packaging/release-tools.txt")
    run(sys.executable, PROJECT / "packaging/check_wheel.py", wheel(output))
    shown = run(tools / "bin/auditwheel", "show", wheel(output))
    tag = wheel(output).stem.rpartition("-")[2]
    if f'"{tag}"' not in shown:
        raise Refused(f"auditwheel does not find {tag}: {' '.join(shown.split())}")
    run(tools / "bin/twine", "check", "--strict", wheel(output), *output.glob("*.tar.gz"))
    for package in sorted(output.glob("*.deb")):
        run("dpkg-deb", "--field", package, "Package", "Version", "Depends")


def install_tools(place: Path, pins: Path) -> None:
    """A virtual environment of what is pinned, made anew where the pins are others.

    Raises:
        Refused: a package cannot be had, or misses what it requires.
    """
    installed = place / pins.name
    if installed.exists() and installed.read_bytes() == pins.read_bytes():
        return
    venv.create(place, clear=True)
    pip = (sys.executable, "-m", "pip", "--python", place, "--disable-pip-version-check")
    exact = ("--no-deps", "--require-hashes", "--only-binary=:all:")
    run(*pip, "install", "--quiet", *exact, "-r", pins, PYTHONPATH="")
    run(*pip, "check", PYTHONPATH="")
    shutil.copyfile(pins, installed)


def sign(output: Path, key: str) -> None:
    """SHA256SUMS of all archives, and its signature."""
    files = sorted(path for path in output.iterdir() if path.name not in {SUMS, f"{SUMS}.asc"})
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (output / SUMS).write_text("".join(lines), encoding="utf-8")
    run("gpg", "--batch", "--yes", "--local-user", key, "--armor", "--detach-sign", output / SUMS)


def verify(output: Path) -> None:
    """As a user does it.

    Raises:
        Refused: a file is not what was signed.
    """
    run("gpg", "--batch", "--verify", output / f"{SUMS}.asc", output / SUMS)
    for line in (output / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        if (
            not (output / name).is_file()
            or hashlib.sha256((output / name).read_bytes()).hexdigest() != digest
        ):
            raise Refused(f"{name} is not what {SUMS} says: make the release again")


def wheel(output: Path) -> Path:
    (found,) = output.glob("*.whl")
    return found


def run(*command: str | Path, **environment: str) -> str:
    """What a program prints.

    Raises:
        Refused: it failed; with its last lines.
    """
    words = [str(word) for word in command]
    env = {**os.environ, **environment}
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        last = " | ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
        raise Refused(f"{' '.join(words[:4])}: exit {done.returncode}: {last}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
