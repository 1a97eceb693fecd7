"""Searches on servers in trouble, simulated request by request: how often is a wrong rate said to be kept?

python bench/workbench/peak_trouble.py [--searches N] [--seed N] [--cases NAME,…] [--processes N]

A row a case: mean bench hours, the share of rates within 10 % of the peak, of intervals that hold it, of searches that
say that the target is met, of those that say so and are wrong, and of those that have a finding. *plain* is a server
without trouble, for the hours of others.
"""

from __future__ import annotations

import argparse
import os
import sys
import zlib
from collections.abc import Sequence
from multiprocessing import Pool

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from etude.workbench.goal import Goal
from etude.workbench.harnesses.request_queue import TROUBLES, RequestQueue
from etude.workbench.policies.registry import policy
from etude.workbench.search import search, spent
from etude.workbench.task import Task, Trial

PEAKS = (150.0, 1500.0)
LEAST, MOST = 50.0, 5000.0
HEADING = ("case", "hours", "right", "covered", "met", "met and wrong", "any finding")

Outcome = tuple[float, bool, bool, bool, bool]
"""Hours, right, covered, met, any finding."""


def one(case: str, seed: int, number: int) -> Outcome:
    """A search; its server follows from these alone."""
    rng = np.random.default_rng([seed, zlib.crc32(case.encode()), number])
    low, high = PEAKS
    server = RequestQueue(TROUBLES[case], float(low * (high / low) ** rng.random()), int(rng.integers(2**31)))
    task = Task(Goal((server.criterion,)), LEAST, MOST, seed=number)
    made: list[Trial] = []
    answer = search(policy("posterior"), task, server, (), lambda _, trial: made.append(trial))
    right = answer.rate is not None and abs(answer.rate / server.peak - 1) <= task.within
    covered = answer.low <= server.peak <= answer.high
    return spent(made) / 3600, right, covered, answer.kept, bool(answer.findings)


def row(case: str, outcomes: Sequence[Outcome]) -> str:
    """Of the table."""
    hours, right, covered, met, found = np.array(outcomes, float).T
    shares = (right.mean(), covered.mean(), met.mean(), (met * (1 - right)).mean(), found.mean())
    return (
        "| " + " | ".join((case, f"{hours.mean():.3f}", *(f"{100 * each:.1f} %" for each in shares))) + " |"
    )


def main() -> None:
    """Search, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--searches", type=int, default=400, help="of a case (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all servers (default %(default)s)")
    parser.add_argument("--cases", default=",".join(TROUBLES), help="by commas (default %(default)s)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="(default: one a CPU)")
    options = parser.parse_args()
    cases = options.cases.split(",")
    if not set(cases) <= set(TROUBLES):
        parser.error(f"--cases are {', '.join(TROUBLES)}")
    print("| " + " | ".join(HEADING) + " |\n" + "| --- " * len(HEADING) + "|")
    with Pool(options.processes) as pool:
        for case in cases:
            numbers = range(options.searches)
            print(row(case, pool.starmap(one, [(case, options.seed, n) for n in numbers])), flush=True)


if __name__ == "__main__":
    sys.exit(main())
