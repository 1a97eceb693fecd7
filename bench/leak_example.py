"""How often the clean twin of the leak example is taken for a leak or a drift, and whether the leak is found.

    python bench/leak_example.py [--clean 20] [--leaks 5] [--wait 120]

It runs the real examples. Memory and time are those of the whole machine, so each experiment waits, for at most so many
seconds, until others have left nine tenths of it idle for a second; what happens from then on counts.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from etude.analysis.verdict import Verdict, verdict
from etude.machine.snapshot import cpu_ticks
from etude.results.reader import load_results
from etude.stats.trend import leak
from rows import ETUDE, ROOT, options, wall_s

EXAMPLE = ROOT / "examples" / "leak"
ALARMS = ("leak", "drift", "never-steady")
QUIET = 0.9


def idle_share(seconds: float = 1.0) -> float:
    """How much of all CPUs is idle in the time to come."""
    before = cpu_ticks(Path("/"))
    time.sleep(seconds)
    after = cpu_ticks(Path("/"))
    spent = [b - a for a, b in zip(before, after, strict=True)]
    return sum(spent[3:5]) / max(1, sum(spent[:8]))


def wait_for_quiet(seconds: float) -> bool:
    """Wait until the machine is idle; False if it never was."""
    until = time.monotonic() + seconds
    while idle_share() < QUIET:
        if time.monotonic() > until:
            return False
    return True


def run(script: str, directory: Path, wait_s: float) -> Verdict:
    if not wait_for_quiet(wait_s):
        print(f"{directory.name}: the machine did not come to rest within {wait_s:g} s", flush=True)
    wall_s([ETUDE, "run", "-o", str(directory), str(EXAMPLE / script)])
    return verdict(load_results(directory))


def alarms(found: Verdict) -> list[str]:
    """Warnings that something changes in the course of the experiment."""
    return [str(warning) for warning in found.warnings if warning.kind in ALARMS]


def clean(count: int, place: Path, wait_s: float) -> Iterator[str]:
    """One line an experiment that was called other than clean, and one with the share."""
    false = 0
    for number in range(1, count + 1):
        told = alarms(run("clean.ap", place / f"clean-{number}", wait_s))
        false += bool(told)
        yield from (f"clean {number} (load {os.getloadavg()[0]:.1f}): {line}" for line in told)
    yield f"{count - false} of {count} clean experiments raised no leak or drift warning"


def leaks(count: int, place: Path, wait_s: float) -> Iterator[str]:
    """One line an experiment: the size that was found; it is 16 MiB a trial."""
    found = 0
    for number in range(1, count + 1):
        told = run("leak.ap", place / f"leak-{number}", wait_s)
        found += any(warning.kind == "leak" for warning in told.warnings)
        size = leak(told.subject.tests[0].sample("memory_obtainable"))
        if size is not None:
            mib = [part / 2**20 for part in (size.bytes_per_trial, size.low, size.high)]
            yield f"leak {number}: {mib[0]:.2f} MiB a trial (95 %: {mib[1]:.2f} to {mib[2]:.2f})"
    yield f"{found} of {count} leaks were named"


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--clean", type=int, default=20)
    parser.add_argument("--leaks", type=int, default=5)
    parser.add_argument("--wait", type=float, default=120.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="etude-leak-") as place:
        found = leaks(given.leaks, Path(place), given.wait)
        for line in chain(found, clean(given.clean, Path(place), given.wait)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
