"""github-action-benchmark, tool customBiggerIsBetter: of all metrics those that are better when bigger."""

from __future__ import annotations

from etude.export.document import Document, Exported
from etude.export.github import export_means

ABOUT = "github-action-benchmark, tool customBiggerIsBetter: the means of all rates"


def write(document: Document) -> Exported:
    """Means; `range` is half the width of their intervals."""
    return export_means(document, "rate")
