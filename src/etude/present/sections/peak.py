"""A search as a section: its answer, what was measured next to it, its trials and figures; and as a document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from etude.errors import InputError, UsageError
from etude.figures.data import Curve, Figure, Mark, Point
from etude.figures.peak import Course, Varying, load_factors, readings_over_load, time_at_loads
from etude.peak.search import benchmarking_time_s
from etude.peak.search_store import SearchSpec, SearchStore, part_member, stored_answer
from etude.peak.slo_ratio import QUANTILES, load_figures
from etude.peak.sources import of_simulation
from etude.peak.task import CALIBRATION, Answer, Task, Trial, slo_ratio_of
from etude.peak.window import joined_windows
from etude.present.section import (
    Block,
    Column,
    Command,
    FilePath,
    Paragraphs,
    Picture,
    Section,
    Sentence,
    Table,
    note,
    number,
    page_table,
)
from etude.present.sections.calibration import calibration_blocks, calibration_document, calibration_figures
from etude.present.sentences.notes import MOST
from etude.present.sentences.peak import (
    answer_lines,
    calibration_questions,
    contradiction_line,
    finding_lines,
    goal_text,
    met_line,
    missed_line,
    neighbours,
    of_search,
    question_lines,
    ran_of_text,
    reading_texts,
    served_text,
)
from etude.present.sentences.status import UNFINISHED
from etude.present.sentences.verdict import as_line
from etude.units.formatting import counted, digits, duration, percent, quantity

if TYPE_CHECKING:
    from etude.peak.calibrate import Calibration

FORMAT, VERSION = "etude-peak", 1
HIGHEST = 3.0
"""Highest SLO ratio that is drawn: a system that fails has ratios such as 50."""
WIDE = (5.0, 2.6)
"""Width and height of the figure of one search, inches."""


@dataclass(frozen=True)
class Search:
    """A search that has ended, or was read."""

    name: str
    task: Task
    trials: Sequence[Trial]
    answer: Answer
    policy: str = ""
    factors: Mapping[str, str] = field(default_factory=dict)
    status: tuple[str, ...] = ()
    """Words to show before the answer."""
    truth: float | None = None
    """Peak of a simulated server; None for a real one."""
    place: str = ""
    """Results directory of the search."""
    sought: SearchSpec | None = None
    """Its settings with the text of the harness; None if they are not known."""


def search_of(kept: SearchStore, answer: Answer, truth: float | None = None) -> Search:
    """A search and its answer; `truth`: the peak of a simulated server."""
    sought = kept.sought
    return Search(
        sought.name,
        kept.task,
        kept.trials(),
        answer,
        sought.policy,
        sought.factors,
        of_search(kept, answer),
        truth,
        str(kept.directory),
        sought,
    )


def stored_search(path: str | Path) -> Search:
    """A search as it lies on disk. Raises InputError where there is none."""
    kept = SearchStore(path)
    kept.check_whole("trials")
    return search_of(kept, stored_answer(kept), _truth(kept.sought))


def peak_section(
    search: Search, key: str = "peak-0", heading: str = "Peak rate", *, several: bool = False
) -> Section:
    """The section of one search; `several`: there are others, so that it is named."""
    if search.policy == CALIBRATION:
        return _calibration_section(search, key)
    task, trials, answer = search.task, search.trials, search.answer
    status, lines = as_line(search.status), answer_lines(task, answer, trials)
    against = contradiction_line(task, answer, trials)
    where = f"{search.place}:" if several and search.place else ""
    end = "" if answer.kept else missed_line(task, answer)
    if answer.kept and answer.rate is not None and UNFINISHED not in search.status and not several:
        end = f"Ended: {met_line(task)}"
    ends = (f"{where} {end}".strip(),) if end else ()
    asked = question_lines(task, answer, trials)
    if search.sought is not None and not search.sought.simulated:
        asked["where"] = (served_text(search.sought, trials),)
    blocks: list[Block] = [
        *_answer_blocks(search, lines, several=several),
        Paragraphs("Answer", (*lines, *filter(None, (against,))), room="page"),
    ]
    if any(slo_ratio_of(task.goal, trial) <= HIGHEST for trial in trials):
        blocks.append(Picture(_caption(task, trials), readings_figure(task, trials, answer), WIDE))
    if columns := load_columns(task, answer, trials):
        blocks.append(Table(tuple(columns), f"{key}-loads", "Loads next to the answer", room="page"))
    blocks.append(trials_table(task, trials, key))
    first = " ".join(filter(None, (where, status, lines[0])))
    told = {name: tuple(f"{where} {line}".strip() for line in each) for name, each in asked.items()}
    return Section(key, heading, tuple(blocks), (first, *ends), told)


def calibration_of(search: Search) -> Calibration | None:
    """The calibration that is stored in place of a search; None for a search, or for too few trials."""
    peak = search.task.seed_load or search.truth
    if search.policy != CALIBRATION or peak is None:
        return None
    from etude.peak.calibrate import calibrate  # scipy.optimize is loaded for calibrations alone

    try:
        return calibrate(search.task, peak, search.trials)
    except InputError:
        return None


def _calibration_section(search: Search, key: str) -> Section:
    found, place = calibration_of(search), FilePath("Results", search.place, "aside")
    made = f"A calibration of {counted(len(search.trials), 'trial')}: no peak rate was searched."
    too_few = Sentence("Too few trials to show how they vary: resume it by the same command.")
    shown = [too_few] if found is None else [*calibration_blocks(search.task, found)]
    texts = tuple(block.text for block in shown if isinstance(block, Sentence))
    blocks: list[Block] = [Sentence(" ".join(filter(None, (as_line(search.status), made))), "strong")]
    for block in shown:
        if isinstance(block, Table):
            block = replace(block, key=f"{key}-variation", caption="Variation by load")
        blocks.append(block)
    blocks += [
        Paragraphs("Run length and trials", texts, room="page"),
        trials_table(search.task, search.trials, key),
        place,
    ]
    questions = calibration_questions(search.task, search.trials, texts)
    return Section(key, "Calibration", tuple(blocks), (made, *texts[-2:-1]), questions)


def _answer_blocks(search: Search, lines: Sequence[str], *, several: bool) -> Iterator[Block]:
    answer, notes = search.answer, finding_lines(search.answer)
    if several:
        yield Sentence(f"{search.name}, {search.policy}:", "strong")
    first = " ".join(filter(None, (as_line(search.status), lines[0])))
    yield Sentence(first, "plain" if several else "strong")
    yield from (Sentence(line) for line in lines[1:] if line not in notes)
    if columns := load_columns(search.task, answer, search.trials):
        yield Table(tuple(columns), room="screen")
    if search.truth is not None and answer.rate is not None:
        yield Sentence(_off_truth(answer.rate, search.truth))
    if (against := contradiction_line(search.task, answer, search.trials)) is not None:
        yield note(against)
    yield from map(note, notes[:MOST])
    if more := len(notes[MOST:]):
        yield Command(counted(more, "more note"), f"etude peak --json {quote(search.place)}")
    yield FilePath("Results", search.place, "aside")


def _off_truth(rate: float, truth: float) -> str:
    off = rate / truth - 1
    where = f"{percent(abs(off))} {'above' if off > 0 else 'below'} it" if abs(off) >= 1e-4 else "just that"
    return f"The simulated server's peak is {truth:g}/s: the answer is {where}."


def _caption(task: Task, trials: Sequence[Trial]) -> str:
    beyond = sum(slo_ratio_of(task.goal, trial) > HIGHEST for trial in trials)
    left_out = f"; {beyond} beyond {HIGHEST:g} times the limit are drawn at the edge" if beyond else ""
    return f"Response / limit of each trial ({goal_text(task)}), over the load it was offered{left_out}."


def load_columns(task: Task, answer: Answer, trials: Sequence[Trial]) -> list[Column]:
    """A row for each load that was measured next to the answer; columns without a value are left out.

    Columns that the goal limits are on every screen, however narrow.
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


def trials_table(task: Task, trials: Sequence[Trial], key: str) -> Table:
    """A row a trial, in the order in which they were made."""
    rows = []
    for place, trial in enumerate(trials, 1):
        share = slo_ratio_of(task.goal, trial)
        measured, of_limit = reading_texts(task, trial)
        rows.append(
            (
                number(str(place), place),
                number(task.load_digits(trial.load), trial.load),
                number(measured, share),
                number(of_limit, share),
                number(ran_of_text(trial), trial.ran_s),
                number(duration(trial.cost_s), trial.cost_s),
                trial.note,
            )
        )
    load = "clients" if task.closed else "load, /s"
    headings = ("trial", load, "measured", "of limit", "ran", "benchmarking time", "note")
    return page_table(f"{key}-trials", "Trials of the search", headings, tuple(rows), 0, ("note",))


def readings_figure(task: Task, trials: Sequence[Trial], answer: Answer) -> Figure:
    """Figure 4 of the paper for a search: readings over load, with the answer and its interval."""
    shown = [(t.load, r) for t in trials if (r := slo_ratio_of(task.goal, t)) <= HIGHEST]
    loads, values = (tuple(each[n] for each in shown) for n in (0, 1))
    x = "clients" if task.closed else "load (requests/s)"
    figure = readings_over_load(Varying("trials", loads, values), "response / limit", 1.0, x=x)
    beyond = sorted(t.load for t in trials if slo_ratio_of(task.goal, t) > HIGHEST)
    if beyond:
        clipped = Curve(f"beyond {HIGHEST:g}", tuple(Point(load, HIGHEST) for load in beyond), 1, "hollow")
        (panel,) = figure.panels
        figure = replace(
            figure,
            panels=(replace(panel, layers=(*panel.layers, clipped)),),
            key="below",
            notes=(f"{counted(len(beyond), 'trial')} beyond {HIGHEST:g}, drawn at {HIGHEST:g}",),
        )
    if answer.rate is None:
        return figure
    bounded = answer.low > 0 and math.isfinite(answer.high)
    ends = (answer.low, answer.high) if bounded else (None, None)
    (panel,) = figure.panels
    return replace(
        figure, panels=(replace(panel, layers=(*panel.layers, Mark(answer.rate, 1.0, "answer", *ends))),)
    )


def search_figures(found: Sequence[Search]) -> dict[str, Figure]:
    """Load factors and benchmarking time of searches, by name; none where no trial was made."""
    if len(found) == 1 and (calibration := calibration_of(found[0])) is not None:
        return calibration_figures(found[0].task, calibration)
    tried = [search for search in found if search.trials]
    if not tried:
        return {}
    courses = [_course(search) for search in tried]
    if len({course.name for course in courses}) < len(courses):
        courses = [replace(course, name=search.place) for course, search in zip(courses, tried, strict=True)]
    return {"load-factors": load_factors(courses), "time-at-loads": time_at_loads(courses)}


def _course(search: Search) -> Course:
    """Course of a search; load factors are of the truth, else of the answer, else of the highest tried load."""
    peak = search.truth or search.answer.rate or max(trial.load for trial in search.trials)
    loads, costs = (tuple(getattr(trial, name) for trial in search.trials) for name in ("load", "cost_s"))
    return Course(search.policy, peak, loads, costs)


def _truth(sought: SearchSpec) -> float | None:
    """Peak of a simulated server, known by its name; None for a cell of a simulated surface, which has a seed."""
    words = sought.harness.split()
    if len(words) != 2 or words[0] != "simulate":
        return None
    try:
        return of_simulation(words[1]).peak
    except UsageError:
        return None


def search_document(search: Search) -> dict[str, Any]:
    """A search as JSON-able data (docs/reference/formats.md)."""
    task, trials, answer = search.task, search.trials, search.answer
    calibration = calibration_of(search)
    return {
        "results": search.place,
        "status": list(search.status),
        "harness": search.name,
        "policy": search.policy,
        "factors": dict(search.factors),
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
        "truth": search.truth,
        "bench_s": benchmarking_time_s(trials),
        **({} if calibration is None else {"calibration": calibration_document(calibration)}),
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
