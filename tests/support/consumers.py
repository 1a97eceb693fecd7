"""The programs that read what is exported, installed once below build/consumers at the versions that stand here."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.places import ROOT

PLACE = ROOT / "build" / "consumers"
LINES = [line.split()[:2] for line in (ROOT / "packaging" / "consumers.txt").read_text().splitlines()]


def listed(how: str) -> list[str]:
    """The names, with versions, of what is had this way."""
    return [line[1] for line in LINES if line[:1] == [how]]


HYPERFINE = [name.partition("==")[2] for name in listed("crate")]


@contextmanager
def alone() -> Iterator[None]:
    """Of several processes of tests one installs, the others wait."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def benchstat() -> Path:
    """Go's program; the test is skipped where it cannot be had."""
    program = PLACE / "bin" / "benchstat"
    if not program.exists():
        _needed("go")
        with alone():
            _made(["env", f"GOBIN={program.parent}", "go", "install", *listed("go")], "benchstat")
    return program


def python() -> Path:
    """The Python in whose environment Otava, benchadapt, junitparser and prometheus_client are."""
    place = PLACE / "python"
    done = place / "requirements.txt"
    with alone():
        if not done.exists() or done.read_text().split() != listed("python"):
            _environment(place)
            done.write_text("\n".join(listed("python")))
    return place / "bin" / "python"


def _environment(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    _made([sys.executable, "-m", "venv", "--without-pip", str(place)], "a virtual environment")
    pip = [sys.executable, "-m", "pip", "--python", str(place)]
    # Most of what would be compiled is never imported.
    _made([*pip, "install", "--quiet", "--no-compile", *listed("python")], "what reads exports")


def hyperfine_scripts(version: str) -> Path:
    """The directory of the scripts that come with hyperfine's source."""
    place = PLACE / f"hyperfine-{version}"
    with alone():
        if not place.exists():
            _needed("cargo")
            _fetch_scripts(version, place)
    return place


def _fetch_scripts(version: str, place: Path) -> None:
    project = PLACE / f"fetching-{version}"
    shutil.rmtree(project, ignore_errors=True)
    (project / "src").mkdir(parents=True)
    (project / "src" / "lib.rs").touch()
    manifest = '[package]\nname = "fetching"\nversion = "0.1.0"\n[workspace]\n[dependencies]\n'
    manifest += f'hyperfine = "={version}"\n'
    (project / "Cargo.toml").write_text(manifest)
    vendored = project / "vendor"
    command = [
        "cargo",
        "vendor",
        "--quiet",
        "--manifest-path",
        str(project / "Cargo.toml"),
        str(vendored),
    ]
    _made(command, f"hyperfine {version}")
    (vendored / "hyperfine" / "scripts").rename(place)
    shutil.rmtree(project)


def _needed(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no program {program}")


def _made(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        pytest.skip(f"{what} cannot be had: {done.stderr.strip()[-300:]}")
