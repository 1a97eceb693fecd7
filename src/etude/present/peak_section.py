"""A search in a report: its answer, each trial's reading over its load, and the trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from etude.figures.data import Figure, Mark
from etude.figures.peak import Varying, readings_over_load
from etude.peak.slo_ratio import slo_ratio_of
from etude.peak.task import Answer, Task, Trial
from etude.present.page.section import Paragraphs, Picture, Section
from etude.present.page.tables import Table, number, words
from etude.present.peak_text import answer_lines, goal_text, missed_line, ran_text, reading_texts
from etude.units.formatting import duration

HIGHEST = 3.0
"""Readings beyond are not drawn: of a system that died one is 50."""


def peak_part(task: Task, trials: Sequence[Trial], answer: Answer, key: str, heading: str) -> Section:
    """The section of one search."""
    pictures: tuple[Picture, ...] = ()
    if any(slo_ratio_of(task.goal, trial) <= HIGHEST for trial in trials):
        caption = (
            f"Each trial's reading, as a share of its limit ({goal_text(task)}), over the load it was offered"
        )
        beyond = sum(slo_ratio_of(task.goal, trial) > HIGHEST for trial in trials)
        left_out = f"; {beyond} beyond {HIGHEST:g} times the limit are not drawn" if beyond else ""
        pictures = (Picture(f"{caption}{left_out}.", readings_figure(task, trials, answer)),)
    lines = tuple(answer_lines(task, answer, trials))
    paragraphs = (Paragraphs("Answer", lines),)
    missed = () if answer.kept else (missed_line(task, answer),)
    return Section(
        key, heading, paragraphs, pictures, (trials_table(task, trials, key),), (lines[0], *missed)
    )


def readings_figure(task: Task, trials: Sequence[Trial], answer: Answer) -> Figure:
    """Figure 4 of the paper for a search: readings over load, with the answer and its interval."""
    shown = [(t.load, r) for t in trials if (r := slo_ratio_of(task.goal, t)) <= HIGHEST]
    loads, values = (tuple(each[n] for each in shown) for n in (0, 1))
    x = "clients" if task.closed else "load (requests/s)"
    figure = readings_over_load(Varying("trials", loads, values), "reading, of its limit", 1.0, x=x)
    if answer.rate is None:
        return figure
    bounded = answer.low > 0 and math.isfinite(answer.high)
    ends = (answer.low, answer.high) if bounded else (None, None)
    (panel,) = figure.panels
    return replace(
        figure, panels=(replace(panel, layers=(*panel.layers, Mark(answer.rate, 1.0, "answer", *ends))),)
    )


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
                number(ran_text(trial), trial.ran_s),
                number(duration(trial.cost_s), trial.cost_s),
                words(trial.note),
            )
        )
    load = "clients" if task.closed else "load, /s"
    headings = ("trial", load, "measured", "of limit", "ran", "benchmarking time", "note")
    return Table(f"{key}-trials", "Trials of the search", headings, tuple(rows), 0)
