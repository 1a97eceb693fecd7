"""Causes of a difference: ranked, with their shares, and the calls whose numbers differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from etude.present.section import Block, Column, Section, Sentence, Table, note
from etude.present.sentences import why as text
from etude.present.sentences import why_outliers as words
from etude.units.formatting import p_value
from etude.why import outlier_trials
from etude.why.contributions import Contribution, CountDifference, Split, cost
from etude.why.instructions import InstructionDifferences
from etude.why.instrumented_pairs import Instrumented
from etude.why.outliers import Outliers

FORMAT, VERSION = "etude-why", 1


def why_section(
    found: Instrumented,
    plain: Contribution,
    split: Split | None,
    counts: Sequence[CountDifference],
    instructions: InstructionDifferences | None = None,
) -> Section:
    """The difference, its causes, and what is not explained. split, instructions: None without them."""
    first = text.headline(found.a, found.b, plain, median(found.plain_s[0]))
    return Section("why", first, tuple(_blocks(found, split, counts, instructions, first)), (first,))


def _blocks(
    found: Instrumented,
    split: Split | None,
    counts: Sequence[CountDifference],
    instructions: InstructionDifferences | None,
    first: str,
) -> Iterator[Block]:
    yield Sentence(first, "strong")
    if split is not None and split.listed:
        yield Table(
            (
                Column(text.CAUSE, [text.cause_text(c.cause) for c in split.listed if c.cause]),
                Column(text.PROCESS, [c.cause.process for c in split.listed if c.cause], rank=1, words=True),
                Column(text.DIFFERENCE, [text.seconds_text(c) for c in split.listed]),
                Column(text.SHARE, [text.share_text(c, split.whole) for c in split.listed]),
            ),
            "causes",
            text.CAUSES,
        )
    if split is not None:
        yield Sentence(text.rest_line(split))
    if counts:
        yield Sentence(f"{text.COUNTS}:")
        yield Table(
            (
                Column(text.CALL, [f"{c.call}()" for c in counts]),
                Column(text.FILE, [c.file for c in counts], words=True),
                Column(found.a, [text.count_text(c.a) for c in counts]),
                Column(found.b, [text.count_text(c.b) for c in counts]),
            ),
            "counts",
            words=2,
        )
        if line := text.counts_note(counts):
            yield Sentence(line, "aside")
    if instructions is not None:
        yield Sentence(text.instructions_line(found.a, found.b, instructions))
        listed = instructions.listed
        yield Table(
            (
                Column(text.FUNCTION, [each.function for each in listed], words=True),
                Column(text.PROGRAM, [each.program for each in listed], words=True),
                Column(found.a, [f"{each.a:,}" for each in listed]),
                Column(found.b, [f"{each.b:,}" for each in listed]),
            ),
            "instructions",
            words=2,
        )
    if split is not None:
        yield Sentence(text.cost_line(found, split), "aside")
        yield from (note(each) for each in text.doubts(found))
    yield from (note(each) for each in found.lacking)


def why_document(
    found: Instrumented,
    plain: Contribution,
    split: Split | None,
    counts: Sequence[CountDifference],
    instructions: InstructionDifferences | None = None,
) -> dict[str, Any]:
    """The causes as a document for programs."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "tests": [found.a, found.b],
        "difference": _plain(plain),
        "timeline": split
        and {
            "difference": _plain(split.whole),
            "causes": [_plain(each) for each in split.listed],
            "rest": _plain(split.rest),
            "pairs": split.pairs,
            "left_out": list(split.left_out),
            "looked_at": split.looked_at,
            "cost": asdict(cost(found.plain_s, found.runs)),
            "lost": [[run.lost for run in side] for side in found.runs],
        },
        "counts": [asdict(each) for each in counts],
        "instructions": instructions and asdict(instructions),
        "lacking": list(found.lacking),
    }


def _plain(found: Contribution) -> dict[str, Any]:
    of = {} if found.cause is None else asdict(found.cause)
    return {**of, "seconds": found.mean_s, "low": found.low_s, "high": found.high_s}


def outliers_section(measured: outlier_trials.OutlierTrials, found: Outliers, earlier: str = "") -> Section:
    """The slow trials, what differs in them, and how it was compared."""
    first = words.headline(measured.test, found)
    notes = [note(earlier)] if earlier else []
    return Section("why outliers", first, (*_outlier_blocks(measured, found, first), *notes), (first,))


def _outlier_blocks(measured: outlier_trials.OutlierTrials, found: Outliers, first: str) -> Iterator[Block]:
    yield Sentence(first, "strong")
    if found.causes:
        yield Table(
            (
                Column(words.CAUSE, [words.observed_text(c.of, measured.processes) for c in found.causes]),
                Column(words.TYPICAL, [words.value_text(c.typical, c.of.unit) for c in found.causes]),
                Column(words.SLOW, [words.value_text(c.slow, c.of.unit) for c in found.causes]),
                Column(words.SHARE, [words.share_text(c) for c in found.causes]),
                Column(words.P, [p_value(c.p) for c in found.causes], rank=1),
            ),
            "causes",
            words.CAUSES,
        )
    if line := words.result_line(found):
        yield Sentence(line)
    yield from (Sentence(line, "aside") for line in words.notes(measured, found))


def outliers_document(measured: outlier_trials.OutlierTrials, found: Outliers) -> dict[str, Any]:
    """The slow trials and what differs in them as a document for programs."""
    return {
        "format": outlier_trials.FORMAT,
        "version": outlier_trials.VERSION,
        "test": measured.test,
        "trials": found.trials,
        "bound_s": found.bound_s,
        "slow": [
            {"trial": measured.trials[place], "elapsed_s": measured.elapsed_s[place]} for place in found.slow
        ],
        "typical_s": found.typical_s,
        "slow_s": found.slow_s if found.slow else None,
        "causes": [
            c.of._asdict() | {"typical": c.typical, "slow": c.slow, "share": c.share, "p": c.p}
            for c in found.causes
        ],
        "looked_at": found.looked_at,
        "needed": found.needed,
        "processes": measured.processes,
    }
