"""How another machine's monotonic clock stands to ours (Cristian 1989: the quickest of several questions)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

ROUNDS = 16


@dataclass(frozen=True)
class Offset:
    """Their clock minus ours, ns, and by how much that may be wrong: half the round trip, whatever the delays."""

    offset_ns: int = 0
    error_ns: int = 0

    def theirs(self, ours_ns: int) -> int:
        """An instant of our clock on theirs."""
        return ours_ns + self.offset_ns

    def ours(self, theirs_ns: int) -> int:
        """An instant of their clock on ours."""
        return theirs_ns - self.offset_ns


def measure_offset(
    ask: Callable[[], int], rounds: int = ROUNDS, clock: Callable[[], int] = time.monotonic_ns
) -> Offset:
    """The offset of a clock that `ask` reads, ns: of the question that was answered soonest.

    They read it at some moment between question and answer: taking the middle errs by half the round trip at most.
    """
    found = []
    for _ in range(rounds):
        asked = clock()
        theirs = ask()
        answered = clock()
        error = (answered - asked + 1) // 2
        found.append(Offset(theirs - (asked + answered) // 2, error))
    return min(found, key=lambda offset: offset.error_ns)
