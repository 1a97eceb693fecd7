"""Offered loads as a section: rates and response times, what limited them, and the figures over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from etude.analysis.loads import QUANTILES, kind_figures, load_figures, window_figures
from etude.figures.responses import distributions, over_time
from etude.present.section import Block, Cell, Paragraphs, Picture, Section, Table, number, page_table
from etude.present.sentences.load import (
    answer_lines,
    caveat_lines,
    certainty_line,
    often_line,
    quantile_name,
    rate_text,
    response_text,
    what_line,
)
from etude.present.sentences.replay import missing_lines
from etude.results.engine_reports import LoadReport
from etude.units.formatting import quantity

MOST_ROWS = 200
"""Windows in the table."""
MOST_CURVES = 6
"""Runs whose distributions are drawn."""


def load_section(
    reports: Mapping[int, LoadReport],
    key: str,
    heading: str = "Load",
    *,
    name: str = "",
    where: Sequence[str] = (),
    missing: int = 0,
) -> Section:
    """The section of a load, or of those of a test's trials; arguments as those of `replay_section`."""
    runs = list(reports.values())
    summary = next((run.summary for run in runs if run.summary is not None), None)
    found = load_figures(runs)
    longest = max(runs, key=lambda run: len(run.windows))
    windows = window_figures(longest)
    prefix = f"{name}: " if name else ""
    lines = list(answer_lines(found, summary))
    against = [*caveat_lines(runs, found, windows), *missing_lines(len(runs), missing)]
    blocks: list[Block] = [Paragraphs("Answer", tuple(lines))]
    if against:
        blocks.append(Paragraphs("Caveats", tuple(against)))
    blocks += _pictures(reports, longest)
    blocks += _tables(key, reports, longest)
    asked = {
        "what": [what_line(found, summary)],
        "where": where,
        "often": [often_line(runs, found)],
        "real": [certainty_line(found)],
        "large": [f"{response_text(found)[:1].upper()}{response_text(found)[1:]}."],
        "against": against,
    }
    told = {question: tuple(prefix + line for line in each) for question, each in asked.items()}
    return Section(key, heading, tuple(blocks), tuple(prefix + line for line in lines), told)


def _pictures(reports: Mapping[int, LoadReport], longest: LoadReport) -> list[Block]:
    found: list[Block] = []
    windows = window_figures(longest)
    if len(windows) > 1:
        asked = longest.summary.asked_rate if longest.summary else None
        of = (
            ""
            if len(reports) == 1
            else f" of trial {next(t for t, run in reports.items() if run is longest)}"
        )
        caption = f"Rates and response times over time{of}, by windows."
        found.append(Picture(caption, over_time(windows, asked), (5.0, 3.4)))
    named = [
        (f"trial {trial}" if len(reports) > 1 else "", responses)
        for trial, run in list(reports.items())[:MOST_CURVES]
        if (responses := load_figures([run]).responses) is not None and responses.counts.size
    ]
    if named:
        more = f" (the first {MOST_CURVES} trials)" if len(reports) > MOST_CURVES else ""
        found.append(Picture(f"Share of responses that took longer than a time{more}.", distributions(named)))
    return found


def _tables(key: str, reports: Mapping[int, LoadReport], longest: LoadReport) -> list[Table]:
    percentiles = [quantile_name(percent) for percent in QUANTILES]
    headings = ("offered", "completed", "failed", "mean", *percentiles, "largest")
    rows: list[tuple[Cell, ...]] = []
    for trial, run in reports.items():
        of = load_figures([run])
        rates = (number(rate_text(rate), rate) for rate in (of.offered_rate, of.completed_rate))
        times = (_time(s) for s in (of.mean_s, *of.quantiles_s, of.max_s))
        rows.append((number(str(trial), trial), *rates, number(f"{of.failed:,}", of.failed), *times))
    found = [page_table(f"{key}-runs", "Runs", ("run", *headings), rows, 0)]
    kinds = kind_figures(list(reports.values()))
    if len(kinds) > 1:
        of_kinds = [
            (
                k.name,
                *(number(f"{n:,}", n) for n in (k.completed, k.failed)),
                *map(_time, (k.mean_s, *k.quantiles_s)),
            )
            for k in kinds
        ]
        heads = ("request", "completed", "failed", "mean", *percentiles)
        found.append(page_table(f"{key}-kinds", "Kinds of requests", heads, of_kinds))
    windows = window_figures(longest)
    if len(windows) > 1:
        of_windows = [
            (
                number(quantity(w.end_s, "s"), w.end_s),
                *(number(rate_text(rate), rate) for rate in (w.offered_rate, w.completed_rate)),
                *(number(f"{count:,}", count) for count in (w.failed, w.waiting)),
                *map(_time, w.quantiles_s),
            )
            for w in windows[:MOST_ROWS]
        ]
        heads = ("until", "offered", "completed", "failed", "waiting", *percentiles)
        caption = "Windows" if len(windows) <= MOST_ROWS else f"Windows (the first {MOST_ROWS})"
        found.append(page_table(f"{key}-windows", caption, heads, of_windows, 0))
    return found


def _time(seconds: float | None) -> Cell:
    return number("–" if seconds is None else quantity(seconds, "s"), seconds)
