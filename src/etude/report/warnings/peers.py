"""A machine whose level is another than that of its peers."""

from __future__ import annotations

import numpy as np

from etude.report.pairs import machines_of
from etude.report.warnings.about import signed
from etude.report.warnings.warning import Warning, warning
from etude.results.series import Series
from etude.stats.machines import StandsOut, stand_out
from etude.units.formatting import p_value

MOST = 3
"""So many are named."""


def machine_apart(series: Series, metric: str) -> list[Warning]:
    """The machines that stand out, in one warning; nothing where values are not above 0."""
    names = machines_of(series, metric)
    values = series.sample(metric)
    if len(set(names)) < 2 or not bool(np.all(values > 0.0)):
        return []
    sittings = None if series.sittings is None else series.sittings[_counted(series, metric)].tolist()
    found = stand_out(values, names, sittings)
    if not found:
        return []
    others = "the other" if len(set(names)) == 2 else "the others"
    each = "; ".join(_told(one, others) for one in found[:MOST])
    more = f"; and {len(found) - MOST} more" if len(found) > MOST else ""
    text = f"{metric} of {each}{more}"
    return [warning("machine-apart", series.test, metric, text, "find out why, or leave out that machine")]


def _told(one: StandsOut, others: str) -> str:
    limits = f"{one.low:.3f}–{one.high:.3f}"
    return f"{one.machine} is {signed(one.ratio - 1.0)} {others} (× {one.ratio:.3f}; 95 %: {limits}; {p_value(one.p)})"


def _counted(series: Series, metric: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which trials `Series.sample` has."""
    return np.asarray(series.kept & np.isfinite(series.columns[metric].values))
