"""Étude runs programs again and again until their numbers can be trusted.

>>> import etude
>>> verdict = etude.bench(["gzip -1 -c FILE", "gzip -5 -c FILE"])   # doctest: +SKIP
>>> print(verdict)                                                  # doctest: +SKIP
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from etude.version import __version__

if TYPE_CHECKING:
    from etude import iolab as io
    from etude.api.capacity import PeakRate, SurfaceMap, peak, surface
    from etude.api.claims import ClaimVerdicts, claims
    from etude.api.measure import bench, load_results, plot, run, stats
    from etude.api.over_time import History, StoredComparison, compare, history
    from etude.api.result import ShownResults, ShownVerdict
    from etude.api.traces import Recording, Replay, capture, record, replay
    from etude.api.why import Why, WhyOutliers, why, why_outliers
    from etude.experiment.plan import Plan, make_plan
    from etude.experiment.test import Test

_PUBLIC = {
    "ClaimVerdicts": "etude.api.claims",
    "History": "etude.api.over_time",
    "PeakRate": "etude.api.capacity",
    "Plan": "etude.experiment.plan",
    "Recording": "etude.api.traces",
    "Replay": "etude.api.traces",
    "ShownResults": "etude.api.result",
    "ShownVerdict": "etude.api.result",
    "StoredComparison": "etude.api.over_time",
    "SurfaceMap": "etude.api.capacity",
    "Test": "etude.experiment.test",
    "Why": "etude.api.why",
    "WhyOutliers": "etude.api.why",
    "bench": "etude.api.measure",
    "capture": "etude.api.traces",
    "claims": "etude.api.claims",
    "compare": "etude.api.over_time",
    "history": "etude.api.over_time",
    "load_results": "etude.api.measure",
    "make_plan": "etude.experiment.plan",
    "peak": "etude.api.capacity",
    "plot": "etude.api.measure",
    "record": "etude.api.traces",
    "replay": "etude.api.traces",
    "run": "etude.api.measure",
    "stats": "etude.api.measure",
    "surface": "etude.api.capacity",
    "why": "etude.api.why",
    "why_outliers": "etude.api.why",
}

__all__ = [
    "ClaimVerdicts",
    "History",
    "PeakRate",
    "Plan",
    "Recording",
    "Replay",
    "ShownResults",
    "ShownVerdict",
    "StoredComparison",
    "SurfaceMap",
    "Test",
    "Why",
    "WhyOutliers",
    "__version__",
    "bench",
    "capture",
    "claims",
    "compare",
    "history",
    "io",
    "load_results",
    "make_plan",
    "peak",
    "plot",
    "record",
    "replay",
    "run",
    "stats",
    "surface",
    "why",
    "why_outliers",
]


class _Functions(ModuleType):
    """The module `etude`, in which a public function hides the package of its name: `etude.peak` is the function,
    however early something imports `etude.peak.search` (docs/decisions/0047-functions-named-as-packages.md)."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Functions


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
    found = getattr(import_module(_PUBLIC[name]), name)
    if name in ("claims", "history", "peak", "stats", "surface", "why"):
        found.__name__ = (
            f"etude.{name}"  # by which `import etude.peak.search as x` finds the package's module
        )
    return found
