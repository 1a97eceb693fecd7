"""The progress of a map: a line a cell, and one that moves while cells are measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from etude.cluster.pool.job import JobEnd
from etude.present.terminal import Terminal
from etude.surface.factors import Configuration
from etude.surface.map_store import MapStore
from etude.surface.next_configuration import Visit
from etude.surface.samples import Sample
from etude.surface.surface_result import Estimate
from etude.surface.surface_text import estimate_text
from etude.units.formatting import counted, duration, percent


class SurfaceDisplay:
    """A line a cell; while one is measured, or several are, the line below says how it stands."""

    def __init__(self, stream: TextIO, kept: MapStore) -> None:
        self._screen = Terminal(stream)
        self._kept = kept
        self._visit: Visit | None = None
        before = kept.samples()
        if before:
            spent = duration(sum(sample.cost_s for sample in before))
            self._screen.say(
                f"Resumes after {counted(len(before), 'configuration')}, {spent} of benchmarking time.", "dim"
            )

    def begins(self, visit: Visit) -> None:
        """A cell begins."""
        self._visit = visit
        self.tell("begins")

    def tell(self, text: str) -> None:
        """Show the progress."""
        if self._screen.obeys and self._visit is not None:
            self._screen.draw(
                f"{self._number():>5}  {self._kept.definition.space.name(self._visit.cell)}: {text}"
            )

    def looks(self, cells: Sequence[Configuration], running: int) -> None:
        """Several cells are under way, of which so many run."""
        if self._screen.obeys:
            names = [self._kept.definition.space.name(cell) for cell in cells]
            waiting = f", {len(cells) - running} wait" if running < len(cells) else ""
            self._screen.draw(f"{self._number():>5}  {running} run{waiting}: {'; '.join(names)}")

    def lost(self, visit: Visit, ended: JobEnd) -> None:
        """A cell lost its node."""
        if self._screen.obeys:
            self._screen.draw()
        where = f" on {ended.nodes[0]}" if ended.nodes else ""
        self._screen.say(
            f"{'–':>5}  {self._kept.definition.space.name(visit.cell)}{where}: {ended.how}: {ended.why}",
            "yellow",
        )

    def made(self, visit: Visit, sample: Sample, host: str = "") -> None:
        """A cell is measured, and on disk; `host`: on which node of a pool."""
        if self._screen.obeys:
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
        if self._screen.obeys:
            self._screen.draw()

    def _number(self) -> int:
        return len(self._kept.samples()) + 1
