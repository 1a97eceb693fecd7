"""Downloads the wheels of what Étude requires, for one version of Python, into a directory of the cache.

Versions and SHA-256 are those of constraints.txt; what is there already is not downloaded again.

Ends with 5 where they cannot be downloaded.

usage: wheelhouse.py PYTHON     (3.11, 3.12, 3.13)
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


class CannotDownload(Exception):
    """One line, what is wrong."""


def wheelhouse(python: str) -> Path:
    """The directory of wheels for this version of Python.

    Raises:
        CannotDownload: pip failed, or brought an archive that constraints.txt does not know.
    """
    pins = (PROJECT / "constraints.txt").read_text(encoding="utf-8")
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    digest = hashlib.sha256(repr((python, pins, wanted)).encode()).hexdigest()[:12]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = Path(home) / "etude" / "wheels"
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / f"{python}-{digest}"
    with (cache / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.is_dir():
            with tempfile.TemporaryDirectory(prefix="work-", dir=cache) as work:
                _download(python, wanted, pins, Path(work) / "wheels")
                (Path(work) / "wheels").rename(place)
    return place


def _download(python: str, wanted: list[str], pins: str, place: Path) -> None:
    versions = place.parent / "versions.txt"
    versions.write_text("\n".join(re.findall(r"^\S+==\S+", pins, re.MULTILINE)) + "\n")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    chosen = ["--dest", str(place), "--only-binary=:all:", "--python-version", python, "-c", str(versions)]
    if subprocess.run([*pip, *chosen, *wanted], check=False).returncode:
        raise CannotDownload(f"pip cannot download the wheels of what Étude requires, for Python {python}")
    known = set(re.findall(r"sha256:(\w+)", pins))
    for wheel in sorted(place.iterdir()):
        if hashlib.sha256(wheel.read_bytes()).hexdigest() not in known:
            raise CannotDownload(f"{wheel.name}: its SHA-256 is not in constraints.txt")


if __name__ == "__main__":
    try:
        print(wheelhouse(sys.argv[1]))
    except CannotDownload as reason:
        print(f"wheelhouse: {reason}", file=sys.stderr)
        sys.exit(5)
