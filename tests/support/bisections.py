"""Bisections of the history of a C program by what its source says, which has no noise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.c_history import CHistory
from support.real import called

ROUNDS = r"rounds=ROUNDS (\d+)"
"""Metric without noise: the work of a commit, as `cat rounds.h` prints it."""
EXACT = ("--build", "true", "--metric", ROUNDS, "--seed", "1")
SHOWN = ("--", "cat", "rounds.h")


@dataclass(frozen=True)
class Bisect:
    """Runs `etude bisect … --json` in a directory."""

    here: Path

    def __call__(
        self, history: CHistory, *words: str, check: int = 0, good: str = "v1", bad: str = "main"
    ) -> dict[str, Any]:
        """Bisect a history; its exit code must be `check`."""
        return self.run(good, bad, "--repository", str(history.repository), *words, check=check)

    def run(self, *words: str, check: int = 0) -> dict[str, Any]:
        """The same with all words."""
        done = called("bisect", "-q", "--json", *words, cwd=self.here, check=check)
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def refused(self, history: CHistory, *words: str, check: int, good: str = "v1", bad: str = "main") -> str:
        """Standard error of one that ends with an error."""
        place = str(history.repository)
        done = called("bisect", "-q", good, bad, "--repository", place, *words, cwd=self.here, check=check)
        return done.stderr
