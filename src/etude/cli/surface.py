"""Map a response over configurations, at the least bench time: peak rates of a server, or a metric of a test.

SPEC.toml says what is measured, which factors are varied over which levels, and which cells are to be measured
(docs/surfaces.md). Each cell is on disk before the next begins: the same command with the same -o goes on where it was
ended, and nothing is measured twice. A results directory in place of SPEC.toml is shown again. The exit status is 0
where every cell that was tried has a value that meets its target, 1 where one has not.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.cli import parser as kinds
from etude.cli.io_options import FORMATS
from etude.cli.one_thread import one_thread
from etude.cli.peak import Ended, add_budget, add_like, ending_by_signals, only_with_rehearse, say_lost
from etude.cli.pool_options import add_pool, pool_of
from etude.workbench.most import LONGEST_S

if TYPE_CHECKING:
    from etude.workbench.surfaces.chart import Means
    from etude.workbench.surfaces.kept import Charted, KeptSurface
    from etude.workbench.surfaces.response import Response

PLANS = ("full", "in-order", "one-at-a-time", "d-optimal", "adaptive")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude surface`."""
    add = parser.add_argument
    add("spec", nargs="?", metavar="SPEC", help="SPEC.toml, or results to show again")
    add(
        "--simulate",
        metavar="NAME[:SEED]",
        help="simulated servers in place of SPEC: DB_TP, Web, Mail, SPECsfs97, cached and others",
    )
    add(
        "-o",
        "--output",
        type=kinds.place,
        metavar="DIR",
        help="results directory; one that holds this map goes on",
    )
    _sampling(parser.add_argument_group("which cells are measured (in place of what SPEC says)"))
    add(
        "--target",
        type=kinds.number_above_0,
        metavar="R",
        help="say how much of each factor a response of R takes",
    )
    add("--figures", metavar="DIR", help="draw figures there: the surface, its map, the effects")
    add("--format", choices=FORMATS, default="pdf", help="of the figures (default pdf)")
    add_pool(parser)
    _rehearsal(parser.add_argument_group("before the bench is booked"))
    add("--json", action="store_true", help="print the surface as JSON on standard output (docs/formats.md)")
    add("-q", "--quiet", action="store_true", help="nothing of single cells, only the surface")


def _sampling(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--plan", choices=PLANS, help="full (default), in-order, one-at-a-time, d-optimal or adaptive")
    add("--count", type=kinds.count, metavar="N", help="cells that are measured at most")
    add(
        "--error",
        type=kinds.share,
        metavar="SHARE",
        help="of adaptive: predictions that are so near are enough",
    )
    add("--skip", action="store_true", help="leave out cells that are predicted well enough")
    add_budget(add)
    add("--deadline", type=kinds.deadline, metavar="TIME", help="such as 17:30; then the best so far")
    add("--retry", action="store_true", help="try cells again that failed in an earlier sitting")


def _rehearsal(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--rehearse",
        action="store_true",
        help="map simulated surfaces only: what it will cost, and how often cells are right",
    )
    add_like(group)
    add("--maps", type=kinds.count, metavar="N", help="of --rehearse (default 5)")
    add(
        "--fixed-cost",
        type=kinds.time_to(LONGEST_S, zero=True),
        metavar="TIME",
        help="of --rehearse: a trial's, besides its run (default: the harness's warm-up and 1 s)",
    )


def run(options: argparse.Namespace) -> int:
    """Map, or show a map again; returns the exit code."""
    from etude.errors import UsageError

    only_with_rehearse(options, "like", "maps", "fixed_cost")
    if options.simulate is not None and options.spec is not None:
        raise UsageError("--simulate takes the place of SPEC: leave out one of them")
    if options.simulate is None and options.spec is None:
        raise UsageError("expected SPEC.toml, a results directory to show again, or --simulate NAME")
    if options.spec is not None and (Path(options.spec) / "experiment.json").exists():
        from etude.workbench.surfaces.kept import KeptSurface

        kept = KeptSurface(options.spec)
        kept.check_whole("cells")
        return _shown(kept, options)
    one_thread()
    from etude.cli.peak_show import check_figures

    check_figures(options)
    if options.rehearse:
        from etude.cli.surface_rehearse import rehearse

        return rehearse(options)
    pool = pool_of(options)
    what, response, means = _asked(options)
    if pool is None:
        kept = _mapped(options, what, response, means)
    else:
        from etude.cli.surface_spread import mapped_over

        kept = mapped_over(options, pool, what, response, means)
    return _shown(kept, options)


def _asked(options: argparse.Namespace) -> tuple[Charted, Response, Means]:
    """What is mapped, as the command line changes it."""
    from etude.cli.surface_response import response_of, simulated_response
    from etude.errors import UsageError
    from etude.workbench.surfaces.chart import Means
    from etude.workbench.surfaces.kept import charted
    from etude.workbench.surfaces.mapping import Rules

    means = Means({}, options.budget)
    if options.deadline is not None:
        means = replace(means, left_s=lambda: (options.deadline - datetime.now(UTC)).total_seconds())
    if options.simulate is not None:
        system, response = simulated_response(options.simulate)
        what = charted(
            system.law.name, system.space, rules_of(Rules(), options, system.space.size), response, ""
        )
        return what, response, means
    from etude.workbench.surfaces.spec import read_spec

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
        charted(spec.name, spec.space, rules_of(spec.rules, options, spec.space.size), response, spec.text),
        response,
        means,
    )


def rules_of(rules: Any, options: argparse.Namespace, size: int) -> Any:
    from etude.errors import UsageError
    from etude.workbench.surfaces.mapping import contradiction

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


def _mapped(options: argparse.Namespace, what: Charted, response: Response, means: Means) -> KeptSurface:
    """The map itself: it goes on after the cells that are on disk."""
    from etude.cli.surface_display import SurfaceDisplay
    from etude.workbench.surfaces.chart import Display, chart
    from etude.workbench.surfaces.kept import keeping_surface

    path = directory_of(options, what)
    _none_under_way(path)
    with ending_by_signals(), keeping_surface(path, what, options.command_line) as kept:
        say_lost(kept, "cells")
        if options.retry:
            kept.forget_failed()
        with on_disk(kept):
            if options.quiet:
                chart(kept, response, means, Display())
                return kept
            display = SurfaceDisplay(sys.stderr, kept)
            try:
                chart(kept, response, means, Display(display.begins, display.tell, display.made))
            finally:
                display.close()
    return kept


def directory_of(options: argparse.Namespace, what: Charted) -> Path:
    """Where it is kept."""
    from etude.experiment.sitting import new_directory

    return Path(options.output) if options.output is not None else new_directory(None, f"surface-{what.name}")


def _none_under_way(path: Path) -> None:
    """Raises InputError where jobs in a pool measure cells of this map."""
    from etude.errors import InputError
    from etude.workbench.pool.journal import FILE, Journal

    if not (path / FILE).exists() or not (count := len(Journal(path).unfinished())):
        return
    jobs = "a job" if count == 1 else f"{count} jobs"
    raise InputError(
        f"{path}: {jobs} of it may be under way in a pool: go on with the same --pool, which waits for them"
    )


@contextmanager
def on_disk(kept: KeptSurface) -> Iterator[None]:
    """However a map is ended, it says where it is.

    Raises:
        EtudeError: with how to go on.
    """
    from etude.errors import EtudeError, Interrupted
    from etude.units.formatting import counted

    def where() -> str:
        count = len(kept.samples())
        cells = f"{counted(count, 'cell')} on disk"
        return f"{cells}; the same command with -o {kept.directory} goes on"

    try:
        yield
    except KeyboardInterrupt as ended:
        number = ended.number if isinstance(ended, Ended) else signal.SIGINT
        raise Interrupted(number, f"ended by {signal.Signals(number).name}; {where()}") from None
    except EtudeError as error:
        error.args = (f"{error}; {where()}",)
        raise


def _shown(kept: KeptSurface, options: argparse.Namespace) -> int:
    """Print and draw it."""
    from etude.cli.peak_show import save_figures
    from etude.cli.surface_show import document, show
    from etude.cli.terminal import Terminal
    from etude.cli.workbench_status import of_map
    from etude.workbench.surfaces.pictures import figures_of
    from etude.workbench.surfaces.stored import mapped_of

    mapped = mapped_of(kept)
    end = kept.document.get("surface")
    known = bool(mapped.filled.known.any())
    figures = dict(figures_of(mapped)) if options.figures is not None and known else {}
    paths = {name: Path(options.figures) / f"{name}.{options.format}" for name in figures}
    if options.json:
        from json import dumps

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


def _status(kept: KeptSurface, words: Sequence[str]) -> str:
    """The first words of a map, which limit all that follows: `Simulated; unfinished. Interrupted after …`; empty where
    nothing does."""
    from etude.report.status_words import UNFINISHED, as_line
    from etude.units.formatting import counted

    parts = list(filter(None, [as_line(words)]))
    if UNFINISHED in words:
        measured = len({sample.cell for sample in kept.samples()})
        parts.append(
            f"Interrupted after {measured} of {counted(kept.charted.space.size, 'cell')}: "
            f"the same command with -o {kept.directory} resumes it."
        )
    return " ".join(parts)
