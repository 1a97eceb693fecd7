"""Comparison of several searches: their peak rates, the ratios of these, and doubts about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from etude.figures.data import Figure
from etude.figures.peak import Searched, searches_over_load
from etude.peak.compare_searches import Ratio, incomparable_reasons, ratio
from etude.peak.search import benchmarking_time_s
from etude.peak.task import Criterion, slo_ratio_of
from etude.present.section import Paragraphs, Picture, Section, Table, number, page_table
from etude.present.sections.peak import HIGHEST, Search, stored_search
from etude.present.sentences.peak import (
    confidence_text,
    goal_text,
    span_text,
    why_missed,
)
from etude.units.formatting import counted, duration, percent, span


def searches_of(paths: Sequence[str]) -> tuple[Search, ...]:
    """The searches of these directories, named by what they differ in: values of their factors, else their places.

    Raises:
        InputError: one of them cannot be read.
    """
    return named_apart([stored_search(path) for path in paths], paths)


def named_apart(found: Sequence[Search], paths: Sequence[str]) -> tuple[Search, ...]:
    """The searches, named by what they differ in: the values of their factors, else their places."""
    names = names_of([search.factors for search in found], paths)
    return tuple(replace(search, name=name) for search, name in zip(found, names, strict=True))


def names_of(factors: Sequence[Mapping[str, str]], paths: Sequence[str]) -> tuple[str, ...]:
    """Names such as `fs=ext4` and `fs=xfs`, if that is the factor in which they differ."""
    every = sorted({name for table in factors for name in table})
    varying = [name for name in every if len({table.get(name) for table in factors}) > 1]
    names = tuple(" ".join(f"{name}={table.get(name, '–')}" for name in varying) for table in factors)
    return names if len(set(names)) == len(names) else tuple(Path(path).name or path for path in paths)


def peaks_section(searches: Sequence[Search]) -> Section:
    """Section on all searches; the first one is the baseline."""
    first, *others = searches
    told = incomparable_reasons([each.task for each in searches])
    ratios = [ratio(first.answer, each.answer) for each in others]
    sentences = [_sentence(first, each, found) for each, found in zip(others, ratios, strict=True)]
    if told:
        sentences = [f"They have different targets, and are not compared: {', '.join(told)}."]
        ratios = [Ratio(None, 0.0, math.inf) for _ in others]
    lines = (*(_peak(each) for each in searches), *sentences)
    against = tuple(line for each in searches for line in _against(each))
    paragraphs = [Paragraphs("Answer", lines)]
    if against:
        paragraphs.append(Paragraphs("Caveats", against))
    pictures = (Picture(_caption(searches), figure_of(searches), (5.0, 3.2)),) if _drawn(searches) else ()
    table = _table(searches, [Ratio(1.0, 1.0, 1.0), *ratios])
    blocks = (*paragraphs, *pictures, table)
    return Section("peaks", "Peak rates compared", blocks, tuple(sentences))


def figure_of(searches: Sequence[Search]) -> Figure:
    """Figure of searches for a goal with one limit of response times in its own unit, else as response / limit."""
    task = searches[0].task
    timed = [criterion for criterion in task.goal.criteria if criterion.of != "errors"]
    alike = all(each.task.goal == task.goal for each in searches)
    only = timed[0] if alike and len(timed) == 1 else None
    if only is not None:
        what = "mean response" if only.percent is None else f"{only.percent:g} % of responses within"
        y, limit = f"{what} (ms)", 1e3 * only.limit
    else:
        y, limit = "response / limit", 1.0
    found = [_searched(each, only, limit) for each in searches]
    return searches_over_load(found, y, limit, x="clients" if task.closed else "load (requests/s)")


def _drawn(searches: Sequence[Search]) -> bool:
    return any(slo_ratio_of(each.task.goal, trial) <= HIGHEST for each in searches for trial in each.trials)


def _searched(search: Search, only: Criterion | None, limit: float) -> Searched:
    goal, answer = search.task.goal, search.answer
    told = []
    for trial in search.trials:
        worst = slo_ratio_of(goal, trial)
        share = worst if only is None else only.reading(trial.windows)
        if trial.of_server and worst <= HIGHEST and share is not None:
            told.append((trial.load, share))
    low = answer.low if answer.low > 0 else None
    high = answer.high if math.isfinite(answer.high) else None
    loads, values = tuple(load for load, _ in told), tuple(limit * r for _, r in told)
    return Searched(search.name, loads, values, answer.rate, low, high)


def _caption(searches: Sequence[Search]) -> str:
    beyond = sum(slo_ratio_of(s.task.goal, t) > HIGHEST for s in searches for t in s.trials)
    left_out = f"; not drawn: {counted(beyond, 'trial')} beyond {HIGHEST:g} times the limit" if beyond else ""
    return (
        f"What trials measured over the load they were offered ({goal_text(searches[0].task)}), and each search's peak "
        f"rate with its interval{left_out}."
    )


def _peak(search: Search) -> str:
    task, answer = search.task, search.answer
    level = f"with {confidence_text(task.confidence)} confidence"
    between = span_text(task, answer.low, answer.high)
    if answer.rate is None:
        return f"{search.name}: no peak rate can be given; it lies in {between} {level}."
    return f"{search.name}: peak rate {task.load_text(answer.rate)}, in {between} {level}."


def _sentence(first: Search, other: Search, found: Ratio) -> str:
    who = f"{other.name} against {first.name}"
    if found.value is None:
        return f"{who}: no ratio can be given: a search has no rate; by their bounds it is in {_span(found)}."
    level = confidence_text(first.task.confidence)
    times = f"{found.value:.3g} times the peak rate, in {_span(found)} ({level})"
    if found.differs:
        apart = f"{percent(abs(found.value - 1.0))} {'less' if found.value < 1.0 else 'more'}"
        return f"{who}: {times}: {apart}; the interval excludes 1."
    return f"{who}: {times}: no difference is shown: the interval contains 1 or is unbounded."


def _span(found: Ratio) -> str:
    if found.low > 0 and math.isfinite(found.high):
        return span(found.low, found.high)
    return f"{'?' if found.low <= 0 else f'{found.low:.3g}'} … {'?' if math.isinf(found.high) else f'{found.high:.3g}'}"


def _against(search: Search) -> tuple[str, ...]:
    answer = search.answer
    kept = () if answer.kept else (f"{search.name}: the target is not met: {why_missed(answer)}.",)
    found = tuple(f"{search.name}: {finding.kind}: {finding.what}" for finding in answer.findings)
    limited = sum(trial.limited == "generator" for trial in search.trials)
    own = (
        (f"{search.name}: in {limited} of {len(search.trials)} trials the load generator was the limit.",)
        if limited
        else ()
    )
    return (*kept, *found, *own)


def _table(searches: Sequence[Search], ratios: Sequence[Ratio]) -> Table:
    rows = []
    for each, found in zip(searches, ratios, strict=True):
        task, answer, cost = each.task, each.answer, benchmarking_time_s(each.trials)
        rate = "–" if answer.rate is None else task.load_text(answer.rate)
        rows.append(
            (
                each.name,
                number(rate, answer.rate),
                span_text(task, answer.low, answer.high),
                number("–" if found.value is None else f"{found.value:.3g}", found.value),
                ("–" if each is searches[0] else _span(found)),
                number(str(len(each.trials)), len(each.trials)),
                number(duration(cost), cost),
                ("met" if answer.kept else "not met"),
                (", ".join(finding.kind for finding in answer.findings) or "–"),
            )
        )
    level = confidence_text(searches[0].task.confidence)
    headings = (
        "search",
        "peak rate",
        level,
        "ratio",
        f"{level} of it",
        "trials",
        "benchmarking time",
        "target",
        "findings",
    )
    return page_table("peaks-table", "Searches", headings, tuple(rows), 1)
