"""Reading and summarising many results beside pandas; and how soon small ones, a first mean or a report are there.

pandas is no dependency of Étude: it is installed into an environment of this benchmark's own, below build/.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from costs.launching import loop
from rows import BUILD, ETUDE, ROOT, Row, at_most, interleave, printed, ratios, spread, wall_s
from support.chromium import chromium

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


MEAN, INTERVAL = re.compile(rb"mean"), re.compile("±.* %".encode())
PAGE_TESTS, PAGE_TRIALS = 50, 200
"""Of the report that is opened."""


def seen_s(pattern: re.Pattern[bytes]) -> float:
    """Seconds until a terminal shows `pattern` during `etude bench true`."""
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(ETUDE, [ETUDE, "bench", "-o", f"{directory}/r", "true"])
        shown, found = b"", None
        while True:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
            if found is None and pattern.search(shown):
                found = time.perf_counter() - start
        os.waitpid(pid, 0)
        os.close(terminal)
    if found is None:
        raise RuntimeError(f"{pattern.pattern!r} was never shown; the terminal saw {shown[-500:]!r}")
    return found


def starting(rounds: int) -> list[Row]:
    """`etude --help`, the first mean and the first interval, each against this interpreter doing nothing."""
    parties = {
        "python": lambda: wall_s([sys.executable, "-c", "pass"]),
        "help": lambda: wall_s([ETUDE, "--help"]),
        "mean": lambda: seen_s(MEAN),
        "interval": lambda: seen_s(INTERVAL),
    }
    found = interleave(parties, rounds)
    return [
        at_most(what, "python3 -c pass", ratios(found[name], found["python"]), limit)
        for name, what, limit in (
            ("help", "etude --help", 5),
            ("mean", "first mean on the screen of etude bench true", 15),
            ("interval", "first interval on that screen", 35),
        )
    ]


def page(tests: int) -> Path:
    """The report of so many tests with 200 measurements each, made anew."""
    directory = results(BUILD / f"opening-{tests}", tests, PAGE_TRIALS)
    printed(ETUDE, "report", directory)
    return directory / "report.html"


def opened_s(file: Path) -> float:
    """Seconds from the navigation, in a browser that has just been started, until the charts in view are drawn.

    It goes to the first test's charts, so that there are some in view.
    """
    with chromium() as browser:
        browser.open(f"{file.as_uri()}#test-1-1")
        browser.until("drawn.has(document.querySelector('#test-1-1 [data-chart=course]'))")
        browser.until("performance.getEntriesByName('charts-drawn').length")
        return float(browser.ask("performance.getEntriesByName('charts-drawn').at(-1).startTime")) / 1000


def opening(rounds: int) -> list[Row]:
    """The page of `etude report` with fifty tests beside one; each opening is one of a new browser."""
    many, one = page(PAGE_TESTS), page(1)
    found = interleave({"many": lambda: opened_s(many), "one": lambda: opened_s(one)}, rounds)
    measured = f"{PAGE_TESTS} tests and {PAGE_TESTS * PAGE_TRIALS:,} measurements"
    what = f"etude report of {measured} opens, charts in view drawn"
    return [at_most(what, "one test", ratios(found["many"], found["one"]), 5)]


BOOT = "e82f5d6f-189f-485d-890d-67f289a77cad"
DAY = datetime(2026, 1, 1, tzinfo=UTC)
LINE = (
    '{"test":"%s","trial":%d,"block":%d,"order":%d,"worker":0,"host":"bench","sitting":1,"boot_id":"%s",'
    '"command":%s,"start":"%s.%09dZ","start_ns":%d,"inner":1,"exit_status":0,"signal":null,"timed_out":false,'
    '"cancelled":false,"error":null,"kept":%s,"why":%s,"metrics":{"elapsed":[%.9g,"s"],"user":[%.6f,"s"],'
    '"system":[%.6f,"s"],"peak_memory":[%d,"B"],"peak_memory_floor":[2088960,"B"],"minor_faults":[%d,"1"],'
    '"major_faults":[0,"1"],"voluntary_switches":[%d,"1"],"involuntary_switches":[%d,"1"],"blocks_in":[0,"1"],'
    '"blocks_out":[0,"1"],"orphans":[0,"1"],"orphans_user":[0.0,"s"],"orphans_system":[0.0,"s"],'
    '"storage_read":[0,"B"],"storage_written":[0,"B"],"tree_cpu":[%.9g,"s"],"tree_peak_memory":[%d,"B"],'
    '"tree_read":[null,"B","cgroup v1 miscounts I/O"],"tree_written":[null,"B","cgroup v1 miscounts I/O"],'
    '"cycles":[null,"1","no such event (ENOENT)"],"instructions":[null,"1","no such event (ENOENT)"],'
    '"cache_misses":[null,"1","no such event (ENOENT)"],"branch_misses":[null,"1","no such event (ENOENT)"]},'
    '"cache":null}\n'
)


def results(directory: Path, tests: int, lines: int) -> Path:
    """A results directory of so many tests with so many lines each; the first of each is excluded. Made once."""
    if (directory / "experiment.json").exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    generator = np.random.default_rng(1)
    names = [f"configuration {number}" for number in range(tests)]
    entries = []
    for number, name in enumerate(names):
        entry = {"name": name, "directory": f"configuration-{number}", "role": "test", "parameters": {}}
        entries.append(entry | {"workers": 1})
        place = directory / f"configuration-{number}"
        place.mkdir(parents=True)
        with open(place / "results.jsonl", "w", encoding="utf-8") as file:
            file.writelines(_lines(generator, number, name, lines, tests))
    document = {
        "format": "etude-experiment",
        "version": 1,
        "name": "made",
        "plan": {"kind": "script", "primary": "elapsed"},
        "tests": entries,
        "sittings": [{"sitting": 1, "boot_id": BOOT, "host": "bench", "start": "", "end": None}],
    }
    (directory / "experiment.json").write_text(json.dumps(document))
    return directory


def _lines(rng: np.random.Generator, number: int, name: str, lines: int, tests: int) -> Iterator[str]:
    """Log-normal times around those of the test; the sum of user and system near elapsed, as on an idle machine."""
    command = json.dumps(
        ["sort", "--parallel=1", "-o", "/dev/null", f"words-{number}.txt"], separators=(",", ":")
    )
    elapsed = 0.05 * (1 + number / tests) * rng.lognormal(0.0, 0.05, lines)
    user, system = 0.8 * elapsed, 0.15 * elapsed
    memory = 4096 * rng.integers(2000, 2100, lines)
    faults, waits, preempted = (
        rng.integers(400, 450, lines),
        rng.integers(1, 9, lines),
        rng.integers(0, 3, lines),
    )
    order = rng.integers(0, tests, lines)
    for i in range(lines):
        ns = 81_000_000_000 + (i * tests + int(order[i])) * 60_000_000
        day, rest = divmod(ns, 1_000_000_000)
        kept, why = ("true", "null") if i else ("false", '"first run"')
        yield LINE % (
            *(name, i, i, order[i], BOOT, command, _day(day), rest, ns, kept, why),
            *(elapsed[i], user[i], system[i], memory[i], faults[i], waits[i], preempted[i]),
            *(user[i] + system[i], memory[i] - 4096),
        )


def _day(second: int) -> str:
    return (DAY + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")
