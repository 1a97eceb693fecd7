"""Claims as one page: the verdicts first, each claim with its interval against the bound, the machine, the files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from etude.claims.artifact import checks_of, machines_of
from etude.claims.bound import Bound
from etude.claims.cost import decision_cost
from etude.claims.run import Result
from etude.claims.stored_claims import StoredClaims, recorded_digests
from etude.figures.data import Axis, Curve, Figure, Layer, Line, Panel, Point, label, labels
from etude.present.section import Block, Paragraphs, Picture, Section, Sentence, Table, page_table
from etude.present.sections.claims import claims_section
from etude.present.sentences import artifact as words
from etude.present.sentences import claims as text
from etude.present.to_html import to_page
from etude.present.to_markdown import escaped, table_markdown
from etude.stats.sequential import Estimate
from etude.units.formatting import scale_of
from etude.version import __version__

SIZE = (6.5, 1.3)
"""Width and height of a figure, inches."""


def claims_page(stored: StoredClaims, now: datetime | None = None) -> str:
    """The page of a results directory. `now`: when it was made; the present unless given.

    Raises:
        MachineRefuses: Jinja2 is not installed.
    """
    made = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    results = stored.results()
    verdicts = claims_section(stored.file, results)
    summary = [text.summary(results)]
    table = tuple(
        block for block in verdicts.blocks if not isinstance(block, Sentence) or block.text not in summary
    )
    parts = [
        Section("verdicts", "Claims", (*table, *_caveats(stored, results))),
        *(_claim(stored, r) for r in results),
        _how(stored),
        _badges(stored, results),
    ]
    title = stored.file.title
    return to_page(
        "history.html.j2", title=title, made=made, version=__version__, verdict=summary, parts=parts
    )


def _caveats(stored: StoredClaims, results: Sequence[Result]) -> Iterator[Block]:
    if lines := text.caveats(stored.file, results):
        yield Paragraphs(words.CAVEATS, tuple(lines))


def claims_markdown(stored: StoredClaims) -> str:
    """The verdicts for a pull request: the table, and what would decide those that are undecided."""
    section = claims_section(stored.file, stored.results())
    lines = [f"**{escaped(section.answer[0])}**", ""]
    for block in section.blocks:
        if isinstance(block, Table):
            lines += [*table_markdown(block), ""]
        elif isinstance(block, Sentence) and block.text not in section.answer:
            lines += [escaped(block.text), ""]
    return "\n".join(lines)


def _claim(stored: StoredClaims, result: Result) -> Section:
    name = result.claim.id
    return Section(f"claim-{name}", f"{name}: {result.status}", tuple(_blocks(stored, result)))


def _blocks(stored: StoredClaims, result: Result) -> Iterator[Block]:
    claim = result.claim
    yield Paragraphs(words.CLAIM, (f"{claim.text} ({claim.figure})" if claim.figure else claim.text,))
    reasons = [text.found_text(f, result.level) for f in result.findings]
    yield Paragraphs(words.MEASURED, tuple(reasons) or (text.reason(result),))
    if result.status == "undecided" and (needed := decision_cost(stored.file, result)) is not None:
        yield Paragraphs(
            words.OPEN, (text.undecided(result, stored.file.experiments[claim.experiment].trials, *needed),)
        )
    for finding in result.findings:
        if finding.estimate is not None:
            caption = words.figure_caption(finding.bound)
            figure = interval_figure(finding.bound, [("", finding.estimate)], result.level)
            yield Picture(caption, figure, SIZE)


def interval_figure(bound: Bound, found: Sequence[tuple[str, Estimate]], level: float) -> Figure:
    """Each value with its interval, from left to right, against the ends of the bound."""
    ends = {f"{sign} ": end for sign, end in (("≥", bound.low), ("≤", bound.high)) if _is_end(bound, end)}
    unit = found[0][1].unit
    largest = max(abs(v) for v in (*ends.values(), *(e.value for _, e in found)))
    scale, shown = (1.0, "") if bound.of in ("ratio", "equivalent", "trend") else scale_of(largest, unit)
    layers: list[Layer] = [Line(end / scale, f"{sign}{end / scale:.4g}", "x") for sign, end in ends.items()]
    for place, (_, estimate) in enumerate(found):
        interval = estimate.interval(level)
        row = len(found) - place
        low, high = (end if math.isfinite(end) else estimate.value for end in (interval.low, interval.high))
        bar = (Point(low / scale, row), Point(high / scale, row))
        layers.append(Curve("", bar, place, "line"))
        layers.append(Curve("", (Point(estimate.value / scale, row),), place, "filled"))
    shown_names = labels(name for name, _ in found)
    ticks = tuple((float(len(found) - place), shown_names[name]) for place, (name, _) in enumerate(found))
    axis = Axis("", ticks=ticks, low=0.4, high=len(found) + 0.6)
    title = label(bound.text) + (f" ({shown})" if shown else "")
    return Figure(Axis(title), (Panel(axis, tuple(layers)),), key="off", kind="claims")


def _is_end(bound: Bound, end: float) -> bool:
    """True if a value can lie beyond it: a ratio is above 0 anyway."""
    return math.isfinite(end) and not (bound.is_ratio and end == 0.0)


def _how(stored: StoredClaims) -> Section:
    rows = [
        (name, test, line)
        for name in stored.state.experiments
        for test, line in stored.file.experiments[name].commands.items()
    ]
    files = [(name, digest) for name, digest in recorded_digests(stored).items()]
    machines = dict.fromkeys(line for m in machines_of(stored).values() if (line := words.machine_line(m)))
    return Section(
        "how",
        words.HOW,
        (
            *([Paragraphs(words.MACHINE, tuple(machines))] if machines else []),
            page_table("commands", words.COMMANDS, ("experiment", "test", "command"), rows, 3),
            page_table("files", words.FILES, ("file", "SHA-256 or build id"), files, 2),
        ),
    )


def _badges(stored: StoredClaims, results: Sequence[Result]) -> Section:
    rows = [
        (words.BADGES[c.badge], words.ITEMS[c.item], words.MARKS[c.met], c.detail)
        for c in checks_of(stored, results)
    ]
    table = page_table("badges", words.LISTS_CAPTION, ("badge", "item", "met", "detail"), rows, 4)
    return Section("badges", words.LISTS, (table,))
