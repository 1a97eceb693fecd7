"""Maps that need no bench: a response that is a function of the cell, and what was asked of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from etude.surface.factors import Configuration, Factor, Space
from etude.surface.map_store import MapStore, define_map, open_map
from etude.surface.next_configuration import Rules
from etude.surface.response import ConfigurationRequest, Tell
from etude.surface.run_map import Display, MapBudget, run_map
from etude.surface.samples import Sample

SPACE = Space((Factor("a", "log", (1.0, 2.0, 4.0)), Factor("b", "categorical", ("x", "y"))))


def product(cell: Configuration) -> float:
    return 100.0 * 2 ** cell[0] * (1 + cell[1])


class Made:
    """A response (`response.Response`) of a function; remembers what it was asked, and what it learned from."""

    name, unit = "rate", "1/s"
    better: Literal["higher", "lower"] = "higher"
    text = "made 1"
    nodes: int = 1

    def __init__(self, of: Callable[[Configuration], float | Sample | BaseException] = product) -> None:
        self.of = of
        self.asked: list[ConfigurationRequest] = []
        self.taught: list[Path] = []

    @property
    def cells(self) -> list[Configuration]:
        return [asked.visit.cell for asked in self.asked]

    def learn(self, place: Path) -> None:
        self.taught.append(place)

    def measure(self, asked: ConfigurationRequest, tell: Tell) -> Sample:
        self.asked.append(asked)
        asked.place.mkdir(parents=True, exist_ok=True)
        (asked.place / "measured.txt").open("a").write("once\n")
        tell("measures")
        found = self.of(asked.visit.cell)
        if isinstance(found, BaseException):
            raise found
        if isinstance(found, Sample):
            return found
        return Sample(asked.visit.cell, "measured", found, found / 1.01, found * 1.01, 0.95, 10.0, 3)


def unknown(cell: Configuration, trials: int = 0) -> Sample:
    return Sample(cell, "failed", None, 0.0, math.inf, 0.95, 10.0, trials, False, "it died")


def mapped(
    path: Path,
    response: Made,
    rules: Rules | None = None,
    means: MapBudget | None = None,
    *,
    space: Space = SPACE,
    retry: bool = False,
    display: Display | None = None,
    name: str = "made",
) -> MapStore:
    """One session."""
    what = define_map(name, space, rules or Rules(), response, "")
    with open_map(path, what) as kept:
        if retry:
            kept.forget_failed()
        run_map(kept, response, means or MapBudget({}), display or Display())
    return kept


def lines(path: Path) -> list[dict[str, Any]]:
    """All lines, in the order in which they were written."""
    found = [
        json.loads(line) for file in path.glob("*/results.jsonl") for line in file.read_text().splitlines()
    ]
    return sorted(found, key=lambda line: line["surface"]["order"])
