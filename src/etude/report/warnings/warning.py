"""A warning, its kinds, and which of them matter most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Warning:
    """One thing that speaks against a result, and what to do about it."""

    kind: str
    """One of KINDS."""
    rank: int
    """Lower is more important."""
    test: str
    """Empty where it is about the whole experiment."""
    metric: str
    """Empty where it is about no single one."""
    text: str
    """What was found, with figures; no full stop."""
    advice: str
    """What to do, a short clause; empty where the text says it."""
    trials: tuple[int, ...] = ()
    """Numbers of the trials that it speaks of, all of them; empty where it is about none in particular."""
    numbers: Mapping[str, float | str] = field(default_factory=dict, hash=False)
    """The figures of `text` by name, from which shorter words are made (report/note_text.py): values are in `unit`."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.test, self.text, self.advice) if part)


KINDS: Mapping[str, str] = {
    "different-work": "the compared commands did not end alike, or printed something else",
    "no-match": "a METRIC found no number in any trial",
    "mixed-failures": "trials failed in more than one way",
    "failed": "trials failed, all in one way",
    "caches": "caches were not as the test declares",
    "several-matches": "a METRIC found several values in one output, and the first counts",
    "machine-changed": "the machine was another before than after, or in another sitting",
    "several-machines": "trials were made on several machines",
    "machine-apart": "a machine gives another level than its peers",
    "kernel": "the kernel complained during trials, or slowed the CPUs down",
    "shell": "the time cannot be told from the start of the shell that is subtracted",
    "others": "other processes used the CPUs during trials, as the probe of that name saw",
    "busy": "the machine was busy when the experiment began",
    "all-equal": "all values are one and the same",
    "too-short": "a trial lasts so few ticks of its clock that it is not known within 1 %",
    "leak": "free memory falls from trial to trial",
    "never-steady": "values still rise or fall when the first and last trials are left out",
    "drift": "values rise or fall over the series",
    "warm-up": "the first trials lie on another level",
    "late-level": "the last trials lie on another level",
    "not-converged": "the precision that was asked for was not reached",
    "not-normal": "values are so skewed that the interval of the mean cannot be relied on",
    "too-few": "there are too few trials, or none with a value",
    "missing-values": "some of the kept trials have no value",
    "against-itself": "the reference differs from itself",
    "bimodal": "values fall into two groups",
    "autocorrelated": "neighbouring trials resemble each other",
    "memory-cliff": "a trial's data are about as large as the memory",
    "note": "something was left out on reading, or happened while measuring",
    "coarse-clock": "the step that values are counted in is as large as their spread",
    "outliers": "a few values lie far from the others",
    "heavy-tail": "many values lie far from the others",
    "outlier-explained": "what the monitor saw during a trial that lies far from the others",
    "set-aside": "trials were not kept, and not because they failed",
}
"""What each kind means, the most important first; docs/warnings.md has more."""

RANKS: Mapping[str, int] = {
    "different-work": 0,
    "no-match": 1,
    "mixed-failures": 2,
    "failed": 3,
    "caches": 4,
    "several-matches": 5,
    "machine-changed": 6,
    "several-machines": 7,
    "machine-apart": 8,
    "kernel": 9,
    "shell": 10,
    "others": 11,
    "busy": 12,
    "all-equal": 13,
    "too-short": 14,
    "leak": 18,
    "never-steady": 20,
    "drift": 22,
    "warm-up": 24,
    "late-level": 26,
    "not-converged": 30,
    "not-normal": 32,
    "too-few": 34,
    "missing-values": 36,
    "against-itself": 40,
    "bimodal": 42,
    "autocorrelated": 44,
    "memory-cliff": 46,
    "note": 50,
    "coarse-clock": 52,
    "outliers": 54,
    "heavy-tail": 55,
    "outlier-explained": 56,
    "set-aside": 60,
}


def warning(
    kind: str,
    test: str,
    metric: str,
    text: str,
    advice: str,
    trials: Iterable[int] = (),
    **numbers: float | str,
) -> Warning:
    """A warning with the rank of its kind."""
    return Warning(kind, RANKS[kind], test, metric, text, advice, tuple(map(int, trials)), numbers)
