"""Directories of the repository that tests read."""

import tomllib
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
DATA = TESTS / "data"
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
BENCH = ROOT / "bench"


def entry_points_of(group: str) -> dict[str, str]:
    """The entry points of a group in pyproject.toml, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return dict(project["entry-points"][group])
