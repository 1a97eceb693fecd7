"""What it costs to launch /bin/true, and whether the reported elapsed is the true one."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

from rows import ETUDE, Row, interleave, peer, ratios, spread, wall_s

MANY, FEW = 2010, 10
PROGRAM = "/bin/true"


def etude_s(trials: int, *options: str) -> float:
    """Wall time of one `etude bench` call."""
    with tempfile.TemporaryDirectory() as directory:
        return wall_s([ETUDE, "bench", "--trials", str(trials), *options, "-o", f"{directory}/r", PROGRAM])


def per_launch_s(*options: str) -> float:
    """A call with many trials less one with few, per trial."""
    return (etude_s(MANY, *options) - etude_s(FEW, *options)) / (MANY - FEW)


def between_starts_s() -> float:
    """From the start of one trial to that of the next: what the engine does, without the verdict behind it."""
    with tempfile.TemporaryDirectory() as directory:
        wall_s([ETUDE, "bench", "--trials", str(MANY), "-n", "true", "-o", f"{directory}/r", PROGRAM])
        lines = (Path(directory) / "r" / "true" / "results.jsonl").read_text().splitlines()
        starts = [json.loads(line)["start_ns"] for line in lines[-MANY:]]
    return float(starts[-1] - starts[0]) / 1e9 / (MANY - 1)


def hyperfine_s(runs: int) -> float:
    """Wall time of one hyperfine call without a shell."""
    return wall_s(["hyperfine", "-N", "--style", "none", "--runs", str(runs), PROGRAM])


def loop() -> dict[str, float]:
    """The bare loop's own figures per launch, in seconds: `median`, `mean`, and `total` with all that is around."""
    out = subprocess.run(
        [peer("spawn_loop"), str(MANY - FEW), PROGRAM], check=True, capture_output=True, text=True
    )
    return {
        name: float(value) / 1e6 for name, value in re.findall(r"(median|mean|total) ([\d.]+)", out.stdout)
    }


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
    loop_ratio, hyperfine_ratio = (ratios(found["etude"], found[name]) for name in ("loop", "hyperfine"))
    starts_ratio = ratios(found["between starts"], found["loop"])
    monitor, cgroup, counters = (
        spread([1e6 * (a - b) for a, b in zip(found[with_it], found[without], strict=True)])
        for with_it, without in (("etude", "no monitor"), ("etude", "no cgroup"), ("counters", "etude"))
    )
    what = f"launching {PROGRAM}, {MANY} trials less {FEW}"
    return [
        Row(what, f"bare loop, {base} µs", f"{loop_ratio} ×", "≤ 1.05 ×", loop_ratio.median <= 1.05),
        Row(what, "hyperfine -N", f"{hyperfine_ratio} ×", "≤ 1 ×", hyperfine_ratio.median <= 1),
        Row("the same, from start to start in the engine", "bare loop", f"{starts_ratio} ×", "–", None),
        Row("monitor, cost per launch", "--monitor off", f"{monitor} µs", "–", None),
        Row("cgroup, cost per launch", "--no-cgroup", f"{cgroup} µs", "–", None),
        Row("--counters on, cost per launch", "auto", f"{counters} µs", "–", None),
    ]


def reported(rounds: int) -> list[Row]:
    """Median reported elapsed against the median of the loop's own stamps."""

    def etude_median() -> float:
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(
                [ETUDE, "bench", "--trials", "500", "-n", "true", "-o", f"{directory}/r", PROGRAM],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            lines = (Path(directory) / "r" / "true" / "results.jsonl").read_text().splitlines()
            rows = [json.loads(line) for line in lines]
            return spread([row["metrics"]["elapsed"][0] for row in rows if row["kept"]]).median

    found = interleave({"etude": etude_median, "loop": lambda: loop()["median"]}, rounds)
    ratio = ratios(found["etude"], found["loop"])
    return [
        Row(
            "reported elapsed of /bin/true, median",
            "bare loop's stamps",
            f"{ratio} ×",
            "within 5 %",
            abs(ratio.median - 1) <= 0.05,
        )
    ]
