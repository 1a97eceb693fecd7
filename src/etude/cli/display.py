"""The live display: what is known so far, between trials only, so that it never runs beside a measured command."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from etude.experiment.bench import Event
from etude.experiment.ledger import Ledger

if TYPE_CHECKING:
    from etude.experiment.bench import Named

REDRAW_S = 0.2
LINE_EVERY_S = 3.0


class Display:
    """Shows an experiment's progress on a terminal, or as one line every few seconds elsewhere."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._terminal = stream.isatty()
        self._tests: tuple[Named, ...] = ()
        self._shown_at = -float("inf") if self._terminal else clock()
        self._started = clock()
        self._why = ""
        self._live: Any = None
        self._plain = False

    def observe(self, event: Event, ledger: Ledger) -> None:
        """Take note of an event; redraw when it is time."""
        if event.what == "group":
            self._tests, self._why = event.tests, ""
            return
        if event.what == "decision":
            self._why = event.detail
        elif event.what == "resumed":
            print(f"resumed: {event.detail}", file=self._stream)
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
        elif self._plain:
            self._stream.write("\r\x1b[K")
        self._stream.flush()

    def _first(self, ledger: Ledger) -> None:
        """The first mean at once, before the libraries for anything more are loaded."""
        from etude.report.text import quantity

        test = next(test for test in self._tests if ledger.kept(test.name))
        values = ledger.sample(test.name, "elapsed")
        self._plain = True
        self._stream.write(
            f"\r\x1b[K{test.name}: mean {quantity(sum(values) / len(values), 's')} ({len(values)} trial)"
        )
        self._stream.flush()

    def _show(self, event: Event, ledger: Ledger) -> None:
        if not self._terminal:
            print(self._line(event, ledger), file=self._stream, flush=True)
            return
        if not any(ledger.kept(test.name) for test in self._tests):
            self._stream.write(f"\r\x1b[K{self._doing(event)}")
            self._stream.flush()
            return
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._stream.write("\r\x1b[K")
            console = Console(file=self._stream, highlight=False, markup=False, emoji=False)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._table(event, ledger), refresh=True)

    def _doing(self, event: Event) -> str:
        names = ", ".join(test.name for test in event.tests)
        return f"{ {'set-aside': 'first run of', 'hook': event.detail + ' of'}.get(event.what, 'running') } {names} …"

    def _line(self, event: Event, ledger: Ledger) -> str:
        states = "; ".join(f"{test.name}: {_state(ledger, test, event)}" for test in self._tests)
        return f"{self._clock() - self._started:.0f} s: {states}{'; ' + self._why if self._why else ''}"

    def _table(self, event: Event, ledger: Ledger) -> Any:
        from rich.console import Group
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        for test in self._tests:
            table.add_row(test.name, _state(ledger, test, event))
        left = time_left(self._tests, ledger)
        text = " · ".join(part for part in (self._doing(event), self._why, left) if part)
        return Group(table, text)


def _state(ledger: Ledger, test: Named, event: Event) -> str:
    """Trials done and the mean with its interval so far."""
    from etude.report.text import counted, percent, quantity
    from etude.stats.intervals import mean_interval

    values = ledger.sample(test.name, "elapsed")
    count = event.done if event.what == "progress" else len(values)
    if len(values) < 2:
        return counted(count, "trial")
    mean = sum(values) / len(values)
    interval = mean_interval(values)
    half = f" ± {percent(interval.half_width / mean)}" if interval and mean else ""
    return f"{count} trials, mean {quantity(mean, 's')}{half}"


def time_left(tests: tuple[Named, ...], ledger: Ledger) -> str:
    """How long the minimum of trials still takes; nothing once it is done."""
    done = {test.name: ledger.kept(test.name) for test in tests}
    if not min(done.values(), default=0) or min(done.values()) >= 10:
        return ""
    from etude.report.text import duration

    left = sum(max(0, 10 - count) * ledger.measured_s([name]) / count for name, count in done.items())
    return f"about {duration(left)} to the first verdict"
