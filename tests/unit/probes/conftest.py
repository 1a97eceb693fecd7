"""Machines of a few files, laid out below a directory. `simulated_kernel` is importable beside the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Lay = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def lay(tmp_path: Path) -> Lay:
    """Writes files below a root (a name that ends in / is a directory), and returns the root."""

    def lay_out(files: Mapping[str, str]) -> Path:
        root = tmp_path / "root"
        for path, content in files.items():
            target = root / path
            (target if path.endswith("/") else target.parent).mkdir(parents=True, exist_ok=True)
            if not path.endswith("/"):
                target.write_text(content)
        return root

    return lay_out
