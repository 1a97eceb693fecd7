"""Where and when a cell was tried, where that was on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etude.cluster.pool.job import RETRYABLE

INTERRUPTED = "interrupted"
"""It was ended from here, and another machine does not go on with it."""
LOST = frozenset((*RETRYABLE, INTERRUPTED))
"""Ends that say nothing of the cell."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a cell, on a node."""

    host: str
    """The node; of several, the one that offers. Empty where it never came to one."""
    boot_id: str = ""
    """Of the node; empty where it never told."""
    start: str | None = None
    """UTC, RFC 3339."""
    start_ns: int | None = None
    """Of the node's monotonic clock, ns."""
    machine: Mapping[str, Any] | None = None
    """The node's snapshot; None where it never told."""
    lost: str = ""
    """One of LOST: what is kept of it does not count, and the cell is tried again."""
    system: str = ""
    """The node of the system, where that has one of its own."""
