"""A record in a directory of its own, and a script's state and results for it to lead to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from etude.machine.boot import record


@dataclass(frozen=True)
class Kept:
    """What a script that is under way keeps on disk."""

    directory: Path

    @property
    def state(self) -> Path:
        return self.directory / "state.json"

    def come_to(self, state: Any, lines: int = 0) -> None:
        """Bring it to a position, with so many lines of results."""
        self.state.write_text(
            json.dumps({"format": "f", "written": "at some time", "position": json.dumps(state)})
        )
        self.state.chmod(0o600)
        (self.directory / "t").mkdir(exist_ok=True)
        (self.directory / "t" / "results.jsonl").write_text("{}\n" * lines)

    def register(self, **options: Any) -> None:
        record.register(["run", str(self.state)], self.state, self.directory, **options)


@pytest.fixture(autouse=True)
def boot_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ETUDE_BOOT_DIRECTORY", str(tmp_path / "boot"))
    monkeypatch.delenv("ETUDE_RESTART", raising=False)
    return tmp_path / "boot"


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    made = Kept(tmp_path / "r")
    made.directory.mkdir()
    made.come_to({"counter": 1})
    return made
