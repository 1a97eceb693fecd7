"""Real searches of the known server: is the answer within what was promised of the peak that can be computed?

python bench/peak/known_searches.py [--searches N] [--policy NAME]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

from etude.peak.harnesses.known_server import KnownServer
from etude.peak.policies import policy
from etude.peak.search import benchmarking_time_s, search
from etude.peak.task import Criterion, Goal, Task, Trial
from rows import cells, options, table

SERVERS = (
    (4, "exponential", 0.010, 0.025),
    (2, "constant", 0.008, 0.020),
    (8, "exponential", 0.020, 0.040),
    (1, "constant", 0.005, 0.015),
    (4, "lognormal:1.5", 0.010, 0.030),
)
"""Workers, law and mean of services (s), and the limit of the mean response (s)."""
RUNLENGTH_S = 20.0


def one(number: int, name: str) -> tuple[str, bool]:
    """A search, as a row of a table; and whether it is within what was promised."""
    workers, law, mean_s, limit_s = SERVERS[number % len(SERVERS)]
    limit = Criterion("mean", limit_s)
    made: list[Trial] = []
    with KnownServer(workers, law, mean_s, seed=number, window_s=0.5) as server:
        truth = server.truth(limit)
        capacity = workers / mean_s
        task = Task(Goal((limit,)), 0.05 * capacity, 2 * capacity, runlength_s=RUNLENGTH_S, seed=number)
        begun = time.monotonic()
        answer = search(policy(name), task, server, (), lambda _, trial: made.append(trial))
        took = time.monotonic() - begun
    off = answer.rate / truth.value - 1 if answer.rate is not None else float("nan")
    early = sum(trial.ended == "early" for trial in made)
    findings = ", ".join(each.kind for each in answer.findings) or "–"
    rate = "–" if answer.rate is None else f"{answer.rate:.1f}"
    row = (
        f"{workers} × {1e3 * mean_s:g} ms {law}, mean ≤ {1e3 * limit_s:g} ms",
        f"{truth.value:.1f}",
        f"{rate} ({answer.low:.1f}–{answer.high:.1f})",
        f"{100 * off:+.1f} %",
        "yes" if answer.kept else "no",
        f"{len(made)}, {early} early",
        f"{took:.0f} s ({benchmarking_time_s(made):.0f} s of bench)",
        findings,
    )
    return cells(row), abs(off) <= task.within


def main() -> None:
    """Print the table; the exit code is 1 when fewer than nine of ten are right."""
    parser = options(__doc__)
    parser.add_argument("--searches", type=int, default=10)
    parser.add_argument("--policy", default="posterior")
    given = parser.parse_args()
    print(*table(["server", "peak", "found", "off", "kept", "trials", "took", "findings"], ())[:2], sep="\n")
    right = 0
    for number in range(given.searches):
        row, near = one(number, given.policy)
        print(row, flush=True)
        right += near
    print(f"\n{right} of {given.searches} within 10 %")
    sys.exit(right < 0.9 * given.searches)


if __name__ == "__main__":
    main()
