"""Writes constraints.txt: the exact version of every package that a set-up installs (`make constraints`).

pip itself resolves the requirements, in a fresh environment and without installing them; what it would
have installed is what gets pinned.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from requirements import requirements

HEADER = """\
# Exact versions of all that `make setup` installs. Made by `make constraints`; not edited by hand.
"""


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
    return {
        item["metadata"]["name"].lower().replace("_", "-"): item["metadata"]["version"] for item in picked
    }


def check_python(pins: dict[str, str], pyproject: Path) -> None:
    """The oldest Python must make the pins: a newer one would pick versions that it cannot install."""
    oldest = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["requires-python"].removeprefix(
        ">="
    )
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if running != oldest:
        sys.exit(f"make constraints: run it with the oldest supported Python: PYTHON=python{oldest}")
    if not pins:
        sys.exit("make constraints: pip resolved nothing")


if __name__ == "__main__":
    pyproject = Path("pyproject.toml")
    pins = resolve(requirements(pyproject))
    check_python(pins, pyproject)
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    Path(sys.argv[1]).write_text(HEADER + "".join(lines), encoding="utf-8")
