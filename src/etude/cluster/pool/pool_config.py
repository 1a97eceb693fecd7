"""Settings of a pool, and how its jobs are submitted: plain data."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

Kind = Literal["local", "slurm"]
Way = Literal["shared", "copied"]

PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """As `--pool` names it. All but `kind` is Slurm's."""

    kind: Kind = "local"
    partition: str = ""
    """Empty: the cluster's default one."""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    """Features that a node has to have, in Slurm's own words."""
    reservation: str = ""
    time_s: float | None = None
    """The longest that a job may take; Slurm counts it in whole minutes."""
    nodes_at_once: int | None = None
    """Use no more nodes than these at any time."""
    nodelist: str = ""
    """Use no other nodes than these, as `n[1-4]`."""
    exclude: str = ""
    """Never use these."""
    patience_s: float = PATIENCE_S
    """How long all jobs may wait for something other than their turn, until they count as held."""
    etude: Way = "shared"
    """Whether this Étude is on the nodes, at its path, or its engine alone is copied there."""
    results: Way = "shared"
    """Whether the results directory is on the nodes, at its path, or results are brought from there."""
    python: str = sys.executable
    """A Python on the nodes that has this Étude."""
