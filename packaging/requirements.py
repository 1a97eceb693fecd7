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


if __name__ == "__main__":
    print(*requirements(Path(sys.argv[1])), sep="\n")
