"""Recorded trees of /proc and cgroups, laid out to be looked at, and written to, as if they were the kernel's."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from etude.machine.resources.ledger import Ledger, held_ledger

TREES = Path(__file__).with_name("trees")


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[str], Path]:
    """Lays out the tree of that name and returns its root."""

    def lay_out(name: str) -> Path:
        root = tmp_path / name
        for section in (TREES / f"{name}.txt").read_text(encoding="utf-8").split("\n@ ")[1:]:
            path, _, content = section.partition("\n")
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content and content.removesuffix("\n") + "\n", encoding="utf-8")
        return root

    return lay_out


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with held_ledger(tmp_path / "ledger") as one:
        yield one
