"""What intervals over the outermost level cover, and false findings between sessions."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from two_samples import percent

from calibrate_tables import share, table
from etude.stats.cross_session import NotSupported, between_sessions, compare_sessions, stated_session_spread
from etude.stats.intervals import mean_interval
from etude.stats.levels import split_variance
from etude.stats.series import lognormal
from etude.stats.twosample import welch


def levels(rng: Generator, replications: int) -> list[str]:
    """Trials within boots: the interval over boots, and the one over all trials as if they were independent."""
    few = max(20, replications // 2)
    rows = []
    for between in (0.0, 0.01, 0.03):
        for boots, trials in ((3, 10), (5, 10), (10, 5)):
            outer, inner = 0, 0
            labels = {"boot": np.repeat(np.arange(boots), trials).tolist()}
            for _ in range(few):
                x = (
                    1.0
                    + np.repeat(rng.normal(0.0, between, boots), trials)
                    + rng.normal(0.0, 0.01, boots * trials)
                )
                over_boots, over_trials = split_variance(x, labels).interval, mean_interval(x)
                outer += over_boots is not None and over_boots.low <= 1.0 <= over_boots.high
                inner += over_trials is not None and over_trials.low <= 1.0 <= over_trials.high
            cells = [share(count / few, few) for count in (outer, inner)]
            rows.append([f"{100 * between:g} % between boots, 1 % within", f"{boots} × {trials}", *cells])
    return [
        "## Levels",
        "",
        f"Coverage in % ({few} experiments each) of the mean over all boots that could have been.",
        "",
        *table(["spread", "boots × trials", "interval over boots", "interval over trials"], rows),
    ]


def sittings(rng: Generator, replications: int) -> list[str]:
    """Two identical tests, measured in one session each."""
    few = max(20, replications // 2)
    rows = []
    for between in (0.0, 0.03, 0.15):
        for stored in (3, 5, 10):
            widened, given, inner = 0, 0, 0
            for _ in range(few):
                effects = lognormal(between)(rng, 1, stored + 2)[0]
                *known, base, other = (e * np.exp(rng.normal(0.0, 0.03, 10)) for e in effects)
                one = compare_sessions(base, other, between_sessions(known))
                two = compare_sessions(base, other, stated_session_spread(100.0 * between))
                assert not isinstance(one, NotSupported)
                assert not isinstance(two, NotSupported)
                widened += not one.low <= 1.0 <= one.high
                given += not two.low <= 1.0 <= two.high
                inner += welch(base, other).p < 0.05
            cells = [percent(count / few) for count in (widened, given, inner)]
            rows.append([f"{100 * between:g} % between sessions, 3 % within", str(stored), *cells])
    return [
        "## One session a side",
        "",
        f"Identical tests called different at 5 %, in % ({few} comparisons each), 10 trials a side: widened by what",
        "the stored sessions show, by the true spread as given, and not at all (Welch on the inner samples).",
        "",
        *table(["spread", "stored sessions", "widened", "given", "inner samples"], rows),
    ]
