"""Results as `etude bench` writes them, as many as are asked for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

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
