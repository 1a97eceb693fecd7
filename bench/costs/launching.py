"""What it costs to launch /bin/true by `etude bench`, beside bare loops in C and hyperfine."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from rows import (
    Row,
    at_most,
    benched,
    etude_bench_s,
    interleave,
    peer,
    printed,
    ratios,
    shown,
    spread,
    wall_s,
)

MANY, FEW = 2010, 10
PROGRAM = "/bin/true"
UNREACHED = ("--precision", "0.001%", "--time", "1h", "--max-trials")


def stored(directory: Path) -> list[dict[str, Any]]:
    """The rows of /bin/true in a results directory."""
    lines = (directory / "true" / "results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def per_launch_s(*options: str) -> float:
    """A call with many trials less one with few, per trial."""
    many, few = (etude_bench_s("--trials", str(n), *options, PROGRAM) for n in (MANY, FEW))
    return (many - few) / (MANY - FEW)


def between_starts_s() -> float:
    """From the start of one trial to that of the next: what the engine does, without the verdict behind it."""
    with benched("--trials", str(MANY), "-n", "true", PROGRAM) as directory:
        starts = [row["start_ns"] for row in stored(directory)[-MANY:]]
    return float(starts[-1] - starts[0]) / 1e9 / (MANY - 1)


def hyperfine_s(runs: int) -> float:
    """Wall time of one hyperfine call without a shell."""
    return wall_s(["hyperfine", "-N", "--style", "none", "--runs", str(runs), PROGRAM])


def loop() -> dict[str, float]:
    """The bare loop's own figures per launch, in seconds: `median`, `mean`, and `total` with all that is around."""
    found = re.findall(r"(median|mean|total) ([\d.]+)", printed(peer("spawn_loop"), str(MANY - FEW), PROGRAM))
    return {name: float(value) / 1e6 for name, value in found}


def launching(rounds: int) -> list[Row]:
    """Étude against the bare loop and hyperfine, and against itself without cgroup and counters."""
    parties = {
        "etude": per_launch_s,
        "loop": lambda: loop()["total"],
        "hyperfine": lambda: (hyperfine_s(MANY) - hyperfine_s(FEW)) / (MANY - FEW),
        "between starts": between_starts_s,
        "no monitor": lambda: per_launch_s("--monitor", "off"),
        "no cgroup": lambda: per_launch_s("--no-cgroup"),
        "counters": lambda: per_launch_s("--counters", "on"),
    }
    found = interleave(parties, rounds)
    base = spread([1e6 * s for s in found["loop"]])
    starts_ratio = ratios(found["between starts"], found["loop"])
    monitor, cgroup, counters = (
        f"{spread([1e6 * (a - b) for a, b in zip(found[with_it], found[without], strict=True)])} µs"
        for with_it, without in (("etude", "no monitor"), ("etude", "no cgroup"), ("counters", "etude"))
    )
    what = f"launching {PROGRAM}, {MANY} trials less {FEW}"
    return [
        at_most(what, f"bare loop, {base} µs", ratios(found["etude"], found["loop"]), 1.05),
        at_most(what, "hyperfine -N", ratios(found["etude"], found["hyperfine"]), 1),
        shown("the same, from start to start in the engine", "bare loop", f"{starts_ratio} ×"),
        shown("monitor, cost per launch", "--monitor off", monitor),
        shown("cgroup, cost per launch", "--no-cgroup", cgroup),
        shown("--counters on, cost per launch", "auto", counters),
    ]


def reported(rounds: int) -> list[Row]:
    """Median reported elapsed against the median of the loop's own stamps."""

    def etude_median() -> float:
        with benched("--trials", "500", "-n", "true", PROGRAM) as directory:
            return spread([row["metrics"]["elapsed"][0] for row in stored(directory) if row["kept"]]).median

    found = interleave({"etude": etude_median, "loop": lambda: loop()["median"]}, rounds)
    ratio = ratios(found["etude"], found["loop"])
    what, within = "reported elapsed of /bin/true, median", abs(ratio.median - 1) <= 0.05
    return [Row(what, "bare loop's stamps", f"{ratio} ×", "within 5 %", within)]


def spans_us(workers: int, trials: int) -> list[float]:
    """From the first to the last worker's own start stamp, of each trial behind the barrier, µs."""
    starts: dict[int, list[int]] = {}
    with benched("--trials", str(trials), "--workers", str(workers), "-n", "true", PROGRAM) as directory:
        for row in stored(directory):
            if row["kept"]:
                starts.setdefault(row["trial"], []).append(row["start_ns"])
    return [(max(found) - min(found)) / 1000 for found in starts.values()]


def barrier(_: int) -> list[Row]:
    """As many workers as cores, which must start together; and 64, which cannot; beside forks without a barrier."""
    rows = []
    cores = len(os.sched_getaffinity(0))
    for workers, trials, reach in ((cores, 200, 100.0), (64, 50, None)):
        ours = sorted(spans_us(workers, trials))
        median, p90 = (ours[min(len(ours) - 1, int(share * len(ours)))] for share in (0.5, 0.9))
        peers = re.findall(
            r"p\d+ ([\d.]+)", printed(peer("fork_loop"), str(workers), str(len(ours)), PROGRAM)
        )
        what = f"first to last start of {workers} workers, p50 / p90"
        base, value = f"forks without a barrier: {' / '.join(peers)} µs", f"{median:.1f} / {p90:.1f} µs"
        judged = ("≤ 100 µs at p90", p90 <= reach) if reach else ("–", None)
        rows.append(Row(what, base, value, *judged))
    return rows


def deciding(rounds: int) -> list[Row]:
    """What a stop rule costs while trials run: a precision that is never reached, beside a fixed number of trials.

    A rule that looks at all trials after each would be quadratic: 29 s instead of 8 s for 6,600 trials.
    """
    trials = 6600 if rounds > 2 else 600
    parties = {
        "rule": lambda: etude_bench_s(*UNREACHED, str(trials), PROGRAM),
        "twice": lambda: etude_bench_s(*UNREACHED, str(2 * trials), PROGRAM),
        "fixed": lambda: etude_bench_s("--trials", str(trials), PROGRAM),
        "hyperfine": lambda: hyperfine_s(trials),
    }
    found = interleave(parties, rounds)
    what = f"{trials:,} trials of {PROGRAM} by --precision, with the verdict"
    fixed = f"--trials {trials}: {spread(found['fixed'])} s"
    twice = ratios(found["twice"], found["rule"])
    return [
        at_most(what, fixed, ratios(found["rule"], found["fixed"]), 1.1),
        shown(what, "hyperfine -N --runs", f"{ratios(found['rule'], found['hyperfine'])} ×"),
        at_most("the same: twice as many trials", f"{trials:,}", twice, 2.1),
    ]
