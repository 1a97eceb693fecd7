"""Pictures of results: plain data first, then drawn by matplotlib, or written with scripts that redraw them."""

KINDS = (
    "bars",
    "lines",
    "ratio",
    "pvalues",
    "ecdf",
    "box",
    "violin",
    "histogram",
    "percentiles",
    "timeline",
    "before-after",
)
"""Kinds of figures, by name."""
