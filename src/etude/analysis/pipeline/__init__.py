"""Transforms of rows, in the order given: declared once for `getstats` and `etude stats` (docs/getstats.md)."""
