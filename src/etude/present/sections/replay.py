"""Replays as a section: the verdict, recorded against replayed times, lateness, and what was not played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from etude.analysis.replays import TimePair, dropped_transfers, time_pairs
from etude.figures.replays import lateness, recorded_and_replayed
from etude.present.section import Block, Cell, Paragraphs, Picture, Section, Table, number, page_table
from etude.present.sentences.replay import (
    caveat_lines,
    certainty_line,
    lateness_lines,
    left_out_lines,
    missing_lines,
    played_line,
    ratio_text,
    size_text,
    time_lines,
    verdict_line,
)
from etude.results.engine_reports import ReplayReport
from etude.units.formatting import counted, percent, quantity

MOST_ROWS = 50
"""Calls with another result in the table."""


def replay_section(
    reports: Mapping[int, ReplayReport],
    key: str,
    heading: str = "Replay",
    *,
    name: str = "",
    where: Sequence[str] = (),
    missing: int = 0,
) -> Section:
    """The section of a replay, or of those of a test's trials.

    `name`: begins its sentences where there are several sections. `where`: on what it ran, if no other part of the page
    has that. `missing`: trials without a whole report.
    """
    every = list(reports.values())
    first = next((each for each in every if each.mismatches), every[0])
    prefix = f"{name}: " if name else ""
    pairs = list(time_pairs(every))
    left, late, against = list(left_out_lines(first)), list(lateness_lines(every)), list(caveat_lines(every))
    against += missing_lines(len(reports), missing)
    times = list(time_lines(every))
    blocks: list[Block] = [Paragraphs("Answer", (verdict_line(reports), *times, *late))]
    if left:
        blocks.append(Paragraphs("What differs from the program", tuple(left)))
    blocks.append(Paragraphs("Caveats", tuple(against)))
    known = "recorded and replayed" if any(pair.original_s for pair in pairs) else "replayed"
    blocks.append(
        Picture(f"Time {known}: {', '.join(pair.what for pair in pairs)}.", recorded_and_replayed(pairs))
    )
    if delays := {trial: each.lateness_s for trial, each in reports.items() if each.lateness_s is not None}:
        caption = "How late calls began after their scheduled times, of each trial."
        blocks.append(Picture(caption, lateness(delays)))
    blocks += _tables(key, pairs, first)
    asked = {
        "what": [played_line(first)],
        "where": where,
        "often": [f"{counted(len(reports), 'replay')}."],
        "real": [certainty_line(every)],
        "large": times,
        "against": against,
    }
    told = {question: tuple(prefix + line for line in lines) for question, lines in asked.items()}
    answer = tuple(prefix + line for line in (verdict_line(reports), times[0], *left))
    return Section(key, heading, tuple(blocks), answer, told)


def _tables(key: str, pairs: Sequence[TimePair], report: ReplayReport) -> Iterator[Table]:
    several = len(pairs[0].replayed_s) > 1
    names = ("replayed", "least", "greatest") if several else ("replayed",)
    rows: list[tuple[Cell, ...]] = []
    for pair in pairs:
        ends = (min(pair.replayed_s), max(pair.replayed_s)) if several else ()
        times = map(_time, (fmean(pair.replayed_s), *ends))
        recorded, ratio = number(_recorded(pair), pair.original_s), number(ratio_text(pair), pair.ratio)
        rows.append((pair.what, recorded, *times, ratio))
    yield page_table(f"{key}-times", "Times", ("time", "recorded", *names, "ratio"), rows)
    yield page_table(
        f"{key}-calls",
        "Calls of one replay, by name",
        ("call", "calls", "time", "median", "p99", "bytes", "errors", "another result"),
        [_call(name, report) for name in sorted(report.by_call, key=lambda n: -report.by_call[n].time_s)],
    )
    if dropped := report.unplayed.dropped:
        moving = dropped_transfers(report)
        ordered = [*moving, *(kind for kind in dropped if kind not in moving)]
        yield page_table(
            f"{key}-dropped",
            "Calls of the program that the script lacks",
            ("call", "reason", "calls", "bytes", "time in the program"),
            [
                (k.call, k.why, _count(k.calls), number(size_text(k.bytes), k.bytes), _time(k.time_s))
                for k in ordered
            ],
            2,
        )
    if report.other_results:
        more = len(report.other_results) - MOST_ROWS
        caption = "Calls with another result" + (f" (the first {MOST_ROWS})" if more > 0 else "")
        yield page_table(
            f"{key}-results",
            caption,
            ("call", "thread", "step", "recorded", "replayed"),
            [
                (o.line, *(number(str(n), n) for n in (o.thread, o.step, o.expected, o.got)))
                for o in report.other_results[:MOST_ROWS]
            ],
        )


def _recorded(pair: TimePair) -> str:
    if pair.original_s is None:
        return "not known"
    return f"{'≥ ' if pair.lower_bound else ''}{quantity(pair.original_s, 's')}"


def _call(name: str, report: ReplayReport) -> tuple[Cell, ...]:
    of = report.by_call[name]
    share = f" ({percent(of.mismatches / of.count)})" if of.mismatches and of.count else ""
    return (
        name,
        _count(of.count),
        _time(of.time_s),
        _time(of.median_s),
        _time(of.p99_s),
        number(size_text(of.bytes) if of.bytes else "–", of.bytes),
        _count(of.errors),
        number(f"{of.mismatches:,}{share}", of.mismatches),
    )


def _count(count: int) -> Cell:
    return number(f"{count:,}", count)


def _time(seconds: float) -> Cell:
    return number(quantity(seconds, "s"), seconds)
