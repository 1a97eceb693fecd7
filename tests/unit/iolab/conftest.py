"""A laboratory whose machine is made of formulas: no time passes, no file is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etude.engine import Launch
from etude.experiment.run import run
from etude.iolab.sweeps import Sweep, make_plan, make_sweep
from etude.results.results import Results
from support.fakes import World

CALL_S, PEAK, STORAGE, ZEROING_S = 100e-9, 8e9, 1e9, 0.2e-9
"""What a call costs; bytes a second of a copy and of the storage; what a fresh byte of the buffer costs."""
START_S = {"io-static": 0.5e-3, "io-dynamic": 0.8e-3}

MACHINE = {
    "cpu": {
        "caches": [
            {"level": 1, "type": "Data", "size_bytes": 32 << 10},
            {"level": 1, "type": "Instruction", "size_bytes": 32 << 10},
            {"level": 2, "type": "Unified", "size_bytes": 1 << 20},
            {"level": 3, "type": "Unified", "size_bytes": 32 << 20},
        ]
    },
    "memory": {"page_bytes": 4096, "huge_page_bytes": 2 << 20, "huge_pages": "madvise"},
}


class Laboratory:
    """Runs sweeps; `sweeps` counts what was launched."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.noise = np.random.default_rng(1)
        self.world = World(dict.fromkeys((*START_S, "engine"), self.answer))

    def answer(self, launch: Launch) -> dict[str, Any]:
        """What one run of the program prints, and how long it takes."""
        words = list(launch.workers[0].argv)
        buffer, total = (int(words[words.index(option) + 1]) for option in ("-b", "-t"))
        rate = PEAK / 4 if buffer > 1 << 20 else PEAK
        seconds = total / buffer * CALL_S + total / (STORAGE if "-d" in words else rate)
        if "--touch" not in words:
            seconds += buffer * ZEROING_S
        seconds *= 1.0 + 0.01 * abs(self.noise.standard_normal())
        printed = "" if "-q" in words else f"{total / 1024 / seconds:.2f} KBytes/sec\n"
        return {"elapsed": seconds + START_S.get(words[0], 1e-3), "stdout": printed}

    def sweep(self, **options: Any) -> Results:
        """The results of a sweep below this laboratory's directory."""
        return self.run(make_sweep(self.directory, **options))

    def run(self, what: Sweep, name: str = "results") -> Results:
        return run(
            make_plan(what, seed=1),
            self.directory / name,
            make_engine=self.world.make_engine,
            verb="io sweep",
        ).results


@pytest.fixture
def laboratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    monkeypatch.setattr("etude.iolab.sweeps.beside_engine", lambda name: name)
    monkeypatch.setattr("etude.iolab.sweeps.engine_path", lambda: "engine")
    monkeypatch.setattr("etude.machine.snapshot.take", lambda **_: MACHINE)
    monkeypatch.setattr("os.fdatasync", lambda file: None)
    return Laboratory(tmp_path)


MakeSweep = Callable[..., Results]
