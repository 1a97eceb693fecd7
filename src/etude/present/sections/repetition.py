"""A repetition as a section: what is reproduced, and what differs; and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from etude.analysis.repetition import Change, RepeatedLevel, RepeatedRatio, Repetition
from etude.present.section import Block, Column, FilePath, Sentence, Table
from etude.present.sentences import comparison as text
from etude.present.sentences.repetition import outcome_reason, repetition_notes
from etude.stats.ratio import Ratio
from etude.units.formatting import quantity, span

HEADINGS = {"then": 2, "now": 1, "now / then": 0, "verdict": 0}
"""Columns of the table; where it is too wide, those of the highest rank are left out first."""
MOST_DIFFERENCES = 30


def again_blocks(again: Repetition, first: str) -> Iterator[Block]:
    """Blocks below the new verdict. `first`: the results that were repeated."""
    yield Sentence()
    yield FilePath("Again", first)
    first_cells, *cells = zip(*rows(again), strict=True) if again.parts else [()] * 5
    columns = (Column(head, each, rank) for (head, rank), each in zip(HEADINGS.items(), cells, strict=True))
    yield Table((Column(again.metric, first_cells), *columns))
    yield from map(Sentence, (*lines(again), last_line(again)))


def rows(again: Repetition) -> Iterator[tuple[str, ...]]:
    """The table: what, then, now, the change, the verdict."""
    for r in again.ratios:
        yield f"{r.other} / {r.base}", _ratio(r.then), _ratio(r.now), _change(r.change), r.outcome
    for level in again.levels:
        then, now = (quantity(value, level.unit, level.then) for value in (level.then, level.now))
        yield level.test, then, now, _change(level.change), level.outcome or "–"


def lines(again: Repetition) -> Iterator[str]:
    """All lines below the table."""
    said: dict[str, list[str]] = {}
    for part in again.parts:
        said.setdefault(f"{part.outcome or 'not judged'}: {outcome_reason(part)}.", []).append(_name(part))
    yield from (f"{', '.join(names)}: {reason}" for reason, names in said.items())
    yield from repetition_notes(again)
    if not again.differences:
        yield "No recorded property of machine, boot and versions differs."
        return
    yield "What differs:"
    yield from (f"  {difference}" for difference in again.differences[:MOST_DIFFERENCES])
    if len(again.differences) > MOST_DIFFERENCES:
        yield f"  … and {len(again.differences) - MOST_DIFFERENCES} more (--json)"


def last_line(again: Repetition) -> str:
    """The verdict on the verdicts."""
    counts = {
        word: sum(part.outcome == word for part in again.parts)
        for word in ("reproduced", "not reproduced", "undecided", None)
    }
    told = ", ".join(f"{count} {word or 'not judged'}" for word, count in counts.items() if count)
    return f"{again.outcome.capitalize()} ({told or 'nothing to compare'})."


def _name(part: RepeatedRatio | RepeatedLevel) -> str:
    return f"{part.other} / {part.base}" if isinstance(part, RepeatedRatio) else part.test


def _ratio(ratio: Ratio | None) -> str:
    return "–" if ratio is None else f"{text.ratio_text(ratio)} ({span(ratio.low, ratio.high)})"


def _change(change: Change | None) -> str:
    return "–" if change is None else f"{change.ratio:.3f} ({span(change.low, change.high)})"


def to_document(again: Repetition, then: str, now: str) -> dict[str, Any]:
    """The repetition as JSON-able data (docs/howto/planning.md). `then`, `now`: the results directories."""
    return {
        "format": "etude-again",
        "version": 1,
        "then": then,
        "now": now,
        "metric": again.metric,
        "outcome": again.outcome,
        "comparisons": [
            {
                "base": r.base,
                "other": r.other,
                "then": _ratio_document(r.then),
                "now": _ratio_document(r.now),
                **_judged(r),
            }
            for r in again.ratios
        ],
        "tests": [
            {"test": level.test, "unit": level.unit, "then": level.then, "now": level.now, **_judged(level)}
            for level in again.levels
        ],
        "differences": [{"what": d.what, "then": d.then, "now": d.now} for d in again.differences],
        "notes": list(repetition_notes(again)),
    }


def _judged(part: RepeatedRatio | RepeatedLevel) -> dict[str, Any]:
    change = part.change
    return {
        "change": change and {name: getattr(change, name) for name in ("ratio", "low", "high", "p")},
        "adjusted_p": part.adjusted_p,
        "outcome": part.outcome,
        "reason": outcome_reason(part),
    }


def _ratio_document(ratio: Ratio | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    return {name: getattr(ratio, name) for name in ("ratio", "low", "high", "count")}
