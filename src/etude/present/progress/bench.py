"""Live displays of commands, scripts and sweeps: between trials only, so that none runs beside a measured command."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO, cast

from etude.escaping import unescaped
from etude.experiment.bench import Event, NamedTest
from etude.experiment.progress import Progress
from etude.present.table_layout import cells_of, shortened
from etude.present.terminal import USUAL_WIDTH, Terminal
from etude.units.formatting import counted, duration, percent, quantity

if TYPE_CHECKING:
    from etude.stats.means import Kind

REDRAW_S = 0.2
LINE_EVERY_S = 3.0


SCRIPT_LINE_EVERY_S = 5.0


class Display:
    """Shows an experiment's progress on a terminal, or as one line every few seconds elsewhere."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._screen = Terminal(stream, progress=True)
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
        else:
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
            self._screen.flush()
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


class ScriptDisplay:
    """Progress to `stream`; what ECHO says to standard output."""

    def __init__(
        self, stream: TextIO, clock: Callable[[], float] = time.monotonic, say: Callable[[str], None] = print
    ) -> None:
        self._stream, self._clock, self._say = stream, clock, say
        self._screen = Terminal(stream, progress=True)
        self._terminal = self._screen.obeys
        self._started = clock()
        self._shown_at = self._started
        self._number, self._doing = "", ""
        self._whys: dict[str, str] = {}
        self._ended = 0
        self._moving = False

    def observe(self, event: Event, ledger: Progress) -> None:
        """Take note of an event; redraw when it is time."""
        if event.what == "echo":
            self._clear()
            self._say(event.detail)
            sys.stdout.flush()
        elif event.what == "warning":
            self._line(f"warning: {event.detail}")
        elif event.what == "resumed":
            self._line(f"resumed: {event.detail}")
        elif event.what == "ended":
            self._ended += 1
            self._line(f"{_state(event.tests[0], ledger, event.detail)}; {event.detail}")
        else:
            self._note(event)
        if event.what in ("trial", "hook"):
            self._move(event, ledger)

    def close(self) -> None:
        """Take the moving line away; what follows is the table."""
        self._clear()

    def _note(self, event: Event) -> None:
        if event.what == "group":
            self._number, self._whys = event.detail, {}
        elif event.what == "decision":
            self._whys[event.tests[0].name] = event.detail
        elif event.what == "hook":
            self._doing = event.detail

    def _move(self, event: Event, ledger: Progress) -> None:
        now = self._clock()
        if now - self._shown_at < (REDRAW_S if self._terminal else SCRIPT_LINE_EVERY_S):
            return
        self._shown_at = now
        parts = [f"{now - self._started:.0f} s", self._number]
        why = self._whys.get(event.tests[0].name, "") if event.tests else ""
        beside = self._doing if event.what == "hook" else why
        parts += [_state(event.tests[0], ledger, beside)] if event.tests else []
        parts += [beside, self._left(now)]
        text = " · ".join(part for part in parts if part)
        if self._terminal:
            self._screen.draw(text)
            self._moving = True
        else:
            self._line(text)

    def _left(self, now: float) -> str:
        """Time left, if the remaining tests take as long as those that have ended."""
        _, of, expected = self._number.removeprefix("test ").partition(" of ")
        if not of or not self._ended or int(expected) <= self._ended:
            return ""
        left = (now - self._started) / self._ended * (int(expected) - self._ended)
        return f"about {duration(left)} left"

    def _line(self, text: str) -> None:
        self._clear()
        self._screen.say(text)
        self._screen.flush()

    def _clear(self) -> None:
        if self._moving:
            self._screen.draw()
            self._moving = False


def _state(test: NamedTest, ledger: Progress, beside: str) -> str:
    """A test's trials so far, and the means of the metrics that its stop rule names.

    beside: what stands behind it. Where the rule says there how well a mean is known, by its own estimator, the means
    have no intervals of another.
    """
    from etude.analysis.subject import judged_columns, mean_factor

    program = getattr(test, "program", ())
    judged = judged_columns(program) or ("elapsed",)
    factor = None if "±" in beside else mean_factor(program, getattr(test, "minimum", None))
    means = (mean_so_far(test.name, metric, ledger, factor) for metric in judged)
    return ", ".join((f"{test.name}: {counted(ledger.kept(test.name), 'trial')}", *filter(None, means)))


def mean_so_far(test: str, metric: str, ledger: Progress, factor: float | None) -> str:
    """The mean that the table will show, with its interval unless there is no factor; empty without a value."""
    from etude.stats.describe import describe

    values = ledger.sample(test, metric)
    if not values:
        return ""
    found = describe(values, cast("Kind", ledger.kind(metric)), factor=factor or 1.0)
    width = None if factor is None else found.relative_half_width
    half = "" if width is None else f" ± {percent(width)}"
    named = "" if metric == "elapsed" else f"{metric} "
    return f"mean {named}{quantity(found.mean, ledger.unit(metric))}{half}"


class SweepDisplay:
    """Number of blocks that are done, the size that runs, and the time left."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._screen = Terminal(stream, progress=True)
        self._every = REDRAW_S if self._screen.obeys else SCRIPT_LINE_EVERY_S
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
        self._screen.draw("judging the trials and drawing figures …")

    def close(self) -> None:
        """Take the moving line away; what follows is the table."""
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
