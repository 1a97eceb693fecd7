"""`--pool`: where the jobs of a verb that measures are run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etude.workbench.pool.wanted import PoolSpec


def add_pool(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The option."""
    parser.add_argument(
        "--pool",
        metavar="POOL",
        help="where to measure: 'local' is this machine, one job at a time; 'slurm' is a cluster, each job on nodes of"
        " its own, with keys as in 'slurm,partition=bench,time=30m'; or a file FILE.toml that has them in [pool]",
    )


def pool_of(options: argparse.Namespace) -> PoolSpec | None:
    """What `--pool` names; None where it is not given. Raises UsageError and InputError."""
    from etude.workbench.pool.spec import read_pool

    return None if options.pool is None else read_pool(options.pool)
