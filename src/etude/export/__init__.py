"""Results in the formats of other programs (docs/howto/export.md): one module a format, each data to text.

A format is a function from a `Document` to an `Exported`, listed in `FORMATS`.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from etude.export.document import Document, Exported


class Format(NamedTuple):
    """A format: a function of a module of this package, which is imported on use, and the suffix of its files."""

    module: str
    function: str = "write"
    suffix: str = "json"


FORMATS = {
    "bencher": Format("bencher"),
    "conbench": Format("conbench"),
    "github-bigger": Format("github", "write_bigger"),
    "github-smaller": Format("github", "write_smaller"),
    "go": Format("go", suffix="txt"),
    "hyperfine": Format("hyperfine"),
    "hyperfine-2": Format("hyperfine_2"),
    "hyperfine-csv": Format("hyperfine", "write_csv", suffix="csv"),
    "junit": Format("junit", suffix="xml"),
    "markdown": Format("markdown", suffix="md"),
    "openmetrics": Format("openmetrics", suffix="txt"),
    "otava": Format("otava", suffix="csv"),
}
"""All formats, by name."""


SUMMARIES = {"csv": "csv", "json": "json", "markdown": "md"}
"""Formats of a verdict itself (`etude bench --export`), and how the names of their files end."""


def export_to(name: str, document: Document) -> Exported:
    """The document as text. Raises UsageError where the format cannot hold it."""
    form = FORMATS[name]
    module = import_module(f"etude.export.{form.module}")
    found: Exported = getattr(module, form.function)(document)
    return found
