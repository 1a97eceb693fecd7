"""One tidy table of measurements, whatever format they were read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars

PLACES: Mapping[str, str] = {
    "test": "text",
    "trial": "whole number from 1; ours may have an excluded trial 0",
    "worker": "whole number from 0",
    "command": "text",
    "kept": "boolean",
    "status": "whole number or null: exit status; 128 + signal for one that a signal ended",
}
"""Columns that identify a measurement. `test`, `trial`, `worker` and `kept` are always present."""

MORE_PLACES: Mapping[str, str] = {
    "block": "whole number: with which trials of other tests it formed a block",
    "order": "whole number: its place in the block",
    "sitting": "whole number from 1",
    "process": "whole number from 1, or null: which of the processes that measured the test in turn",
    "host": "text: the machine",
    "boot": "text: which of its boots",
    "why": "text or null: why it is not kept",
    "inner": "whole number from 1: launches in it",
}
"""Further columns, after those of `PLACES`, in our own format."""

SUMMARY = ("count", "mean", "deviation", "median", "minimum", "q1", "q3", "maximum", "error")
"""Columns of a table of summaries, as far as the format has them. `error` is the mean's standard error, in percent."""


@dataclass(frozen=True, eq=False)
class Table:
    """One row per measurement: places first, then parameters, then a Float64 column per metric, null for missing
    values.

    In a table of summaries a row is one metric of one test: its name is in the column `metric`, and its summaries in
    columns of `SUMMARY`.
    """

    frame: polars.DataFrame
    units: Mapping[str, str]
    """Unit of each metric, by name: s, B, 1, 1/s, B/s, %, … or the format's own if its base is unknown."""
    kinds: Mapping[str, str]
    """Kind of each metric: cost, rate, ratio, count or binary."""
    parameters: tuple[str, ...] = ()
    """Columns of a row's configuration, text: each value of a varying one is a test of its own."""
    label: str = ""
    warnings: tuple[str, ...] = field(default=())
    """Notes on what was left out, and why."""
    summary_only: bool = False
    joins: Mapping[str, str] = field(default_factory=dict)
    """Join of workers and commands, for each metric whose rows specify it (`results.trial_join`)."""
    attributes: tuple[str, ...] = ()
    """Columns that describe a row, text, and do not distinguish tests."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of its metrics, in order."""
        return tuple(self.units)
