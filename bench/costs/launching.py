"""What trials cost: launching /bin/true beside bare loops in C and hyperfine, and through a script."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from rows import (
    ETUDE,
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


TRIALS = 1000
SCRIPT = """\
VAR RULE=10 1 getstats --predicate '("$delta" < 0.05 * $mean) || ($count > 30)'
FOREACH FS ext2 ext3 ext4 xfs btrfs f2fs jfs nilfs2 udf reiserfs
  FOR N=1 TO 1000
    THREADS=4
    TEST %FS%:%N%:%THREADS% %RULE%
      SETUP fs-setup.sh %FS%
      EXEC postmark.sh
      CLEANUP fs-cleanup.sh %FS%
    DONE
  DONE
DONE
"""
CHECK = """
import json, sys, time
from etude.cli.measure.run import _told
from etude.script.run import read_script
import etude.stats.predicate, etude.stats.expression, etude.analysis.getstats.options

def check():
    start = time.perf_counter()
    text = _told(read_script(sys.argv[1]).dry_run(), sys.argv[1])
    return time.perf_counter() - start, text

def split():
    start = time.perf_counter()
    with open(sys.argv[2]) as file:
        lines = [line.split() for line in file.read().splitlines()]
    return time.perf_counter() - start

seconds, text = check()
if not sys.argv[3:]:
    lines = []
    for test in read_script(sys.argv[1]).dry_run().tests:
        rule = " ".join(test.program)
        lines += [f"TEST {test.name} {test.minimum} {test.step} {rule}"]
        lines += [f"{directive} {line}" for directive, line in test.lines] + ["DONE"]
    open(sys.argv[2], "w").write("\\n".join(lines))
else:
    print(json.dumps({"check": min(seconds, check()[0]), "split": min(split() for _ in range(5))}))
"""


def scripts(rounds: int) -> list[Row]:
    """Whole commands, engine's own repetition off on both sides; then --check of a script of 10,000 tests."""
    return [
        _trials("/bin/true", TRIALS, rounds, 1.5),
        _trials("sleep 0.01", TRIALS, max(2, rounds // 2), 1.03),
        _check(rounds),
    ]


def _trials(command: str, trials: int, rounds: int, limit: float) -> Row:
    with tempfile.TemporaryDirectory() as scratch:
        script = Path(scratch) / "trials.ap"
        script.write_text(f"TEST trials {trials}\nEXEC {command}\nDONE\n")
        count = iter(range(10**6))

        def run() -> float:
            return wall_s([ETUDE, "run", "-o", f"{scratch}/{next(count)}", str(script)])

        def bench() -> float:
            fixed = ["--min-trials", str(trials), "--max-trials", str(trials), "--time", "1h"]
            return wall_s([ETUDE, "bench", "-o", f"{scratch}/{next(count)}", *fixed, command])

        found = interleave({"run": run, "bench": bench}, rounds)
    what = f"{trials:,} trials of {command} through a script"
    return at_most(what, "through etude bench", ratios(found["run"], found["bench"]), limit)


def _check(rounds: int) -> Row:
    with tempfile.TemporaryDirectory() as scratch:
        script, expanded = Path(scratch) / "many.ap", Path(scratch) / "expanded.ap"
        script.write_text(SCRIPT)
        program = [sys.executable, "-c", CHECK, str(script), str(expanded)]
        printed(*program)
        found = [json.loads(printed(*program, "go")) for _ in range(max(rounds, 3))]
    ratio = ratios([f["check"] for f in found], [f["split"] for f in found])
    what = "--check of a script that expands to 10,000 tests"
    return at_most(what, "reading and splitting its expanded text", ratio, 20)
