"""What a check is given, and what it returns."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Verdict = Literal["good", "noisy", "unknown"]

NOTHING_TO_DO = "nothing to do"


@dataclass(frozen=True)
class Finding:
    name: str
    state: str
    verdict: Verdict
    meaning: str  # one sentence: what it does to numbers
    advice: str  # one line: what to do about it


@dataclass(frozen=True)
class Reading:
    """Counters of the machine at one moment."""

    cpu_ticks: tuple[int, ...] = ()  # of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal
    cpus: int = 1
    swapped_pages: int = 0  # in and out, since boot
    process_ticks: dict[int, tuple[str, int]] = field(default_factory=dict)  # pid: name, ticks used


@dataclass(frozen=True)
class Machine:
    """Where checks look: below `root`, at the directory in use, and at two readings a moment apart."""

    root: Path
    directory: Path
    before: Reading
    after: Reading
    privileged: bool = False
