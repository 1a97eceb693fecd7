"""Causes of a difference as a page: a waterfall of contributions, a flame graph, calls, files, processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from statistics import fmean

from etude.figures.data import GREY, Axis, Bars, Box, Figure, Panel, labels
from etude.present.flame_graph import LONGER, NEUTRAL, SHORTER, flame_graph
from etude.present.section import Block, Cell, Paragraphs, Picture, Section, Sentence, number, page_table
from etude.present.sections.why import why_section
from etude.present.sentences import why as text
from etude.present.to_html import to_page
from etude.units.formatting import quantity, scale_of
from etude.version import __version__
from etude.why.breakdown import Parts, by_file, by_place, by_process, call_rows
from etude.why.contributions import Contribution, CountDifference, Split
from etude.why.instructions import InstructionDifferences
from etude.why.instrumented_pairs import Instrumented
from etude.why.instruments import CallCount
from etude.why.stacks import mean_stacks

SIZE = (9.0, 4.2)
"""Width and height of the waterfall, inches."""
LABEL = 30
"""Characters of a cause's name below it."""
VERMILION, BLUE = 1, 0


def why_page(
    found: Instrumented,
    plain: Contribution,
    split: Split | None,
    counts: Sequence[CountDifference],
    instructions: InstructionDifferences | None = None,
) -> str:
    """The page. Raises MachineRefuses: Jinja2 is not installed, or the engine cannot be run."""
    section = why_section(found, plain, split, counts, instructions)
    stacks = mean_stacks(*([run.stacks for run in side if run.stacks] for side in found.runs))
    shown = (section.heading, f"{text.COUNTS}:")
    lines = tuple(b.text for b in section.blocks if isinstance(b, Sentence) and b.text not in shown)
    differing = [replace(t, caption=text.MEDIANS) for t in section.tables if t.key == "counts"]
    blocks = (
        _causes(found, split),
        _functions(found, bool(stacks)),
        (*differing, *_calls(found), *(t for t in section.tables if t.key == "instructions")),
        (
            *_parts("files", text.FILE, text.FILES, by_file(found.calls), found),
            *_parts("places", text.PLACE, text.PLACES, by_place(found.runs), found),
        ),
        ()
        if found.lacking and not stacks
        else _parts("processes", text.PROCESS, text.PROCESSES, by_process(found.runs), found),
        [Paragraphs(text.MEANING, lines)],
    )
    parts = [Section(*head, tuple(each)) for head, each in zip(text.PAGE.items(), blocks, strict=True)]
    return to_page(
        "why.html.j2",
        flame=flame_graph(stacks) if stacks else None,
        title=f"{found.a}, {found.b}",
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        verdict=[section.heading],
        parts=[part for part in parts if part.blocks],
        legend=tuple(zip(text.legend(found.a, found.b), (LONGER, NEUTRAL, SHORTER), strict=True)),
        label=text.FLAME_LABEL,
        help=text.FLAME_HELP,
    )


def _causes(found: Instrumented, split: Split | None) -> Iterator[Block]:
    if split is None:
        return
    figure = waterfall(found, split)
    yield Picture(
        text.waterfall_caption(found.a, found.b, split, figure.panels[0].y.low == 0.0), figure, SIZE
    )
    rows = [
        (
            text.cause_text(c.cause),
            c.cause.process,
            _seconds(c),
            number(text.share_text(c, split.whole), c.mean_s),
        )
        for c in split.listed
        if c.cause
    ]
    yield page_table("causes", text.CAUSES, (text.CAUSE, text.PROCESS, text.DIFFERENCE, text.SHARE), rows, 2)


def waterfall(found: Instrumented, split: Split) -> Figure:
    """The mean time of the first test, each contribution on top of what stands before it, and that of the second."""
    first_s = fmean(run.elapsed_s for n, run in enumerate(found.runs[0]) if n not in split.left_out)
    scale, unit = scale_of(first_s + max(0.0, split.whole.mean_s), "s")
    steps = [(text.cause_text(c.cause), c) for c in split.listed if c.cause]
    boxes: dict[int, list[Box]] = {GREY: [Box(0.0, 0.8, 0.0, first_s / scale)], VERMILION: [], BLUE: []}
    at = first_s
    ends = [first_s]
    for place, (_, step) in enumerate([*steps, ("", split.rest)], 1):
        low, high = at + step.low_s, at + step.high_s
        box = Box(place, 0.8, at / scale, (at + step.mean_s) / scale, low / scale, high / scale)
        boxes[VERMILION if step.mean_s > 0 else BLUE].append(box)
        at += step.mean_s
        ends += [at, low, high]
    names = [found.a, *(name for name, _ in steps), text.REST, found.b]
    boxes[GREY].append(Box(len(names) - 1.0, 0.8, 0.0, at / scale))
    low, high = min(ends), max(ends)
    bottom = max(0.0, low - (high - low))
    bottom = 0.0 if bottom < 0.3 * low else bottom
    means = {GREY: "", VERMILION: text.MEANS["longer"], BLUE: text.MEANS["shorter"]}
    layers = tuple(Bars(means[colour], tuple(each), colour) for colour, each in boxes.items() if each)
    y = Axis(f"{text.TIME} ({unit})", low=bottom / scale, high=(high + 0.05 * (high - bottom)) / scale)
    shown = labels(names, LABEL)
    ticks = tuple((float(n), shown[name]) for n, name in enumerate(names))
    return Figure(Axis(ticks=ticks, rotate=30.0), (Panel(y, layers),), key="outside", kind="why")


def _functions(found: Instrumented, known: bool) -> Iterator[Block]:
    if known:
        yield Paragraphs(text.MEANING, (text.FLAME,))
    yield Paragraphs(text.NOT_DRAWN, (text.SMALL,) if known else found.lacking or (text.NO_STACKS,))


def _calls(found: Instrumented) -> Iterator[Block]:
    rows, count = call_rows(found.calls)
    if rows:
        cells = [(f"{r.call}()", r.file, _count(r.a), _count(r.b)) for r in rows]
        caption = text.parts_caption(text.CALLS, len(rows), count)
        yield page_table("all-calls", caption, (text.CALL, text.FILE, found.a, found.b), cells, 2)


def _parts(key: str, heading: str, caption: str, parts: Parts, found: Instrumented) -> Iterator[Block]:
    listed, count = parts
    rows = [(p.name or text.NO_PLACE, _time(p.a_s), _time(p.b_s), _seconds(p.difference)) for p in listed]
    if rows:
        told = text.parts_caption(caption, len(rows), count)
        yield page_table(key, told, (heading, found.a, found.b, text.DIFFERENCE), rows)


def _seconds(found: Contribution) -> Cell:
    return number(text.seconds_text(found), found.mean_s)


def _count(count: CallCount) -> Cell:
    return number(text.count_text(count), count.count)


def _time(seconds: float) -> Cell:
    return number(quantity(seconds, "s"), seconds)
