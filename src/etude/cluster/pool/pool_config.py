"""Settings of a pool, and how its jobs are submitted: plain data."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

Kind = Literal["local", "slurm"]
FileAccess = Literal["shared", "copied"]

PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """Settings of `--pool`. All but `kind` are for Slurm."""

    kind: Kind = "local"
    partition: str = ""
    """Empty: the cluster's default partition."""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    """Features that a node must have, in Slurm's own syntax."""
    reservation: str = ""
    time_s: float | None = None
    """Time limit of a job, s; Slurm counts whole minutes."""
    nodes_at_once: int | None = None
    """Maximum nodes in use at any time."""
    nodelist: str = ""
    """The only nodes to use, such as `n[1-4]`."""
    exclude: str = ""
    """Nodes not to use."""
    patience_s: float = PATIENCE_S
    """Time that all jobs may wait for something other than their turn before they count as held, s."""
    etude: FileAccess = "shared"
    """*shared*: this Étude is on the nodes, at its path. *copied*: only its engine is copied there."""
    results: FileAccess = "shared"
    """*shared*: the results directory is on the nodes, at its path. *copied*: results are copied from the nodes."""
    python: str = sys.executable
    """Path of a Python on the nodes that has this Étude."""
