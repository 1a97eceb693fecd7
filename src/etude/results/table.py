"""One tidy table of measurements, whatever the format that they were read from."""

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
"""The columns that say which measurement a row is. `test`, `trial`, `worker` and `kept` are always there."""

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
"""Further ones, which stand behind those of `PLACES` where a format has them: our own."""

SUMMARY = ("count", "mean", "deviation", "median", "minimum", "q1", "q3", "maximum", "error")
"""Columns of a table of summaries; those that the format has. `error` is the mean's standard error, in percent."""


@dataclass(frozen=True, eq=False)
class Table:
    """A row a measurement: places first, then parameters, then a Float64 column a metric, null where it has none.

    In a table of summaries a row is one metric of one test: its name stands in the column `metric`, and what the
    format says of it in columns of `SUMMARY`.
    """

    frame: polars.DataFrame
    units: Mapping[str, str]
    """Of each metric, by name: s, B, 1, 1/s, B/s, %, … or as the format calls it where we know no base of it."""
    kinds: Mapping[str, str]
    """Of each metric: cost, rate, ratio, count or binary."""
    parameters: tuple[str, ...] = ()
    """Columns that say how a row was configured, text: where one varies, each value is a test of its own."""
    label: str = ""
    warnings: tuple[str, ...] = field(default=())
    """What was left out, and why."""
    summary_only: bool = False
    joins: Mapping[str, str] = field(default_factory=dict)
    """How workers and commands are joined, of each metric whose rows say it (`results.trial_join`)."""
    attributes: tuple[str, ...] = ()
    """Columns that describe a row, text, and do not tell one test from another."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of its metrics, in order."""
        return tuple(self.units)
