"""Results in the formats of other programs (docs/howto/export.md): one module a format, each data to text.

A format is a function from a `Document` to an `Exported`, listed in `FORMATS`.
"""

from __future__ import annotations

from importlib import import_module

from etude.export.document import Document, Exported

FORMATS = {
    "bencher": ("bencher", "write"),
    "conbench": ("conbench", "write"),
    "github-bigger": ("github", "write_bigger"),
    "github-smaller": ("github", "write_smaller"),
    "go": ("go", "write"),
    "hyperfine": ("hyperfine", "write"),
    "hyperfine-2": ("hyperfine_2", "write"),
    "hyperfine-csv": ("hyperfine", "write_csv"),
    "junit": ("junit", "write"),
    "markdown": ("markdown", "write"),
    "openmetrics": ("openmetrics", "write"),
    "otava": ("otava", "write"),
}
"""The module and function of each, which is loaded when it is asked for."""


SUMMARIES = {"csv": "csv", "json": "json", "markdown": "md"}
"""Formats of a verdict itself (`etude bench --export`), and how the names of their files end."""


def export_to(name: str, document: Document) -> Exported:
    """The document as text. Raises UsageError where the format cannot hold it."""
    module, function = FORMATS[name]
    found: Exported = getattr(import_module(f"etude.export.{module}"), function)(document)
    return found
