"""The formats by name. Adding one is a module and a line here, and a section in docs/export.md."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from etude.export.document import Document, Exported

FORMATS = {
    "bencher": "bencher",
    "conbench": "conbench",
    "github-bigger": "github_bigger",
    "github-smaller": "github_smaller",
    "go": "go",
    "hyperfine": "hyperfine",
    "hyperfine-2": "hyperfine_2",
    "hyperfine-csv": "hyperfine_csv",
    "junit": "junit",
    "markdown": "markdown",
    "openmetrics": "openmetrics",
    "otava": "otava",
}
"""And the module of each."""


class Format(Protocol):
    """What such a module is."""

    ABOUT: str

    def write(self, document: Document) -> Exported:
        """The document in this format."""


def format_of(name: str) -> Format:
    """The module of a format."""
    return cast(Format, import_module(f"etude.export.{FORMATS[name]}"))


def export_to(name: str, document: Document) -> Exported:
    """The document as text. Raises UsageError where the format cannot hold it."""
    return format_of(name).write(document)
