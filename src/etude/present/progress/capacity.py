"""The progress of a search or a map: a line a trial or configuration, and one that moves while it is measured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from etude.cluster.pool.job import JobEnd
from etude.peak.search import Policy, benchmarking_time_s
from etude.peak.task import Task, Trial, TrialRequest
from etude.peak.window import Window
from etude.present.sentences.peak import ran_text, reading_texts, share_text, span_text
from etude.present.terminal import Terminal
from etude.surface.factors import Configuration
from etude.surface.map_store import MapStore
from etude.surface.next_configuration import Visit
from etude.surface.samples import Sample
from etude.surface.surface_result import Estimate, estimate_text
from etude.units.formatting import counted, duration, level_text, percent

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
        self._screen = Terminal(stream, progress=True)
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


class SurfaceDisplay:
    """A line a configuration; while one is measured, or several are, the line below says how it stands."""

    def __init__(self, stream: TextIO, kept: MapStore) -> None:
        self._screen = Terminal(stream, progress=True)
        self._kept = kept
        self._visit: Visit | None = None
        before = kept.samples()
        if before:
            spent = duration(sum(sample.cost_s for sample in before))
            self._screen.say(
                f"Resumes after {counted(len(before), 'configuration')}, {spent} of benchmarking time.", "dim"
            )

    def begins(self, visit: Visit) -> None:
        """A configuration begins."""
        self._visit = visit
        self.tell("begins")

    def tell(self, text: str) -> None:
        """Show the progress."""
        if self._visit is not None:
            name = self._kept.definition.space.name(self._visit.cell)
            self._screen.draw(f"{self._number():>5}  {name}: {text}")

    def looks(self, configurations: Sequence[Configuration], running: int) -> None:
        """Several configurations are under way; `running` of them run."""
        names = [self._kept.definition.space.name(each) for each in configurations]
        waiting = f", {len(names) - running} wait" if running < len(names) else ""
        self._screen.draw(f"{self._number():>5}  {running} run{waiting}: {'; '.join(names)}")

    def lost(self, visit: Visit, ended: JobEnd) -> None:
        """A configuration lost its node."""
        self._screen.draw()
        where = f" on {ended.nodes[0]}" if ended.nodes else ""
        self._screen.say(
            f"{'–':>5}  {self._kept.definition.space.name(visit.cell)}{where}: {ended.how}: {ended.why}",
            "yellow",
        )

    def made(self, visit: Visit, sample: Sample, host: str = "") -> None:
        """A configuration is measured, and on disk; `host`: its node of a pool."""
        self._screen.draw()
        expected = ""
        if visit.expected is not None and visit.spread is not None and sample.value:
            off = sample.value / visit.expected - 1
            expected = f", {percent(abs(off))} {'above' if off > 0 else 'below'} what was expected"
        what = self._kept.definition
        took = f"{duration(sample.cost_s)}, {counted(sample.trials, 'trial')}"
        text = estimate_text(
            Estimate(sample.cell, sample.state, sample.value, sample.low, sample.high), what.unit
        )
        self._screen.say(
            f"{self._number() - 1:>5}  {what.space.name(visit.cell)}{f' on {host}' if host else ''}: {text}{expected} "
            f"({took})" + (f": {sample.why}" if sample.why else "")
        )

    def close(self) -> None:
        """Leave the screen as it was."""
        self._screen.draw()

    def _number(self) -> int:
        return len(self._kept.samples()) + 1
