"""github-action-benchmark, tool customSmallerIsBetter: of all metrics those that are better when smaller."""

from __future__ import annotations

from etude.export.document import Document, Exported
from etude.export.github import export_means

ABOUT = "github-action-benchmark, tool customSmallerIsBetter: the means of all costs"


def write(document: Document) -> Exported:
    """Means; `range` is half the width of their intervals."""
    return export_means(document, "cost")
