"""What the intervals of the two precision rules cover."""

from __future__ import annotations

import numpy as np
import study
from numpy.random import Generator
from own_series import OWN as NEW

from calibrate_tables import share, table
from etude.stats.series import MACHINES, OWN, REFERENCE, Series, deal_into_blocks, normal
from etude.stats.simulation import mean_stops, ratio_stops
from etude.stats.stopping import MeanPrecision, RatioPrecision

SERIES: tuple[Series, ...] = (*REFERENCE, *OWN, *NEW)


def mean_rule(rng: Generator, replications: int) -> list[str]:
    """Coverage of the mean's interval where MeanPrecision stopped, the first trial excluded."""
    rows = []
    for series in SERIES:
        rule = MeanPrecision()
        stops = mean_stops(series.draw(rng, replications, rule.maximum + 1)[:, 1:], rule)
        covered = "no mean"
        if series.mean is not None:
            truth = series.mean + series.drift * (stops.count + 1) / 2.0
            covered = share(stops.covers(truth), replications)
        unfinished = f"{100 * np.mean(~stops.converged):.0f}"
        covered = study.beside(covered, study.MEAN, series.name, 3)
        rows.append([series.name, covered, f"{stops.count.mean():.1f}", unfinished])
    return [
        "## The mean, stopped at a half width of 5 %",
        "",
        "MeanPrecision as it is shipped (10 to 50 trials, the first one excluded). Coverage of the mean's interval in",
        "%, in brackets the study's; trials on average; share that stopped unconverged at 50, in %.",
        "",
        *table(["series", "covers", "trials", "unconverged"], rows),
    ]


def ratio_rule(rng: Generator, replications: int) -> list[str]:
    """False differences of two identical tests where RatioPrecision stopped, by machine."""
    rows = []
    for machine in MACHINES:
        cells = [machine.name]
        for target in (0.02, 0.05):
            rule = RatioPrecision(precision=target)
            length = 2 * (rule.maximum + 1)
            trials = machine.draw(rng, replications, length) * normal(0.02)(rng, replications, length)
            stops = ratio_stops(deal_into_blocks(rng, trials, 2)[..., 1:], rule)
            cells += [share(stops.covers(0.0), replications), f"{stops.count.mean():.1f}"]
        rows.append(cells)
    for series in SERIES:
        cells = [f"{series.name} (both tests)"]
        for target in (0.02, 0.05):
            rule = RatioPrecision(precision=target)
            trials = series.draw(rng, replications, 2 * (rule.maximum + 1))
            stops = ratio_stops(deal_into_blocks(rng, np.maximum(trials, 1e-9), 2)[..., 1:], rule)
            cells += [share(stops.covers(0.0), replications), f"{stops.count.mean():.1f}"]
        rows.append(cells)
    return [
        "## The ratio of two identical tests in random blocks",
        "",
        "RatioPrecision as it is shipped, the first block excluded. Coverage of a ratio of 1 in % and pairs on",
        "average, for targets of 2 and 5 %. Machines have noise of cv 2 %; below them both tests are one of the",
        "series.",
        "",
        *table(["machine or series", "2 %: covers", "pairs", "5 %: covers", "pairs"], rows),
    ]
