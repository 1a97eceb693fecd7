"""Recorded machines: /proc and /sys of others, to look at with the same eyes."""

from collections.abc import Callable
from pathlib import Path

import pytest

MACHINES = Path(__file__).with_name("machines")


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[str], Path]:
    """Lays out the machine of that name and returns its root."""

    def lay_out(name: str) -> Path:
        root = tmp_path / name
        for section in (MACHINES / f"{name}.txt").read_text(encoding="utf-8").split("\n@ ")[1:]:
            path, _, content = section.partition("\n")
            write(root, path, content.removesuffix("\n") + "\n" if content.strip() else "")
        return root

    return lay_out


def write(root: Path, path: str, content: str) -> None:
    target = root / path
    if path.endswith("/"):
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
