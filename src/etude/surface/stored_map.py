"""A map from its directory, as it is shown, drawn and reported."""

from __future__ import annotations

import numpy as np

from etude.surface.map_store import MapStore
from etude.surface.next_configuration import fit_surrogate, is_predicted
from etude.surface.surface_result import Cost, SurfaceResult
from etude.surface.surrogate import Predicted


def mapped_of(kept: MapStore) -> SurfaceResult:
    """With predictions of what was not measured, by the surrogate that is best now."""
    what, samples = kept.charted, tuple(kept.samples())
    fit = fit_surrogate(what.space, samples)
    base = SurfaceResult(
        what.space, what.response, what.unit, what.better, samples, Predicted(np.zeros(0), np.zeros(0)), ""
    )
    left = base.unmeasured
    told = is_predicted(what.space, samples, left) or _nothing(len(left))
    costs = tuple(
        Cost(each.cell, each.cost_s, each.trials, each.state)
        for each in (line.sample for line in kept.attempts())
        if each.cell not in what.space.without
    )
    end = kept.document.get("surface") or {}
    return SurfaceResult(
        what.space,
        what.response,
        what.unit,
        what.better,
        samples,
        told,
        fit.name if fit is not None else "",
        () if fit is None else tuple(np.expm1(fit.left_out.log - fit.known.log).tolist()),
        costs,
        tuple(end.get("findings", ())),
    )


def _nothing(count: int) -> Predicted:
    return Predicted(np.zeros(count), np.full(count, np.inf))
