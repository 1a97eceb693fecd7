"""False differences between identical commands, and the time to a verdict, beside hyperfine."""

from __future__ import annotations

import json
import math
import random
import subprocess
import tempfile
import time
from pathlib import Path

from rows import BUILD, ETUDE, ROOT, Row, progress, ratios

COMPARISONS = 40
TEXT_BYTES = 1_400_000
MOST_FALSE = 5


def text_file() -> str:
    """A file of 1.4 MB of this repository's own text."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / "text"
    if not path.exists() or path.stat().st_size != TEXT_BYTES:
        files = sorted(p for p in (ROOT / "src").rglob("*.py"))
        text = b"".join(p.read_bytes() for p in files)
        path.write_bytes((text * (TEXT_BYTES // len(text) + 1))[:TEXT_BYTES])
    return str(path)


def etude_differs(command: str, seed: int, *options: str) -> tuple[bool, float]:
    """Whether Étude's interval excludes 1 for a command against itself, and its wall time."""
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        out = subprocess.run(
            [
                ETUDE,
                "bench",
                "--json",
                "--seed",
                str(seed),
                "-o",
                f"{directory}/r",
                *options,
                "-n",
                "A",
                command,
                "-n",
                "B",
                command,
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        wall = time.perf_counter() - start
    return bool(json.loads(out.stdout)["comparisons"][0]["differs"]), wall


def hyperfine_differs(command: str) -> tuple[bool, float]:
    """Whether |t| > 2 (Welch) between the two blocks of hyperfine runs of a command, and its wall time."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "out.json"
        start = time.perf_counter()
        subprocess.run(
            ["hyperfine", "-N", "--style", "none", "--export-json", str(path), command, command + " "],
            check=True,
            capture_output=True,
        )
        wall = time.perf_counter() - start
        a, b = json.loads(path.read_text())["results"]
    error = math.sqrt(a["stddev"] ** 2 / len(a["times"]) + b["stddev"] ** 2 / len(b["times"]))
    return abs(a["mean"] - b["mean"]) > 2 * error, wall


def verdicts(comparisons: int) -> list[Row]:
    """`gzip -5` against `gzip -5`: how often a difference is found that is not there, and how long it takes."""
    command = f"gzip -5 -c {text_file()}"
    generator = random.Random(2)
    found: dict[str, list[tuple[bool, float]]] = {"etude": [], "hyperfine": []}
    for number in range(comparisons):
        order = ["etude", "hyperfine"]
        generator.shuffle(order)
        for name in order:
            result = etude_differs(command, number) if name == "etude" else hyperfine_differs(command)
            found[name].append(result)
        progress(f"{number + 1}/{comparisons} comparisons")
    progress("")
    false = {name: sum(differs for differs, _ in results) for name, results in found.items()}
    times = ratios(*([wall for _, wall in found[name]] for name in ("etude", "hyperfine")))
    most = round(MOST_FALSE * comparisons / COMPARISONS)
    return [
        Row(
            f"gzip -5 against itself: false differences in {comparisons}",
            f"hyperfine, blocked, |t| > 2: {false['hyperfine']}",
            str(false["etude"]),
            f"≤ {most}",
            false["etude"] <= most,
        ),
        Row("the same: time to the verdict", "hyperfine", f"{times} ×", "≤ 2 ×", times.median <= 2),
    ]
