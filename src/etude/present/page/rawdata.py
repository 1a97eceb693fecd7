"""The measurements themselves: what the charts draw and what a reader takes out of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from etude.analysis.verdict import Verdict
from etude.analysis.verdict_options import usual_metrics
from etude.analysis.warnings import DataWarning
from etude.codec import plain
from etude.masking import Mask
from etude.present.page.gather import Gathered
from etude.results.series import Column, Series
from etude.stats.cross_session import CrossSessionRatio, NotSupported
from etude.stats.ratio import Ratio
from etude.units.formatting import scale_of

MOST_VALUES = 250_000
"""Most values for which all metrics are put into the page, about 3 MB of text; above it only the default metrics
are."""


def raw_data(found: Gathered) -> dict[str, Any]:
    """Plain data: every result with its tests, of each test its trials and columns, and what warnings mark."""
    values = sum(
        series.trials.size * len(series.columns)
        for verdict in found.verdicts
        for series in (*verdict.subject.tests, *verdict.subject.twins)
    )
    everything, several = values <= MOST_VALUES, len(found.verdicts) > 1
    return {
        "left_out": ""
        if everything
        else "Only the usual metrics are in this page: there are too many values.",
        "results": [
            _result(verdict, place, everything, several, found.mask)
            for place, verdict in enumerate(found.verdicts)
        ],
        "across": [
            _ratio(f"{a.base} ({a.base_label})", f"{a.other} ({a.other_label})", a.metric, a.found)
            for a in found.across
            if not isinstance(a.found, NotSupported)
        ],
        "reports": [{"label": printable(label), **plain(report)} for label, report in found.reports],
    }


def _ratio(base: str, other: str, metric: str, found: Ratio | CrossSessionRatio) -> dict[str, Any]:
    ends = {"ratio": found.ratio, "low": found.low, "high": found.high}
    return {"base": printable(base), "other": printable(other), "metric": metric} | ends


def printable(text: str) -> str:
    """The text without what no encoding has: bytes of a file's name that are no UTF-8 become `?`."""
    return text.encode("utf-8", "replace").decode()


def anchor(result: int, test: int) -> str:
    """The name of a test's place in the page."""
    return f"test-{result + 1}-{test + 1}"


def warning_anchor(result: int, place: int) -> str:
    """The name of a warning's place in the page."""
    return f"warning-{result + 1}-{place + 1}"


def _result(verdict: Verdict, result: int, everything: bool, several: bool, mask: Mask) -> dict[str, Any]:
    where = f" ({verdict.subject.label})" if several else ""
    shown = None if everything else set(usual_metrics(verdict.subject))
    tests = [
        _test(series, verdict, result, place, shown) for place, series in enumerate(verdict.subject.tests)
    ]
    return {
        "label": printable(verdict.subject.label),
        "primary": verdict.primary,
        "tests": tests,
        "twins": [
            _series(series, shown) | {"test": f"{series.test} (baseline against itself)"}
            for series in verdict.subject.twins
        ],
        "comparisons": [
            _ratio(f"{c.base}{where}", f"{c.other}{where}", c.metric, c.ratio) | {"floor": c.floor}
            for c in verdict.comparisons
        ],
        "experiment": mask.data(verdict.subject.experiment),
    }


def _test(
    series: Series, verdict: Verdict, result: int, place: int, shown: set[str] | None
) -> dict[str, Any]:
    summary = next((t for t in verdict.tests if t.test == series.test), None)
    primary = summary.metric(verdict.primary) if summary else None
    s = primary.summary if primary else None
    like = None if s is None else s.median or s.mean or None
    unit = "" if primary is None else primary.unit
    divisor, name = scale_of(like, unit) if like is not None else (1.0, unit)
    return _series(series, shown) | {
        "anchor": anchor(result, place),
        "scale": {"divisor": divisor, "unit": name},
        "mean": None if s is None else s.mean,
        "interval": [s.mean_interval.low, s.mean_interval.high] if s and s.mean_interval else None,
        "flags": _flags(verdict.every, series),
    }


def _flags(warnings: Sequence[DataWarning], series: Series) -> dict[str, list[str]]:
    """Kinds of the warnings that name a trial, by trial."""
    found: dict[str, list[str]] = {}
    for warning in warnings:
        if warning.test == series.test:
            for trial in warning.trials:
                found.setdefault(str(trial), []).append(warning.kind)
    return found


def _series(series: Series, shown: set[str] | None) -> dict[str, Any]:
    columns: Mapping[str, Column] = series.columns
    return {
        "test": series.test,
        "parameters": dict(series.parameters),
        "trials": series.trials,
        "kept": series.kept,
        "why": list(series.why) or None,
        "blocks": series.blocks,
        "sittings": series.sittings,
        "columns": {
            name: {"unit": column.unit, "kind": column.kind, "values": _plain(column.values)}
            for name, column in columns.items()
            if shown is None or name in shown
        },
    }


def _plain(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Contiguous, as the serialiser takes them; what is not finite becomes null there."""
    return np.ascontiguousarray(values, dtype=np.float64)
