"""The live display: what is known so far, between trials only, so that it never runs beside a measured command."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TextIO

from etude.escaping import unescaped
from etude.experiment.bench import Event, NamedTest
from etude.experiment.progress import Progress
from etude.present.progress.script import mean_so_far
from etude.present.table_layout import cells_of, shortened
from etude.present.terminal import USUAL_WIDTH, Terminal
from etude.units.formatting import counted, duration, quantity

REDRAW_S = 0.2
LINE_EVERY_S = 3.0


class Display:
    """Shows an experiment's progress on a terminal, or as one line every few seconds elsewhere."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._screen = Terminal(stream)
        self._terminal = self._screen.obeys
        self._tests: tuple[NamedTest, ...] = ()
        self._metric = "elapsed"
        self._minimum = 0
        self._shown_at = -float("inf") if self._terminal else clock()
        self._started = clock()
        self._why = ""
        self._live: Any = None
        self._plain = False

    def observe(self, event: Event, ledger: Progress) -> None:
        """Take note of an event; redraw when it is time."""
        if event.what == "group":
            self._tests, self._minimum, self._metric, self._why = event.tests, event.done, event.metric, ""
            return
        if event.what == "decision":
            self._why = event.detail
        elif event.what == "resumed":
            self._screen.say(f"resumed: {event.detail}")
        kept = any(ledger.kept(test.name) for test in self._tests)
        now = self._clock()
        if kept and not self._plain and self._terminal:
            self._first(ledger)
        elif now - self._shown_at >= (REDRAW_S if self._terminal else LINE_EVERY_S):
            self._show(event, ledger)
            self._shown_at = now

    def close(self) -> None:
        """Take the display away; what follows is the verdict."""
        if self._live is not None:
            self._live.stop()
        elif self._terminal:
            self._screen.draw()

    def _first(self, ledger: Progress) -> None:
        """The first mean at once, before the libraries for anything more are loaded."""
        test = next(test for test in self._tests if ledger.kept(test.name))
        values = ledger.sample(test.name, "elapsed")
        self._plain = True
        mean = (
            f"mean {quantity(sum(values) / len(values), 's')} ({len(values)} trial{'s' * (len(values) > 1)})"
        )
        (name,) = shortened([self._screen.shown(test.name)], max(8, self._room(mean)))
        self._screen.draw(f"{name}: {mean}")

    def _show(self, event: Event, ledger: Progress) -> None:
        if not self._terminal:
            self._screen.say(self._line(event, ledger))
            self._stream.flush()
            return
        if not any(ledger.kept(test.name) for test in self._tests):
            self._screen.draw(self._doing(event))
            return
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._screen.draw()
            console = Console(
                file=unescaped(self._stream),
                width=self._screen.width,
                highlight=False,
                markup=False,
                emoji=False,
            )
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._table(event, ledger), refresh=True)

    def _doing(self, event: Event) -> str:
        names = ", ".join(test.name for test in event.tests)
        return f"{ {'set-aside': 'first run of', 'hook': event.detail + ' of'}.get(event.what, 'running') } {names} …"

    def _line(self, event: Event, ledger: Progress) -> str:
        states = "; ".join(f"{test.name}: {self._state(ledger, test, event)}" for test in self._tests)
        return f"{self._clock() - self._started:.0f} s: {states}{'; ' + self._why if self._why else ''}"

    def _table(self, event: Event, ledger: Progress) -> Any:
        from rich.text import Text

        states = [self._screen.shown(self._state(ledger, test, event)) for test in self._tests]
        room = max(8, self._room(max(states, key=len)))
        names = shortened(
            [self._screen.shown(test.name) for test in self._tests], room, self._screen.shown("…")
        )
        wide = max(map(cells_of, names))
        lines = [
            f"{name}{' ' * (wide - cells_of(name))}  {state}"
            for name, state in zip(names, states, strict=True)
        ]
        left = time_left(self._tests, ledger, self._minimum)
        last = " · ".join(part for part in (self._doing(event), self._why, left) if part)
        return Text("\n".join(map(self._screen.one_line, [*lines, last])), no_wrap=True, overflow="crop")

    def _state(self, ledger: Progress, test: NamedTest, event: Event) -> str:
        """Trials done and the mean so far of the metric that is judged; with its interval, unless the stop rule says
        how well it is known."""
        count = event.done if event.what == "progress" else ledger.count(test.name, self._metric)
        if ledger.count(test.name, self._metric) < 2:
            return counted(count, "trial")
        judged = self._why if len(self._tests) == 1 else ""
        return (
            f"{count} trials, {mean_so_far(test.name, self._metric, ledger, None if '±' in judged else 1.0)}"
        )

    def _room(self, beside: str) -> int:
        """Columns left for a name beside that text; what is drawn over must not reach the last column."""
        return (self._screen.width or USUAL_WIDTH) - cells_of(beside) - 3


def time_left(tests: tuple[NamedTest, ...], ledger: Progress, minimum: int) -> str:
    """Estimated time until the minimum of trials is done; empty once it is."""
    done = {test.name: ledger.kept(test.name) for test in tests}
    if not min(done.values(), default=0) or min(done.values()) >= minimum:
        return ""
    each_s = ledger.spent_s(list(done)) / sum(len(ledger.trials(name)) for name in done)
    left = sum(max(0, minimum - count) for count in done.values()) * each_s
    return f"about {duration(left)} to the first verdict"
