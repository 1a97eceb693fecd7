"""Real servers: is what a search finds what a slow manual ladder finds, also while another program disturbs?

python bench/peak/real_servers.py [--servers NAME,…] [--seconds S] [--rehearsals N]

Of each server in turn (by harnesses of examples/peak, each held to a tenth of a CPU): by doubling, a load that is fine
and twice it, which is too much; a ladder of 8 loads from 0.7 times the first to the second, in random order; a search;
the ladder; a search beside a busy loop that takes turns with the server's CPU time at random instants; the ladder. So a
ladder has 3 repetitions, and meets what else the machine does as searches do. A row a server: the ladder's peak and
what single repetitions give, both searches with their ratio to it, and benchmarking time. With --rehearsals, the median
benchmarking time of so many rehearsed searches, too, whose trials cost and vary as those of the first search did.

As root. Needs the Debian packages nginx-light, wrk, redis-server, redis-tools, postgresql, mariadb-server, sysbench
and curl.
"""

from __future__ import annotations

import math
import random
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

import numpy as np
from scipy.optimize import isotonic_regression

from etude.peak.harnesses.curves import CURVES
from etude.peak.harnesses.spec import read_harness
from etude.peak.policies.posterior import Posterior
from etude.peak.rehearse import bench_model_like, rehearse
from etude.peak.search import Bench, benchmarking_time_s, search
from etude.peak.task import Answer, Task, Trial, TrialRequest, slo_ratio_of
from rows import ROOT, cells, names, options, table

EXAMPLES = ROOT / "examples"
HELD = {"cpu": "10", "client_cpu": "60"}
SERVERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "nginx": ("nginx", {}),
    "redis": ("redis", {"requests_per_s": "5000"}),
    "postgres": ("pgbench", {"mix": "select-only", "scale": "1"}),
    "http": ("http", {}),
    "mariadb": ("mariadb", {"workload": "oltp_point_select", "rows": "10000"}),
}
"""Harness and factors, beside `HELD`, by name."""
LOADS, REPETITIONS, LOWEST = 8, 3, 0.7
GAP_S, LASTS_S = 60.0, (3.0, 8.0)
"""Between two disturbances, on average; and how long one lasts."""
BUSY = (EXAMPLES / "lib" / "peak-held.sh", "server", HELD["cpu"], sys.executable, "-c", "while True: pass")
HEADING = ("server", "ladder", "by repetition", "search", "ratio", "met", "disturbed search", "ratio", "met")
HEADING_COST = ("ladder's benchmarking time", "search's", "rehearsed", "rehearsed / search's")


@dataclass
class Ladder:
    """Of one server, by hand."""

    loads: list[float]
    readings: list[Mapping[float, float]] = field(default_factory=list)
    """Of each repetition, by load."""
    cost_s: float = 0.0

    def peak(self, of: Sequence[Mapping[float, float]]) -> float:
        """Where the median reading crosses the limit, what does not rise made level; NaN where it does not cross."""
        middle = [math.log(statistics.median(each[load] for each in of)) for load in self.loads]
        risen = np.asarray(isotonic_regression(middle).x)
        above = int(np.searchsorted(risen, 0.0, side="right"))
        if above in (0, len(risen)):
            return math.nan
        share = -risen[above - 1] / (risen[above] - risen[above - 1])
        low, high = np.log(self.loads[above - 1 : above + 1])
        return math.exp(low + share * (high - low))


def tried(task: Task, bench: Bench, load: float, seconds: float) -> tuple[float, float]:
    """A trial's reading and its cost, s."""
    trial = bench.run(TrialRequest(load, seconds, "ladder"), lambda windows: False)
    return slo_ratio_of(task.goal, trial), trial.cost_s


def begun(task: Task, bench: Bench, seconds: float) -> Ladder:
    """From 0.7 times a load that is fine to twice it: one trial of it may have been lucky."""
    load = task.lowest
    while tried(task, bench, 2 * load, seconds)[0] <= 1:
        load *= 2
    loads = [load * LOWEST * (2 / LOWEST) ** (k / (LOADS - 1)) for k in range(LOADS)]
    return Ladder([float(round(each)) for each in loads] if task.whole else loads)


def climb(task: Task, bench: Bench, ladder: Ladder, seconds: float, rng: random.Random) -> None:
    found = {}
    for load in rng.sample(ladder.loads, len(ladder.loads)):
        found[load], cost_s = tried(task, bench, load, seconds)
        ladder.cost_s += cost_s
    ladder.readings.append(found)


@contextmanager
def disturbing(rng: random.Random) -> Iterator[None]:
    """Meanwhile a busy loop in the server's control group, at random instants."""
    over = threading.Event()

    def disturb() -> None:
        while not over.wait(rng.expovariate(1 / GAP_S)):
            with subprocess.Popen(BUSY) as busy:
                over.wait(rng.uniform(*LASTS_S))
                busy.terminate()

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def searched(task: Task, bench: Bench) -> tuple[Answer, list[Trial]]:
    made: list[Trial] = []
    answer = search(Posterior(), task, bench, (), lambda _, trial: made.append(trial))
    for trial in made:
        ratio = slo_ratio_of(task.goal, trial)
        print(f"  {trial.load:8.1f} {ratio:7.2f} {trial.ran_s:5.1f} s", file=sys.stderr)
    print(f"  {answer}", file=sys.stderr)
    return answer, made


def one(name: str, seconds: float, rehearsals: int) -> str:
    file, factors = SERVERS[name]
    harness = read_harness(EXAMPLES / "peak" / f"{file}.toml")
    task, rng = harness.task, random.Random(name)
    with (
        tempfile.TemporaryDirectory(prefix="real-", dir="/tmp") as place,
        harness.bench({**HELD, **factors}, Path(place)) as bench,
    ):
        ladder = begun(task, bench, seconds)
        climb(task, bench, ladder, seconds, rng)
        quiet, made = searched(task, bench)
        climb(task, bench, ladder, seconds, rng)
        with disturbing(rng):
            disturbed, _ = searched(task, bench)
        climb(task, bench, ladder, seconds, rng)
    peak = ladder.peak(ladder.readings)
    alone = " / ".join(f"{ladder.peak([each]):.4g}" for each in ladder.readings)
    row = [name, f"{peak:.4g}", alone, *told(quiet, peak), *told(disturbed, peak)]
    cost_s = benchmarking_time_s(made)
    row += [f"{ladder.cost_s:.0f} s", f"{cost_s:.0f} s"]
    if rehearsals:
        rehearsed_s = rehearsed(task, made, quiet.rate or peak, rehearsals)
        row += [f"{rehearsed_s:.0f} s", f"{rehearsed_s / cost_s:.2f}"]
    return cells(row)


def told(answer: Answer, peak: float) -> tuple[str, str, str]:
    """Of a search: its rate and interval, how far off, and whether it says that it met its target."""
    if answer.rate is None:
        return f"– ({answer.low:.4g}–{answer.high:.4g})", "–", "no"
    kinds = ", ".join(finding.kind for finding in answer.findings)
    met = ("yes" if answer.kept else "no") + (f", {kinds}" if kinds else "")
    return f"{answer.rate:.4g} ({answer.low:.4g}–{answer.high:.4g})", f"{answer.rate / peak:.2f}", met


def rehearsed(task: Task, made: Sequence[Trial], rate: float, searches: int) -> float:
    """Median benchmarking time, s, with the costs and the noise that trials had."""
    place = bench_model_like(task, made, rate)
    print(f"  {place}", file=sys.stderr)
    curves = [CURVES[name] for name in ("mm1", "mmc", "knee", "ramp")]
    return 3600 * rehearse(Posterior(), task, curves, max(searches // 4, 1), 1, place=place).hours(0.5)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--servers", default=",".join(SERVERS), help="by commas (default: all five)")
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="of a ladder's trial (default %(default)g)"
    )
    parser.add_argument("--rehearsals", type=int, default=0, help="of a server (default: none)")
    given = parser.parse_args()
    heading = HEADING + HEADING_COST[: 4 if given.rehearsals else 2]
    print(*table(heading, ())[:2], sep="\n")
    for name in names(parser, "servers", given.servers, SERVERS):
        print(one(name, given.seconds, given.rehearsals), flush=True)


if __name__ == "__main__":
    main()
