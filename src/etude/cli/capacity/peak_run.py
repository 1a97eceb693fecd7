"""A search from its source to its answer: carried out, shown, and gone on with."""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from etude.cli.shared_options import pool_of
from etude.errors import EtudeError, Interrupted
from etude.experiment.session import new_directory
from etude.osutil.end_signals import EndedBySignal, ending_by_signals
from etude.peak.bench import Bench, ObservedBench, Paced
from etude.peak.deadline import with_deadline
from etude.peak.policies.policy import Policy
from etude.peak.policies.registry import policy
from etude.peak.record import Record
from etude.peak.search import benchmarking_time_s, search
from etude.peak.search_store import SearchSpec, SearchStore, open_store
from etude.peak.sources import Source
from etude.peak.task import Answer, Task, Trial, TrialRequest
from etude.peak.window import Window
from etude.present.peak_display import show
from etude.present.peak_text import ran_text, reading_texts, share_text, span_text
from etude.present.terminal import Terminal
from etude.present.verdict_display import say_note
from etude.units.formatting import duration, level_text

REDRAW_S = 0.2
HEADING = ("no.", "load", "measured", "of limit", "ran", "bench", "peak in")
WIDTHS = (3, 9, 9, 9, 11, 7, 16)
"""Widths of columns: with an interval of two numbers they fit into 80 characters."""
LEFT_OUT = ("ran", "bench", "measured", "no.")
"""Columns that a narrower terminal lacks: the first of them first."""


class PeakDisplay:
    """Prints each trial: load, reading, whether it ended early, where the peak is now believed to be, and its cost."""

    def __init__(
        self, stream: TextIO, task: Task, policy: Policy, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._screen = Terminal(stream)
        self._task, self._policy, self._clock = task, policy, clock
        self._trials: list[Trial] = []
        self._shown_at = -1.0

    def resumed(self, trials: Sequence[Trial]) -> None:
        """These were on disk."""
        self._trials = list(trials)
        if trials:
            self._screen.say(
                f"resumed: {len(trials)} trials on disk, {duration(benchmarking_time_s(trials))} of benchmarking time"
            )

    def begins(self, request: TrialRequest) -> None:
        """A trial is about to start."""
        if self._screen.obeys:
            self._draw(request, f"{request.why}; preparing")

    def window(self, request: TrialRequest, windows: Sequence[Window]) -> None:
        """One more window is known."""
        now = self._clock()
        if self._screen.obeys and now - self._shown_at >= REDRAW_S:
            self._shown_at = now
            share = self._task.goal.reading(windows)
            ran = sum(window.duration_s for window in windows)
            read = "nothing yet" if share != share else f"{share_text(share)} of the limit"
            self._draw(request, f"{duration(ran)} of {duration(request.runlength_s)}: {read}; {request.why}")

    def made(self, request: TrialRequest, trial: Trial) -> None:
        """A trial is over, and on disk."""
        self.close()
        if not self._trials:
            last = f"{HEADING[-1]} ({level_text(self._task.confidence)})"
            self._say((*HEADING[:-1], last), "dim")
        self._trials.append(trial)
        measured, share = reading_texts(self._task, trial)
        best = self._policy.best(self._task, self._trials, "so far")
        cells = (
            str(len(self._trials)),
            self._task.load_text(trial.load),
            measured,
            share,
            ran_text(trial),
            duration(benchmarking_time_s(self._trials)),
            span_text(self._task, best.low, best.high),
        )
        self._say(cells)
        if trial.note and (trial.limited or trial.ended in ("died", "not-made")):
            self._screen.say(f"     {trial.note}", "dim")

    def close(self) -> None:
        """Take the moving line away."""
        if self._screen.obeys:
            self._screen.draw()

    def _say(self, cells: Sequence[str], style: str | None = None) -> None:
        shown = dict(zip(HEADING, WIDTHS, strict=True))
        for name in LEFT_OUT:
            if sum(shown.values()) + 2 * (len(shown) - 1) <= (self._screen.width or math.inf):
                break
            del shown[name]
        row = dict(zip(HEADING, cells, strict=True))
        *first, last = shown
        self._screen.say("  ".join([*(f"{row[name]:>{shown[name]}}" for name in first), row[last]]), style)

    def _draw(self, request: TrialRequest, text: str) -> None:
        self._screen.draw(f"{len(self._trials) + 1:>3}  {self._task.load_text(request.load)}: {text}")


def search_peak(options: argparse.Namespace, source: Source) -> int:
    """Search, and show the answer; returns the exit code."""
    chosen = policy(options.policy)
    sought = SearchSpec(source.name, source.task, options.policy, source.text, dict(options.factor))
    if (spec := pool_of(options)) is not None:
        from etude.cli.measure import pool_run  # clusters are loaded where there is one

        found = pool_run.peak(directory_of(options, source), source, sought, spec, options)
        assert found.answer is not None
        show(found, found.answer, options, source.peak)
        return 0 if found.answer.kept else 1
    with ending_by_signals(), open_store(directory_of(options, source), sought, options.command_line) as kept:
        answer = _answered(options, source, chosen, kept)
        kept.answered(answer)
    show(kept, answer, options, source.peak)
    return 0 if answer.kept else 1


def directory_of(options: argparse.Namespace, source: Source) -> Path:
    """The results directory: that of -o, else a new one."""
    return Path(options.output) if options.output is not None else new_directory(None, f"peak-{source.name}")


def _answered(options: argparse.Namespace, source: Source, policy: Policy, kept: SearchStore) -> Answer:
    """The search itself: it goes on after the trials that are on disk."""
    if options.deadline is not None:
        policy = with_deadline(policy, options.deadline)
    before = kept.trials()
    say_lost(kept, "trials")
    with open_bench(options, source, kept) as bench:
        if options.quiet:
            return search(policy, kept.task, bench, before, kept.keep)
        display = PeakDisplay(sys.stderr, kept.task, policy)
        display.resumed(before)

        def made(request: TrialRequest, trial: Trial) -> None:
            kept.keep(request, trial)
            display.made(request, trial)

        try:
            watched = ObservedBench(bench, display.begins, display.window)
            return search(policy, kept.task, watched, before, made)
        finally:
            display.close()


def say_lost(kept: Record, what: str) -> None:
    """Print the trials that a directory has lost since its last session."""
    if text := kept.lost_text(what):
        say_note(
            Terminal(sys.stderr),
            f"{kept.directory}: {text}; what is missing is made again where it is needed",
        )


@contextmanager
def open_bench(options: argparse.Namespace, source: Source, kept: SearchStore) -> Iterator[Bench]:
    """The bench of a search, brought to where the trials on disk left it; however it ends, it says where they are.

    Raises:
        EtudeError: with where the trials are, and how to go on.
    """
    place = kept.directory / "harness"
    try:
        with source.bench(kept.sought.factors, place, kept.trials(), kept.task.seed) as bench:
            yield bench if options.speed is None else Paced(bench, options.speed, time.sleep)
    except KeyboardInterrupt as ended:
        number = ended.number if isinstance(ended, EndedBySignal) else signal.SIGINT
        raise Interrupted(number, f"ended by {signal.Signals(number).name}; {_on_disk(kept)}") from None
    except EtudeError as error:
        if kept.trials():
            error.args = (f"{error}; {_on_disk(kept)}",)
        raise


def _on_disk(kept: SearchStore) -> str:
    count = len(kept.trials())
    return (
        f"{count} trial{'' if count == 1 else 's'} on disk; the same command with -o {kept.directory} goes on"
    )
