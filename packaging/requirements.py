"""Prints what pyproject.toml requires, to build, to run and to develop: one requirement a line.

Runs before anything is installed, so with the standard library only.
"""

import sys
import tomllib
from pathlib import Path


def requirements(pyproject: Path) -> list[str]:
    document = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project = document["project"]
    return [
        *document["build-system"]["requires"],
        *project["dependencies"],
        *project["optional-dependencies"]["dev"],
    ]


def release_tools(pyproject: Path) -> list[str]:
    """What `make release` checks archives with, in an environment of its own."""
    groups: dict[str, list[str]] = tomllib.loads(pyproject.read_text(encoding="utf-8"))["dependency-groups"]
    return groups["release"]


if __name__ == "__main__":
    print(*requirements(Path(sys.argv[1])), sep="\n")
