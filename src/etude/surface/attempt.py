"""Attempts at configurations on other machines: node, boot and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etude.cluster.pool.job import RETRYABLE

INTERRUPTED = "interrupted"
"""The attempt was ended from here; another machine does not resume it."""
LOST = frozenset((*RETRYABLE, INTERRUPTED))
"""Ends without information on the configuration."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a configuration on a node."""

    host: str
    """The node; of several, the one that offers the load. Empty if the job never started."""
    boot_id: str = ""
    """Boot id of the node; empty if unknown."""
    start: str | None = None
    """UTC, RFC 3339."""
    start_ns: int | None = None
    """Node's monotonic clock, ns."""
    machine: Mapping[str, Any] | None = None
    """Machine snapshot of the node; None if unknown."""
    lost: str = ""
    """One of LOST: its results do not count and the configuration is measured again. Empty: not lost."""
    system: str = ""
    """Node of the system, if it has its own."""
