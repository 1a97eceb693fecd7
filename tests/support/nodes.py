"""Nodes of a simulated pool that do parts: they leave results as `etude bench` would, and take no time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etude.cluster.distributed.part import Part, read_part
from etude.cluster.pool.job import Job
from etude.errors import EtudeError
from support.builders import measurement, results_directory

Value = Callable[[str, str, int], float]
"""Of a test, on a node, in a block, s."""


@dataclass
class Nodes:
    """`duration_s` and `finish` of a SimulatedPool."""

    value: Value = lambda test, node, block: 1.0
    error: Mapping[str, EtudeError] = field(default_factory=dict)
    """Of parts whose tests have this one: what they end with."""
    begun: list[tuple[str, str]] = field(default_factory=list)
    """Part and node of each, in the order in which they began."""
    left: int = 1
    """Blocks that are on disk as soon as a part has begun."""

    def duration_s(self, job: Job, node: str) -> float:
        part = read_part(job.place)
        self.begun.append((part.name, node))
        self._write(part, node, self.left, None)
        return float(part.task.get("blocks", 1))

    def finish(self, job: Job, node: str) -> None:
        part = read_part(job.place)
        for test in _tests(part):
            if test in self.error:
                part.report_error(self.error[test])
                return
        self._write(part, node, int(part.task.get("blocks", 2)), "complete")

    def _write(self, part: Part, node: str, blocks: int, how: str | None) -> None:
        shutil.rmtree(part.results, ignore_errors=True)
        names = _tests(part)
        rows = {
            name: [
                measurement(name, block, self.value(name, node, block), host=node, order=place)
                for block in range(1, blocks + 1)
            ]
            for place, name in enumerate(names)
        }
        sitting: dict[str, Any] = {"sitting": 1, "boot_id": node, "host": node, "how_ended": how}
        results_directory(
            part.results,
            rows,
            sittings=[sitting],
            plan=part.task.get("plan", {}),
            machine={"before": {"of": node}, "after": None},
        )


def _tests(part: Part) -> list[str]:
    return list(part.task.get("tests") or part.task["only"])


def sittings(directory: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((directory / "experiment.json").read_text())["sittings"]
    return found
