"""The progress of a sweep: many tests, so one line for all of them, between trials only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from etude.experiment.bench import Event
from etude.experiment.progress import Progress
from etude.present.terminal import Terminal
from etude.units.formatting import duration

REDRAW_S = 0.2
LINE_EVERY_S = 5.0


class SweepDisplay:
    """How many blocks are done, which size runs, and how long the rest takes."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._screen = Terminal(stream)
        self._every = REDRAW_S if self._screen.obeys else LINE_EVERY_S
        self._shown_at = self._started = clock()
        self._tests: list[str] = []
        self._before = self._all = 0

    def observe(self, event: Event, ledger: Progress) -> None:
        """Take note of an event; redraw when it is time."""
        if event.what == "group":
            self._started = self._clock()
            self._tests = [test.name for test in event.tests]
            self._before = sum(map(ledger.kept, self._tests))
            self._all = event.done * len(self._tests)
        elif event.what == "resumed":
            self._screen.say(f"resumed: {event.detail}")
        now = self._clock()
        if event.what == "trial" and now - self._shown_at >= self._every:
            self._shown_at = now
            (self._screen.draw if self._screen.obeys else self._screen.say)(self._line(event, ledger, now))

    def figures(self) -> None:
        """All trials are done: they are judged, and figures drawn, which may take seconds."""
        if self._screen.obeys:
            self._screen.draw("judging the trials and drawing figures …")

    def close(self) -> None:
        """Take the moving line away; what follows is the table."""
        if self._screen.obeys:
            self._screen.draw()

    def _line(self, event: Event, ledger: Progress, now: float) -> str:
        done = sum(map(ledger.kept, self._tests))
        name = event.tests[0].name
        if done == self._before:
            self._started = now
            return f"first runs, excluded: {name}"
        left = (now - self._started) / (done - self._before) * max(0, self._all - done)
        share = f"{done} of {self._all} trials ({100 * done // max(self._all, 1)} %)"
        return " · ".join((share, f"about {duration(left)} left", name))
