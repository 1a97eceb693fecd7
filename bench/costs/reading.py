"""Reading and summarising many results beside pandas, and how soon small ones are answered.

pandas is no dependency of Étude: it is installed into an environment of this benchmark's own, below build/.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

import numpy as np

from costs.launching import loop
from costs.made import results
from rows import BUILD, ETUDE, ROOT, Row, at_most, interleave, printed, ratios, spread, wall_s

PINNED = ("pandas==2.3.3", "scipy==1.17.1", "numpy==2.4.6")
OURS = (sys.executable, str(ROOT / "bench" / "peers" / "etude_summary.py"))
TESTS, LINES = 1000, 1000
JUDGED = ("elapsed", "user", "system")
PREDICATE = "$delta < 0.05 * $mean"


def pandas() -> str:
    """The Python of an environment that has pandas; made at the first use."""
    place = BUILD / "pandas-venv"
    python = place / "bin" / "python"
    stamp = place / "pinned"
    if not stamp.exists() or stamp.read_text() != " ".join(PINNED):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINNED]
        subprocess.run(install, check=True)
        stamp.write_text(" ".join(PINNED))
    return str(python)


def summarised(command: tuple[str, ...], memory: list[float]) -> float:
    """Seconds that a summary takes; its largest memory in MiB is appended to `memory`."""
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, text=True)
    took = time.perf_counter() - start
    memory.append(int(done.stderr.splitlines()[-1]) / 1024)
    return took


def reading(rounds: int) -> list[Row]:
    """10^6 lines of 10^3 tests: the faster of two pandas scripts, and ours."""
    directory = str(results(BUILD / f"lines-{TESTS}x{LINES}", TESTS, LINES))
    script, python = str(ROOT / "bench" / "peers" / "pandas_summary.py"), pandas()
    commands = {"etude": (*OURS, directory)}
    commands |= {how: (python, script, how, directory) for how in ("rows", "read_json")}
    memory: dict[str, list[float]] = {name: [] for name in commands}
    slow = summarised(commands.pop("read_json"), memory["read_json"])  # once: it takes minutes
    found = interleave(
        {name: lambda c=command, n=name: summarised(c, memory[n]) for name, command in commands.items()},
        rounds,
    )
    best = min(found["rows"])
    peer = f"pandas, json.loads a line: {spread(found['rows'])} s (read_json: {slow:.0f} s)"
    if slow < best:
        raise RuntimeError("pandas' read_json is the faster one now: compare with that")
    faster, less = ratios(found["rows"], found["etude"]), ratios(memory["etude"], memory["rows"])
    what = f"{TESTS * LINES} lines of {TESTS} tests read and summarised"
    return [
        Row(what, peer, f"{faster} × faster: {spread(found['etude'])} s", "≥ 5 ×", faster.median >= 5),
        at_most(
            f"the same: largest memory, {spread(memory['etude'])} MiB",
            f"{spread(memory['rows'])} MiB",
            less,
            0.5,
        ),
    ]


def small(rounds: int) -> list[Row]:
    """`etude stats` on 10 trials, and a predicate as `etude run` judges it."""
    directory = ten_trials()
    parties = {
        "stats": lambda: wall_s([ETUDE, "stats", directory]),
        "scipy": lambda: wall_s([sys.executable, "-c", "import numpy, scipy.stats"]),
        "predicate": judged_s,
        "launch": lambda: loop()["total"],
    }
    found = interleave(parties, rounds)
    start, judge = ratios(found["stats"], found["scipy"]), ratios(found["predicate"], found["launch"])
    took = spread([1e6 * s for s in found["predicate"]])
    what = f"predicate inside etude run, {len(JUDGED)} metrics of 30 trials: {took} µs"
    return [
        at_most("etude stats, 10 trials", "python3 -c 'import numpy, scipy.stats'", start, 1.3),
        at_most(what, "one launch of /bin/true", judge, 0.2),
    ]


def ten_trials() -> str:
    """Results of `etude bench` with 10 trials of one command."""
    directory = BUILD / "ten-trials"
    if not (directory / "experiment.json").exists():
        shutil.rmtree(directory, ignore_errors=True)
        printed(ETUDE, "bench", "--trials", "10", "-o", directory, "true")
    return str(directory)


def judged_s(times: int = 500) -> float:
    """Seconds for one judgement as the stop rule of a script asks for it: from the samples in memory."""
    from etude.script.stop import evaluate_stop_program

    rng = np.random.default_rng(1)
    samples = {metric: rng.normal(1.0, 0.05, 30).tolist() for metric in JUDGED}
    program = ("getstats", "--columns", ",".join(JUDGED), "--predicate", PREDICATE)
    evaluate_stop_program(program, samples.__getitem__, _no_program)  # compiled once a test
    start = time.perf_counter()
    for _ in range(times):
        evaluate_stop_program(program, samples.__getitem__, _no_program)
    return (time.perf_counter() - start) / times


def _no_program(command: object) -> str | None:
    raise RuntimeError(f"{command} was not judged in memory")
