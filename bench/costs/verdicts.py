"""False differences between identical commands, and the time to a verdict, beside hyperfine and a plain script."""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
import time
from pathlib import Path

from costs.reading import results
from rows import BUILD, ETUDE, ROOT, Row, at_most, interleave, printed, progress, ratios, spread, wall_s

COMPARISONS = 40
TEXT_BYTES = 1_400_000
MOST_FALSE = 5
SIZES = (10**4, 10**5, 10**6)
MOST_S = {10**4: 1.0, 10**6: 10.0}
PEER = """
import json, statistics, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
values = [row["metrics"]["elapsed"][0] for row in rows if row["kept"]]
print(statistics.fmean(values), statistics.stdev(values))
"""


def text_file() -> str:
    """A file of 1.4 MB of this repository's own text."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / "text"
    if not path.exists() or path.stat().st_size != TEXT_BYTES:
        text = b"".join(p.read_bytes() for p in sorted((ROOT / "src").rglob("*.py")))
        path.write_bytes((text * (TEXT_BYTES // len(text) + 1))[:TEXT_BYTES])
    return str(path)


def etude_differs(command: str, seed: int) -> tuple[bool, float]:
    """Whether Étude's interval excludes 1 for a command against itself, and its wall time, s."""
    with tempfile.TemporaryDirectory() as directory:
        words = [
            "--json",
            "--seed",
            str(seed),
            "-o",
            f"{directory}/r",
            "-n",
            "A",
            command,
            "-n",
            "B",
            command,
        ]
        start = time.perf_counter()
        found = printed(ETUDE, "bench", *words)
        took_s = time.perf_counter() - start
    return bool(json.loads(found)["comparisons"][0]["differs"]), took_s


def hyperfine_differs(command: str) -> tuple[bool, float]:
    """Whether |t| > 2 (Welch) between the two blocks of hyperfine runs of a command, and its wall time, s."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "out.json"
        took_s = wall_s(
            ["hyperfine", "-N", "--style", "none", "--export-json", str(path), command, command + " "]
        )
        a, b = json.loads(path.read_text())["results"]
    error = math.sqrt(a["stddev"] ** 2 / len(a["times"]) + b["stddev"] ** 2 / len(b["times"]))
    return abs(a["mean"] - b["mean"]) > 2 * error, took_s


def verdicts(comparisons: int) -> list[Row]:
    """`gzip -5` against `gzip -5`: how often a difference is found that is not there, and how long it takes."""
    command = f"gzip -5 -c {text_file()}"
    generator = random.Random(2)
    found: dict[str, list[tuple[bool, float]]] = {"etude": [], "hyperfine": []}
    for number in range(comparisons):
        for name in generator.sample(list(found), 2):
            result = etude_differs(command, number) if name == "etude" else hyperfine_differs(command)
            found[name].append(result)
        progress(f"{number + 1}/{comparisons} comparisons")
    progress("")
    ours, theirs = (sum(differs for differs, _ in found[name]) for name in ("etude", "hyperfine"))
    times = ratios(*([took_s for _, took_s in found[name]] for name in ("etude", "hyperfine")))
    most = round(MOST_FALSE * comparisons / COMPARISONS)
    what = f"gzip -5 against itself: false differences in {comparisons}"
    return [
        Row(what, f"hyperfine, blocked, |t| > 2: {theirs}", str(ours), f"≤ {most}", ours <= most),
        at_most("the same: time to the verdict", "hyperfine", times, 2),
    ]


def verdict_time(rounds: int) -> list[Row]:
    """`etude stats` of one test with more and more stored trials (1.2 GB at most), and how its time grows."""
    parties = {}
    sizes = SIZES if rounds > 1 else SIZES[:2]
    for size in sizes:
        directory = results(BUILD / f"verdict-{size}", 1, size)
        file = str(directory / "configuration-0" / "results.jsonl")
        parties[f"etude {size}"] = lambda d=str(directory): wall_s([ETUDE, "stats", d])
        parties[f"peer {size}"] = lambda f=file: wall_s([sys.executable, "-c", PEER, f])
    found = interleave(parties, rounds + 1)
    rows = []
    for size in sizes:
        ours, theirs = found[f"etude {size}"], found[f"peer {size}"]
        took, most = spread(ours), MOST_S.get(size)
        base = f"json.loads of each line, mean and deviation: {spread(theirs)} s"
        reach = (f"≤ {most:g} s", took.median <= most) if most else ("–", None)
        rows.append(
            Row(f"etude stats, {size:,} stored trials", base, f"{took} s, {ratios(ours, theirs)} ×", *reach)
        )
    if len(sizes) > 2:
        growth = ratios(found[f"etude {SIZES[2]}"], found[f"etude {SIZES[1]}"])
        rows.append(at_most("the same: 10 × as many trials", "10^5 trials", growth, 10))
    return rows
