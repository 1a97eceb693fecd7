"""Étude runs programs again and again until their numbers can be trusted.

>>> import etude
>>> verdict = etude.bench(["gzip -1 -c FILE", "gzip -5 -c FILE"])   # doctest: +SKIP
>>> print(verdict)                                                  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from etude.version import __version__

if TYPE_CHECKING:
    from etude import iolab as io
    from etude.api import bench, plot, run
    from etude.experiment.plan import Plan
    from etude.experiment.test import Test
    from etude.results.reader import load_results

_PUBLIC = {
    "Plan": "etude.experiment.plan",
    "Test": "etude.experiment.test",
    "bench": "etude.api",
    "load_results": "etude.results.reader",
    "plot": "etude.api",
    "run": "etude.api",
}

__all__ = ["Plan", "Test", "__version__", "bench", "io", "load_results", "plot", "run"]


def __dir__() -> list[str]:
    """Names, including those that are loaded on first use, for completion."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Load a public name on first use: `import etude` alone is fast."""
    from importlib import import_module

    if name == "io":
        return import_module("etude.iolab")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'etude' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
