"""Sentences on what was left out on reading, on missing comparisons, and on metrics without figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etude.analysis.comparison import NoComparison
from etude.analysis.subject import ResultNote
from etude.present.sentences.phrases import WITHOUT_SHELL
from etude.units.formatting import counted, percent, quantity

if TYPE_CHECKING:
    from etude.analysis.verdict import MetricSummary

NO_VALUE = "no included trial has a value"


def note_text(note: ResultNote | NoComparison) -> str:
    """The sentence, without a full stop."""
    if isinstance(note, NoComparison):
        return uncompared_text(note)
    match note.kind:
        case "left out":
            return f"{note.where}, line {note.number}: left out: {note.text}"
        case "cut short":
            return f"{note.where}: its last line was truncated and was skipped"
        case "cut before session":
            return f"{note.where}: a line that was cut short before session {note.number} was left out"
        case "restarted":
            return f"the machine was restarted {counted(note.number, 'time')}, as requested"
        case "sessions":
            return (
                f"{'over a pool' if note.pool else 'resumed'}: these are {note.number} sessions: pairs are formed "
                "within one, intervals of means go over them, those of medians, percentiles and trimmed means over "
                "trials: they hold only for these sessions"
            )
        case "transformed":
            return "the transforms made other tests: blocks, and what the stop rule costs, are not counted"
        case _:
            return note.text


def uncompared_text(found: NoComparison) -> str:
    """Reason why a requested metric is not compared, without a full stop."""
    names = ", ".join(found.tests)
    if not found.base:
        return f"no {found.metric} of {names}: no such metric"
    line = f"no {found.metric} of {names} against {found.base}: {found.reason}"
    return line if found.difference is None else f"{line}; {difference_text(found)}"


def difference_text(found: NoComparison) -> str:
    """`the means differ by 0.79 … 1.88 (95 %)`, of a comparison without a ratio that has a difference."""
    assert found.difference is not None
    ends = found.difference.low, found.difference.high
    low, high = (quantity(end, found.unit, max(map(abs, ends)) or None) for end in ends)
    return f"the means differ by {low} … {high} ({percent(found.confidence)})"


def missing_reason(found: MetricSummary) -> str | None:
    """Reason why there are no figures of a metric; None if there are."""
    if found.summary is not None:
        return None
    if found.within_shell:
        return f"not above the start of the shell that is subtracted: {WITHOUT_SHELL}"
    return found.reason or NO_VALUE
