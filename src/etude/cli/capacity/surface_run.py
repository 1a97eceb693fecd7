"""A map from its spec to what is shown of it: measured, kept, and gone on with."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import Any, TextIO

from etude.cli.capacity.peak_run import say_lost
from etude.cli.shared_options import pool_of
from etude.cluster.pool.job import JobEnd
from etude.cluster.pool.journal import FILE, Journal, JournaledPool
from etude.cluster.pool.pool_config import PoolSpec
from etude.cluster.pool.spec import open_pool
from etude.cluster.pool.timeline import timeline
from etude.errors import EtudeError, InputError, Interrupted, UsageError
from etude.experiment.session import new_directory
from etude.figures.surface_figures import figures_of
from etude.osutil.end_signals import EndedBySignal, ending_by_signals
from etude.present.peak_display import save_figures
from etude.present.search_status import of_map
from etude.present.sentences.status import UNFINISHED
from etude.present.status_line import as_line
from etude.present.surface_display import document, show
from etude.present.terminal import Terminal
from etude.surface.configuration_jobs import CellJobs
from etude.surface.factors import Cell
from etude.surface.map_store import Charted, MapStore, keeping_surface, mapped_of, resume_map
from etude.surface.metric import Metric
from etude.surface.next_configuration import Rules, Visit, contradiction
from etude.surface.peaks import PeakRate
from etude.surface.response import Response
from etude.surface.response_sources import response_of, simulated_response
from etude.surface.run_map import Display, Means, run_map
from etude.surface.samples import Sample
from etude.surface.spec import read_spec
from etude.surface.spread import SpreadDisplay, run_map_over_pool
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
                f"Resumes after {counted(len(before), 'cell')}, {spent} of benchmarking time.", "dim"
            )

    def begins(self, visit: Visit) -> None:
        """A cell begins."""
        self._visit = visit
        self.tell("begins")

    def tell(self, text: str) -> None:
        """Show the progress."""
        if self._screen.obeys and self._visit is not None:
            self._screen.draw(
                f"{self._number():>5}  {self._kept.charted.space.name(self._visit.cell)}: {text}"
            )

    def looks(self, cells: Sequence[Cell], running: int) -> None:
        """Several cells are under way, of which so many run."""
        if self._screen.obeys:
            names = [self._kept.charted.space.name(cell) for cell in cells]
            waiting = f", {len(cells) - running} wait" if running < len(cells) else ""
            self._screen.draw(f"{self._number():>5}  {running} run{waiting}: {'; '.join(names)}")

    def lost(self, visit: Visit, ended: JobEnd) -> None:
        """A cell lost its node."""
        if self._screen.obeys:
            self._screen.draw()
        where = f" on {ended.nodes[0]}" if ended.nodes else ""
        self._screen.say(
            f"{'–':>5}  {self._kept.charted.space.name(visit.cell)}{where}: {ended.how}: {ended.why}",
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
        what = self._kept.charted
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


def show_stored(options: argparse.Namespace) -> int:
    """A stored map once more; returns the exit code."""
    kept = MapStore(options.spec)
    kept.check_whole("cells")
    return show_map(kept, options)


def map_surface(options: argparse.Namespace) -> int:
    """Map on this machine or over a pool, and show the map; returns the exit code."""
    pool = pool_of(options)
    what, response, means = asked_for(options)
    if pool is None:
        return show_map(mapped(options, what, response, means), options)

    return show_map(mapped_over(options, pool, what, response, means), options)


def asked_for(options: argparse.Namespace) -> tuple[Charted, Response, Means]:
    """The map that is asked for, as the command line changes it."""
    means = Means({}, options.budget)
    if options.deadline is not None:
        means = replace(means, left_s=lambda: (options.deadline - datetime.now(UTC)).total_seconds())
    if options.simulate is not None:
        system, response = simulated_response(options.simulate)
        what = resume_map(
            system.law.name, system.space, rules_of(Rules(), options, system.space.size), response, ""
        )
        return what, response, means

    spec = read_spec(Path(options.spec))
    for name, resource in spec.resources.items() if options.pool is None else ():
        if (why := resource.check()) is not None:
            raise UsageError(f"{spec.path}: factor {name} ({resource.name}) cannot be set here: {why}")
    response = response_of(spec, options.deadline)
    means = replace(
        means,
        resources=spec.resources,
        budget_s=spec.budget_s if options.budget is None else options.budget,
        cell_s=spec.cell_s,
    )
    return (
        resume_map(
            spec.name, spec.space, rules_of(spec.rules, options, spec.space.size), response, spec.text
        ),
        response,
        means,
    )


def rules_of(rules: Any, options: argparse.Namespace, size: int) -> Any:
    given = {
        "plan": options.plan,
        "count": options.count,
        "error": options.error,
        "skip": options.skip or None,
    }
    if options.plan is not None and options.plan != rules.plan:  # what is only of the plan that SPEC has
        rules = replace(rules, error=None, base=None, skip=rules.skip and options.plan != "in-order")
    changed = replace(rules, **{name: value for name, value in given.items() if value is not None})
    if (wrong := contradiction(changed, size)) is not None:
        raise UsageError(f"--{' '.join(wrong)}")
    return changed


def mapped(options: argparse.Namespace, what: Charted, response: Response, means: Means) -> MapStore:
    """The map itself: it goes on after the cells that are on disk."""
    path = directory_of(options, what)
    _none_under_way(path)
    with ending_by_signals(), keeping_surface(path, what, options.command_line) as kept:
        say_lost(kept, "cells")
        if options.retry:
            kept.forget_failed()
        with on_disk(kept):
            if options.quiet:
                run_map(kept, response, means, Display())
                return kept
            display = SurfaceDisplay(sys.stderr, kept)
            try:
                run_map(kept, response, means, Display(display.begins, display.tell, display.made))
            finally:
                display.close()
    return kept


def directory_of(options: argparse.Namespace, what: Charted) -> Path:
    """The results directory: as -o says, else a new one."""
    return Path(options.output) if options.output is not None else new_directory(None, f"surface-{what.name}")


def _none_under_way(path: Path) -> None:
    """Raises InputError where jobs in a pool measure cells of this map."""
    if not (path / FILE).exists() or not (count := len(Journal(path).unfinished())):
        return
    jobs = "a job" if count == 1 else f"{count} jobs"
    raise InputError(
        f"{path}: {jobs} of it may be under way in a pool: go on with the same --pool, which waits for them"
    )


@contextmanager
def on_disk(kept: MapStore) -> Iterator[None]:
    """However a map is ended, it says where it is.

    Raises:
        EtudeError: with how to go on.
    """

    def where() -> str:
        count = len(kept.samples())
        cells = f"{counted(count, 'cell')} on disk"
        return f"{cells}; the same command with -o {kept.directory} goes on"

    try:
        yield
    except KeyboardInterrupt as ended:
        number = ended.number if isinstance(ended, EndedBySignal) else signal.SIGINT
        raise Interrupted(number, f"ended by {signal.Signals(number).name}; {where()}") from None
    except EtudeError as error:
        error.args = (f"{error}; {where()}",)
        raise


def show_map(kept: MapStore, options: argparse.Namespace) -> int:
    """Print and draw it."""
    mapped = mapped_of(kept)
    end = kept.document.get("surface")
    known = bool(mapped.filled.known.any())
    figures = dict(figures_of(mapped)) if options.figures is not None and known else {}
    paths = {name: Path(options.figures) / f"{name}.{options.format}" for name in figures}
    if options.json:
        head = {
            "format": "etude-surface",
            "version": 1,
            "name": kept.charted.name,
            "results": str(kept.directory),
        }
        told = {
            "ended": end and end["why"],
            "simulated": kept.charted.simulated,
            "status": list(of_map(kept, mapped)),
        } | document(mapped, target=options.target)
        print(dumps(head | told, indent=1, ensure_ascii=False))
    else:
        screen = Terminal()
        if status := _status(kept, of_map(kept, mapped)):
            screen.say(status, "yellow")
        if end is not None:
            screen.say(f"Ended: {end['why']}.", "dim")
        show(mapped, screen, target=options.target)
        save_figures(figures, paths, screen)
        screen.say_path("Results", str(kept.directory), "dim")
    if options.json:
        save_figures(figures, paths)
    good = all(sample.kept and sample.state == "measured" for sample in mapped.last.values())
    return 0 if good and mapped.last and end is not None else 1


def _status(kept: MapStore, words: Sequence[str]) -> str:
    """The first words of a map, which limit all that follows: `Simulated; unfinished. Interrupted after …`; empty where
    nothing does."""
    parts = list(filter(None, [as_line(words)]))
    if UNFINISHED in words:
        measured = len({sample.cell for sample in kept.samples()})
        parts.append(
            f"Interrupted after {measured} of {counted(kept.charted.space.size, 'cell')}: "
            f"the same command with -o {kept.directory} resumes it."
        )
    return " ".join(parts)


def mapped_over(
    options: argparse.Namespace, pool: PoolSpec, what: Charted, response: Response, means: Means
) -> MapStore:
    """The map; it goes on after the cells that are on disk, and with the jobs that are under way."""
    _check_pool(pool, response, means)
    screen = Terminal(sys.stderr)
    path = directory_of(options, what).absolute()
    spec = None if options.spec is None else Path(options.spec)
    simulate = options.simulate or ""
    cells = CellJobs(
        what.name, what.space, response, spec, simulate, options.deadline, pool.python, what.spec
    )
    with ending_by_signals(), keeping_surface(path, what, options.command_line, elsewhere=True) as kept:
        if options.retry:
            kept.forget_failed()
        with on_disk(kept), open_pool(pool, path, say=screen.say) as nodes:
            _spread(kept, cells, JournaledPool(nodes, Journal(path)), means, quiet=options.quiet)
    return kept


def _check_pool(pool: PoolSpec, response: Response, means: Means) -> None:
    """Raises UsageError for what the nodes of this pool cannot do."""
    if isinstance(response, PeakRate) and response.load_hosts:
        raise UsageError(
            "--pool: its jobs would offer load from the same hosts ([generator] hosts): leave out one of them"
        )
    resource = next(iter(means.resources), None)
    if pool.etude == "copied":
        what = (
            None if isinstance(response, Metric) and response.asked.command else f"a cell of {response.name}"
        )
        what = what if resource is None else f"factor {resource} (a resource)"
        if what is not None:
            raise UsageError(
                f"--pool: {what} needs Étude on the nodes: with etude=copied a cell can be a command only; install it "
                "on a file system that the nodes share, and leave out etude=copied"
            )
    if response.nodes > 1 and resource is not None and pool.kind != "local":
        raise UsageError(
            f"--pool: factor {resource} is a resource of the machine that offers, and the system is on another "
            "([commands] apart): leave out one of them"
        )


def _spread(kept: MapStore, cells: CellJobs, pool: JournaledPool, means: Means, *, quiet: bool) -> None:
    if quiet:
        run_map_over_pool(kept, cells, pool, means, SpreadDisplay())
        return
    display = SurfaceDisplay(sys.stderr, kept)
    try:
        run_map_over_pool(
            kept, cells, pool, means, SpreadDisplay(looks=display.looks, made=display.made, lost=display.lost)
        )
    finally:
        display.close()
        screen = Terminal(sys.stderr)
        for row in timeline(pool.journal.jobs):
            screen.say(row, "dim")
