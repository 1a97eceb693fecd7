"""A relation and its operations (docs/getstats.md): plain functions from polars data frames to others.

A row is a measurement. Columns `trial` (or `epoch`), `worker` (or `thread`), `command`, `status`, … identify it; the
other columns of numbers are its metrics. Expressions are those of `etude.stats.expression`, with every column as a
variable. Importing this package imports polars.
"""

from etude.stats.transforms.joins import aggregate, group, join_threads, unite_commands, wait_and_cpu
from etude.stats.transforms.names import NoColumnError
from etude.stats.transforms.output import csv, describe, dump
from etude.stats.transforms.rows import (
    compute,
    echo,
    project,
    rename,
    select,
    warn_columns,
    warn_rows,
    warn_values,
)

__all__ = [
    "NoColumnError",
    "aggregate",
    "compute",
    "csv",
    "describe",
    "dump",
    "echo",
    "group",
    "join_threads",
    "project",
    "rename",
    "select",
    "unite_commands",
    "wait_and_cpu",
    "warn_columns",
    "warn_rows",
    "warn_values",
]
