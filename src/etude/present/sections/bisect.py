"""A bisection on a screen, as a page and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np

from etude.bisect.request import NAME_LENGTH
from etude.bisect.result import BisectResult
from etude.figures.bisect import bisect_figure
from etude.figures.data import Figure
from etude.present.section import Block, Paragraphs, Picture, Section, Sentence, Table, number, page_table
from etude.present.sentences.bisect import (
    chance_text,
    change_lines,
    cost_line,
    detail_lines,
    doubt_lines,
    range_line,
    step_text,
    verdict_line,
)
from etude.present.to_html import to_page
from etude.version import __version__

SIZE = (9.0, 5.0)
MOST_ROWS = 10
"""Commits in the table on a screen."""
FORMAT, VERSION = "etude-bisect", 1


def bisect_blocks(result: BisectResult) -> Iterator[Block]:
    """The bisection on a screen: the verdict, the likeliest commits, then notes."""
    yield Sentence(verdict_line(result))
    table = _likely(result, MOST_ROWS, "bisect")
    if len(table.columns[0].cells) > 1:
        yield table
    yield from map(Sentence, detail_lines(result))


def bisect_figure_of(result: BisectResult) -> Figure | None:
    """The figure of a bisection; None before there is a posterior."""
    posterior, answer = result.state.posterior, result.answer
    if posterior is None:
        return None
    names = [commit.sha for commit in result.commits]
    around = (answer.first, answer.last) if answer.kind not in ("none", "drift") else (0, 0)
    return bisect_figure(posterior, result.state.evidence.measured().tolist(), names, around)


def bisect_section(result: BisectResult, key: str = "bisect-0", heading: str = "Bisection") -> Section:
    """The section of a page about one bisection."""
    blocks: list[Block] = [Paragraphs("Cost and notes", tuple(detail_lines(result)))]
    if (figure := bisect_figure_of(result)) is not None:
        caption = f"Above: probability of the step at each commit. Below: levels of {result.request.metric}."
        blocks += [
            Picture(caption, figure, SIZE),
            _likely(result, 4 * MOST_ROWS, key),
            _levels(result, key),
        ]
    if result.skipped:
        blocks.append(_skipped(result, key))
    verdict = verdict_line(result)
    answers = {
        "what": (range_line(result),),
        "often": (cost_line(result),),
        "real": (verdict,),
        "large": tuple(change_lines(result)),
        "against": tuple(doubt_lines(result)),
    }
    return Section(key, heading, tuple(blocks), (verdict,), answers)


def bisect_page(result: BisectResult, now: datetime | None = None) -> str:
    """The page of a bisection. now: when it was made (default: the present).

    Raises:
        MachineRefuses: Jinja2 is not installed.
    """
    made = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    first, last = (commit.sha[:NAME_LENGTH] for commit in (result.commits[0], result.commits[-1]))
    return to_page(
        "history.html.j2",
        title=f"Bisection of {result.request.metric}: {first} to {last}",
        made=made,
        version=__version__,
        verdict=[verdict_line(result)],
        parts=[bisect_section(result, heading="Commits")],
    )


def _likely(result: BisectResult, most: int, key: str) -> Table:
    posterior = result.state.posterior
    rows: list[tuple[Any, ...]] = []
    if posterior is not None:
        for place in np.argsort(-posterior.commits, kind="stable")[:most].tolist():
            share = float(posterior.commits[place])
            if share >= 0.001:
                commit = result.commits[place]
                state = "skipped" if place in result.skipped else ""
                rows.append(
                    (commit.sha[:NAME_LENGTH], commit.subject, number(chance_text(share), share), state)
                )
    headings: tuple[str, ...] = ("commit", "subject", "probability", "state")
    if not any(row[-1] for row in rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return page_table(f"{key}-likely", "Likeliest commits of the step", headings, rows, 2, ("state",))


def _levels(result: BisectResult, key: str) -> Table:
    state, posterior = result.state, result.state.posterior
    rows: list[tuple[Any, ...]] = []
    if posterior is not None:
        counts = np.bincount(state.evidence.commits, minlength=len(result.commits))
        measured = state.evidence.measured().tolist()
        for place, level, error in zip(measured, posterior.levels, posterior.level_errors, strict=True):
            size = 100.0 * math.expm1(float(level))
            text = f"{size:+.2f} ± {200.0 * float(error):.2f} %" if place else "0"
            trials = int(counts[place])
            commit = result.commits[place]
            rows.append(
                (commit.sha[:NAME_LENGTH], commit.subject, number(str(trials), trials), number(text, size))
            )
    return page_table(
        f"{key}-levels", "Measured commits", ("commit", "subject", "trials", "level against GOOD"), rows, 2
    )


def _skipped(result: BisectResult, key: str) -> Table:
    rows = [(result.commits[place].sha[:NAME_LENGTH], why) for place, why in sorted(result.skipped.items())]
    return page_table(f"{key}-skipped", "Commits that were skipped", ("commit", "why"), rows, 2)


def bisect_document(result: BisectResult) -> dict[str, Any]:
    """The bisection as JSON."""
    answer, posterior, state = result.answer, result.state.posterior, result.state
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "answer": answer.kind,
        "probability": answer.probability,
        "commits": [result.commits[place].sha for place in range(answer.first, answer.last + 1)]
        if answer.first
        else [],
        "confidence": result.request.confidence,
        "at_least": result.request.at_least,
        "metric": result.request.metric,
        "trials": state.trials,
        "builds": len(state.built),
        "measuring_s": result.measuring_s,
        "building_s": result.building_s,
        "skipped": [
            {"commit": result.commits[i].sha, "why": why} for i, why in sorted(result.skipped.items())
        ],
        "notes": result.notes,
    }
    if posterior is not None:
        low, high = posterior.change_interval(0.95)
        counts = np.bincount(state.evidence.commits, minlength=len(result.commits))
        document |= {
            "step": {
                "size": math.expm1(posterior.step),
                "deviation": posterior.step_error,
                "text": step_text(result),
            },
            "change": {
                "size": math.expm1(posterior.change),
                "low": math.expm1(low),
                "high": math.expm1(high),
            },
            "none": posterior.none,
            "drift": posterior.drift,
            "several": posterior.several,
            "posterior": [
                {"commit": commit.sha, "probability": float(share), "trials": int(count)}
                for commit, share, count in zip(result.commits, posterior.commits, counts, strict=True)
                if share > 1e-6 or count
            ],
        }
    return document
