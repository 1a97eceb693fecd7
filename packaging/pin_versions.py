"""Writes constraints.txt, of all that a set-up installs, and packaging/release-tools.txt, of what a release is checked
with (`make constraints`): the exact version of every package, and the SHA-256 of each archive of it for Linux.

pip itself resolves the requirements, in a fresh environment and without installing them; what it would
have installed is what gets pinned.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from pip._internal.models.index import PyPI

from requirements import release_tools, requirements

HEADER = """\
# Exact versions of all that `make {command}` installs, and the SHA-256 of each archive that it may be installed from.
# Made by `make constraints`; not edited by hand.
"""
INDEX = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")
SIMPLE = "application/vnd.pypi.simple.v1+json"


def resolve(wanted: list[str]) -> dict[str, str]:
    """Name and version of each package that pip picks for `wanted`."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "venv", f"{scratch}/venv"], check=True)
        report = Path(scratch, "report.json")
        pip = [f"{scratch}/venv/bin/python", "-m", "pip", "install", "--quiet"]
        subprocess.run(
            [*pip, "--dry-run", "--ignore-installed", "--report", str(report), *wanted], check=True
        )
        picked = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {normal(item["metadata"]["name"]): item["metadata"]["version"] for item in picked}


def hashes(name: str, version: str) -> list[str]:
    """Of the release's source and of its wheels for Linux, sorted; of what was withdrawn, too."""
    request = urllib.request.Request(f"{INDEX}/{name}/", headers={"Accept": SIMPLE})
    with urllib.request.urlopen(request) as answer:
        files = json.load(answer)["files"]
    return sorted(file["hashes"]["sha256"] for file in files if is_of(file["filename"], name, version))


def is_of(file: str, name: str, version: str) -> bool:
    """Whether an archive is one of this release for Linux."""
    if file.endswith(".whl"):
        of, its_version, *_, platform = file.removesuffix(".whl").split("-")
        return (normal(of), its_version) == (name, version) and (platform == "any" or "linux" in platform)
    stem = file.removesuffix(".tar.gz").removesuffix(".zip")
    of, _, its_version = stem.rpartition("-")
    return stem != file and (normal(of), its_version) == (name, version)


def normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def lock(pins: dict[str, str]) -> Iterator[str]:
    """Lines that pip reads with --require-hashes."""
    for name, version in sorted(pins.items()):
        yield f"{name}=={version}"
        yield from (f" \\\n    --hash=sha256:{digest}" for digest in hashes(name, version))
        yield "\n"


def check_python(pyproject: Path) -> None:
    """The oldest Python must make the pins: a newer one would pick versions that it cannot install."""
    oldest = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["requires-python"].removeprefix(
        ">="
    )
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if running != oldest:
        sys.exit(f"make constraints: run it with the oldest supported Python: PYTHON=python{oldest}")


def pinned(wanted: list[str], command: str) -> str:
    """The text of a file of pins."""
    pins = resolve(wanted)
    if not pins:
        sys.exit("make constraints: pip resolved nothing")
    return HEADER.format(command=command) + "".join(lock(pins))


def main() -> None:
    """Both files, or none."""
    pyproject = Path("pyproject.toml")
    check_python(pyproject)
    texts = {
        "constraints.txt": pinned(requirements(pyproject), "setup"),
        "packaging/release-tools.txt": pinned(release_tools(pyproject), "release"),
    }
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
