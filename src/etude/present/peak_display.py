"""A search on the screen: its answer in sentences or as JSON, and its figures."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from json import dumps
from pathlib import Path
from shlex import quote
from typing import Any

from etude.errors import MachineRefuses, UsageError
from etude.figures.data import Figure
from etude.figures.peak import Course, load_factors, time_at_loads
from etude.figures.save import save
from etude.figures.style import Style
from etude.peak.load_metrics import QUANTILES, load_figures
from etude.peak.search import benchmarking_time_s
from etude.peak.search_store import SearchStore, stored_answer
from etude.peak.slo_ratio import slo_ratio_of
from etude.peak.sources import of_simulation
from etude.peak.task import Answer, Task, Trial
from etude.peak.trial_lines import part_member
from etude.peak.window import joined_windows
from etude.present.note_text import MOST
from etude.present.peak_text import answer_lines, finding_lines, neighbours
from etude.present.search_status import of_search
from etude.present.status_line import as_line
from etude.present.table_layout import Column
from etude.present.terminal import Terminal
from etude.present.verdict_display import say_note
from etude.units.formatting import counted, digits, percent, quantity


def load_columns(task: Task, answer: Answer, trials: Sequence[Trial]) -> list[Column]:
    """A row for each load that was measured next to the answer; a column of which nothing is known is left out.

    What the goal limits is on every screen, however narrow.
    """
    at = [
        [trial for trial in trials if trial.load == each.load and trial.of_server]
        for each in neighbours(task, answer, trials)
    ]
    rows = [load_figures(made) for made in at if any(trial.windows for trial in made)]
    limited = {each.of if each.percent is None else f"p{each.percent:g}" for each in task.goal.criteria}
    quantiles = [
        _times(name, [row.quantiles_s[name] for row in rows], 0 if name in limited else 1)
        for name in QUANTILES
    ]
    columns = [
        Column("load", [task.load_text(row.load) for row in rows]),
        Column("offered", [f"{digits(row.offered)}/s" for row in rows], 2),
        Column("completed", [f"{digits(row.completed)}/s" for row in rows]),
        Column("errors", [percent(row.errors) for row in rows]),
        _times("mean", [row.mean_s for row in rows], 0 if "mean" in limited else 4),
        *quantiles,
        _times("lateness p99", [row.lateness_p99_s for row in rows], 3),
        Column("headroom", ["–" if row.headroom is None else percent(row.headroom) for row in rows], 3),
    ]
    return [column for column in columns if any(cell != "–" for cell in column.cells)]


def _times(name: str, values: Sequence[float | None], rank: int) -> Column:
    return Column(name, ["–" if value is None else quantity(value, "s") for value in values], rank)


def load_members(trial: Trial) -> dict[str, Any]:
    """The figures of a trial's requests, for JSON."""
    if not trial.windows:
        return {}
    figures = load_figures([trial])
    return {
        "offered": figures.offered,
        "completed": figures.completed,
        "errors": figures.errors,
        **{f"{name.replace('.', '_')}_s": value for name, value in figures.quantiles_s.items()},
        "lateness_p99_s": figures.lateness_p99_s,
        "headroom": figures.headroom,
    }


FORMAT, VERSION = "etude-peak", 1


def show(kept: SearchStore, answer: Answer, options: argparse.Namespace, truth: float | None = None) -> None:
    """Print how a search ended, and draw it if asked to.

    Raises:
        MachineRefuses: figures cannot be written; all else has been printed.
    """
    _show([(kept, answer, truth)], options)


def show_stored(options: argparse.Namespace) -> int:
    """Searches as they lie on disk; 0 where all promises were kept, else 1.

    Raises:
        InputError: a directory holds none.
    """
    found = []
    for place in options.harness:
        kept = SearchStore(place)
        kept.check_whole("trials")
        found.append((kept, stored_answer(kept), _truth(kept)))
    _show(found, options)
    return 0 if all(answer.kept for _, answer, _ in found) else 1


def _show(found: Sequence[tuple[SearchStore, Answer, float | None]], options: argparse.Namespace) -> None:
    drawn = _figures(found) if options.figures is not None and any(k.trials() for k, _, _ in found) else {}
    paths = {name: Path(options.figures) / f"{name}.{options.format}" for name in drawn}
    if options.json:
        documents = [_document(*each) for each in found]
        files = {name: str(path) for name, path in paths.items()}
        print(
            dumps(
                {"format": FORMAT, "version": VERSION, "searches": documents, "figures": files},
                indent=1,
                ensure_ascii=False,
            )
        )
    else:
        screen = Terminal()
        for kept, answer, truth in found:
            _say(screen, kept, answer, truth, several=len(found) > 1)
    save_figures(drawn, paths, None if options.json else Terminal())


def check_figures(options: argparse.Namespace) -> None:
    """Raises MachineRefuses, before anything is measured, where --figures cannot be written to."""
    if options.figures is None:
        return
    place = Path(options.figures)
    _make(place)
    if not os.access(place, os.W_OK | os.X_OK):
        raise MachineRefuses(f"--figures {place}: cannot be written to; name another directory")


def _make(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineRefuses(f"--figures {place}: cannot be made: {error.strerror}") from None


def save_figures(figures: dict[str, Figure], paths: dict[str, Path], screen: Terminal | None = None) -> None:
    """Draw figures into their files, and say where each is.

    Raises:
        MachineRefuses: they cannot be written.
    """
    for name, figure in figures.items():
        _make(paths[name].parent)
        save(figure, str(paths[name]), Style())
        if screen is not None:
            screen.say_path(f"Figure {name}", str(paths[name]), "dim")


def _say(screen: Terminal, kept: SearchStore, answer: Answer, truth: float | None, *, several: bool) -> None:
    if several:
        screen.say(f"{kept.sought.name}, {kept.sought.policy}:", "bold")
    first, *others = answer_lines(kept.task, answer, kept.trials())
    status = as_line(of_search(kept, answer))
    screen.say(" ".join(filter(None, (status, first))), None if several else "bold")
    notes = finding_lines(answer)
    for line in others:
        if line not in notes:
            screen.say(line)
    if columns := load_columns(kept.task, answer, kept.trials()):
        screen.table(columns[0], columns[1:])
    if truth is not None and answer.rate is not None:
        off = answer.rate / truth - 1
        where = (
            f"{percent(abs(off))} {'above' if off > 0 else 'below'} it" if abs(off) >= 1e-4 else "just that"
        )
        screen.say(f"The simulated server's peak is {truth:g}/s: the answer is {where}.")
    for line in notes[:MOST]:
        say_note(screen, line)
    if more := len(notes[MOST:]):
        screen.say_command(counted(more, "more note"), f"etude peak --json {quote(str(kept.directory))}")
    screen.say_path("Results", str(kept.directory), "dim")


def _figures(found: Sequence[tuple[SearchStore, Answer, float | None]]) -> dict[str, Figure]:
    courses = [_course(*each) for each in found if each[0].trials()]
    names = [course.name for course in courses]
    if len(set(names)) < len(names):
        courses = [
            _named(course, str(kept.directory)) for course, (kept, _, _) in zip(courses, found, strict=False)
        ]
    drawn = {"load-factors": load_factors(courses), "time-at-loads": time_at_loads(courses)}
    if len(found) > 1 and len(courses) == len(found):
        from etude.present.peak_section import (  # loads what pages of reports need
            figure_of,
            searches_of,
        )

        drawn["searches-over-load"] = figure_of(searches_of([str(kept.directory) for kept, _, _ in found]))
    return drawn


def _course(kept: SearchStore, answer: Answer, truth: float | None) -> Course:
    """Load factors are of the truth, else of the answer, else of the highest load that was tried."""
    trials = kept.trials()
    peak = truth or answer.rate or max(trial.load for trial in trials)
    loads, costs = (tuple(getattr(trial, name) for trial in trials) for name in ("load", "cost_s"))
    return Course(kept.sought.policy, peak, loads, costs)


def _named(course: Course, name: str) -> Course:
    return Course(name, course.peak, course.loads, course.costs_s)


def _truth(kept: SearchStore) -> float | None:
    """The peak of a simulated server, whose name says it; None of a cell of a simulated surface, which has a seed."""
    words = kept.sought.harness.split()
    if len(words) != 2 or words[0] != "simulate":
        return None
    try:
        return of_simulation(words[1]).peak
    except UsageError:
        return None


def _document(kept: SearchStore, answer: Answer, truth: float | None) -> dict[str, Any]:
    task, trials = kept.task, kept.trials()
    return {
        "results": str(kept.directory),
        "status": list(of_search(kept, answer)),
        "harness": kept.sought.name,
        "policy": kept.sought.policy,
        "factors": dict(kept.sought.factors),
        "goal": [str(criterion) for criterion in task.goal.criteria],
        "promise": task.promise,
        "within": task.within if task.promise == "rate" else task.width,
        "confidence": task.confidence,
        "rate": answer.rate,
        "low": answer.low if answer.low > 0 else None,
        "high": answer.high if math.isfinite(answer.high) else None,
        "kept": answer.kept,
        "why": answer.why,
        "findings": [{"kind": finding.kind, "what": finding.what} for finding in answer.findings],
        "truth": truth,
        "bench_s": benchmarking_time_s(trials),
        "trials": [_trial(task, trial) for trial in trials],
    }


def _trial(task: Task, trial: Trial) -> dict[str, Any]:
    share = slo_ratio_of(task.goal, trial)
    return {
        "load": trial.load,
        "reading": None if math.isnan(share) else share,
        "response_s": joined_windows(trial.windows).mean_so_far_s,
        "ran_s": trial.ran_s,
        "cost_s": trial.cost_s,
        "ended": trial.ended,
        "limited": trial.limited,
        "note": trial.note,
        **load_members(trial),
        **({"generators": list(map(part_member, trial.generators))} if trial.generators else {}),
    }
