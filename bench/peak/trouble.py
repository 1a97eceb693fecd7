"""Searches on servers in trouble: how often is a wrong rate said to be kept? And what do second trials cost?

python bench/peak/trouble.py [--searches N] [--seed N] [--cases NAME,…] [--processes N] [--unconfirmed]
    [--window S]

A row a case: mean benchmarking hours, the share of rates within 10 % of the peak, of intervals that hold it, of
searches that say that the target is met, of those that say so and are wrong, and of those that have a finding; and of
the searches that do not meet the target, the share that has one. Cases are servers
simulated request by request (`requests`, the default: of these *plain* has no trouble), troubled servers that are a
curve and its noise (`troubled`), and such without trouble (`curves`). --unconfirmed makes no second trials: the hours
of `curves` with it and without are what these cost. --window is for the first kind: 180 makes one window a trial, as
load generators do that print one summary, 36 one of each fifth of a trial.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Sequence
from multiprocessing import Pool
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

import numpy as np

from etude.peak.harnesses.curves import CURVES, TROUBLED
from etude.peak.harnesses.simulated import SimulatedServer
from etude.peak.policies import posterior
from etude.peak.search import benchmarking_time_s, search
from etude.peak.task import Goal, Task, Trial
from peak.request_queue import TROUBLES, RequestQueue
from peak.searches import OURS, PARTIES, PEAKS, TASK, drawn, judged
from rows import cells, options, table

HEADING = ("case", "hours", "right", "covered", "met", "met and wrong", "any finding", "unmet, named")
GROUPS = {"requests": [*TROUBLES], "troubled": [*TROUBLED], "curves": [*CURVES]}

Outcome = tuple[float, bool, bool, bool, bool]
"""Hours, right, covered, met, any finding."""


def one(case: str, seed: int, number: int, window_s: float) -> Outcome:
    made: list[Trial] = []
    server: SimulatedServer | RequestQueue
    if case in TROUBLES:
        rng = np.random.default_rng([seed, zlib.crc32(case.encode()), number])
        low, high = PEAKS
        peak = float(low * (high / low) ** rng.random())
        server = RequestQueue(TROUBLES[case], peak, int(rng.integers(2**31)), window_s=window_s)
        task = Task(Goal((server.criterion,)), TASK.lowest, TASK.highest, seed=number)
    else:
        server, task = drawn(PARTIES[OURS], case, seed, number)
    answer = search(posterior.Posterior(), task, server, (), lambda _, trial: made.append(trial))
    if isinstance(server, RequestQueue):
        right = answer.rate is not None and abs(answer.rate / server.peak - 1) <= task.within
        covered = answer.low <= server.peak <= answer.high
    else:
        found = judged(answer, server, made, ())
        right, covered = found.right, found.held
    return benchmarking_time_s(made) / 3600, right, covered, answer.kept, bool(answer.findings)


def row(case: str, outcomes: Sequence[Outcome]) -> str:
    hours, right, covered, met, found = np.array(outcomes, float).T
    shares = (right.mean(), covered.mean(), met.mean(), (met * (1 - right)).mean(), found.mean())
    named = f"{100 * found[met == 0].mean():.1f} %" if not met.all() else "–"
    return cells((case, f"{hours.mean():.3f}", *(f"{100 * each:.1f} %" for each in shares), named))


def without_second_trials() -> None:
    """From here on, also in processes that are forked."""
    posterior.confirmation_trial = lambda task, known, rate: None


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--searches", type=int, default=400, help="of a case (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all servers (default %(default)s)")
    parser.add_argument("--cases", default="requests", help=f"by commas, or {', '.join(GROUPS)}")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="(default: one a CPU)")
    parser.add_argument("--unconfirmed", action="store_true", help="without second trials")
    parser.add_argument("--window", type=float, default=10.0, metavar="S", help="(default %(default)g)")
    given = parser.parse_args()
    cases = [name for each in given.cases.split(",") for name in GROUPS.get(each, [each])]
    every = [name for group in GROUPS.values() for name in group]
    if not set(cases) <= set(every):
        parser.error(f"--cases are {', '.join([*GROUPS, *every])}")
    if given.unconfirmed:
        without_second_trials()
    print(*table(HEADING, ())[:2], sep="\n")
    hours = []
    with Pool(given.processes) as pool:
        for case in cases:
            numbers = range(given.searches)
            outcomes = pool.starmap(one, [(case, given.seed, n, given.window) for n in numbers])
            hours += [outcome[0] for outcome in outcomes]
            print(row(case, outcomes), flush=True)
    print(f"\n{np.mean(hours):.3f} hours on average of all searches")


if __name__ == "__main__":
    sys.exit(main())
