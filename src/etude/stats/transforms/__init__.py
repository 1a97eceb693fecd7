"""A relation and its operations (docs/howto/getstats.md): plain functions from polars data frames to others.

A row is a measurement. Columns `trial` (or `epoch`), `worker` (or `thread`), `command`, `status`, … identify it; the
other columns of numbers are its metrics. Expressions are those of `etude.stats.expression`, with every column as a
variable. Importing a module of this package imports polars.
"""
