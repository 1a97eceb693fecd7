"""Sentences of claims that are run again elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from etude.analysis.snapshot_differences import Difference
from etude.claims.verification import LEVEL, Agreement, OtherFile, Verified
from etude.present.sentences.claims import estimate_text
from etude.stats.sequential import Estimate
from etude.units.formatting import counted, ratio_format, span

MOST_CAUSES = 5
"""Differences that the sentence on one claim names."""
THEIRS, OURS = "theirs", "here"
DIRECTION = {True: "same", False: "other", None: "?"}
CAUSES = (
    "system.kernel",
    "cpu.",
    "memory.total",
    "program ",
    "virtualisation.",
    "directory.",
    "disks.",
    "frequency.",
)
"""Beginnings of differences that change results most often, the likeliest first."""


def value_text(agreement: Agreement, estimate: Estimate | None) -> str:
    """A value with its 95 % interval; a dash for none."""
    return "–" if estimate is None else estimate_text(agreement.bound, estimate, LEVEL)


def change_text(change: Estimate | None) -> str:
    """`1.04 (0.98–1.10)`."""
    if change is None:
        return "–"
    interval = change.interval(LEVEL)
    form = ratio_format(change.value, interval.low, interval.high)
    return f"{change.value:{form}} ({span(interval.low, interval.high)})"


def summary(found: Sequence[Verified]) -> str:
    """The first line: how many claims have the same verdict here."""
    same = sum(v.theirs.status == v.ours.status for v in found)
    return f"The same verdict here for {same} of {counted(len(found), 'claim')}."


def refuted(found: Verified, differences: Sequence[Difference], files: Sequence[OtherFile]) -> str:
    """A claim that is refuted here, with what differs."""
    ranked = sorted(
        differences,
        key=lambda d: next((n for n, word in enumerate(CAUSES) if d.what.startswith(word)), len(CAUSES)),
    )
    named = [*(file_text(each) for each in files), *map(str, ranked)]
    there = found.theirs.status
    if not named:
        return f"{found.claim.id}: refuted here, {there} there; no recorded setting or file differs."
    more = f"; and {len(named) - MOST_CAUSES} more" if len(named) > MOST_CAUSES else ""
    return (
        f"{found.claim.id}: refuted here, {there} there. What differs: {'; '.join(named[:MOST_CAUSES])}{more}"
    )


def file_text(file: OtherFile) -> str:
    """A program, library or input that is another one."""
    if not file.ours:
        return f"{file.name}: not here"
    return f"{file.name}: another file" if file.theirs else f"{file.name}: only here"


def files_line(files: Sequence[OtherFile]) -> str:
    """Programs, libraries and inputs that differ, in a line; empty if none does."""
    if not files:
        return ""
    more = f" and {len(files) - MOST_CAUSES} more" if len(files) > MOST_CAUSES else ""
    return f"Other files here: {'; '.join(map(file_text, files[:MOST_CAUSES]))}{more}."


def scale_note(theirs: str, ours: str) -> str:
    """A note that the scales differ."""
    return f"theirs was run in the scale {theirs}, this one in {ours}: values may differ for that alone"
