"""Sentences of claims that are run again elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from etude.analysis.snapshot_differences import Difference, Differences
from etude.claims.bound import Bound
from etude.claims.verification import LEVEL, Agreement, OtherFile, Verified
from etude.present.sentences.claims import estimate_text
from etude.stats.sequential import Estimate
from etude.units.formatting import counted, percent, ratio_format, span

MOST_CAUSES = 5
"""Differences that the sentence on one claim names."""
MOST_ANNOUNCED = 12
"""Differences that are named before anything runs."""
DIFFERS = "What differs"
NOTHING_DIFFERS = "No setting of the machine differs that changes results often."
SETTINGS = "Machine, settings and programs, the likeliest causes first"
PLACES = {"theirs": "there", "ours": "here"}
THEIRS, OURS = "theirs", "here"
DIRECTION = {True: "same", False: "other", None: "?"}
CAUSES = (
    "cpu.model",
    "virtualisation.",
    "memory.total",
    "system.kernel_release",
    "cpu.",
    "frequency.",
    "directory.",
    "disks.",
    "mounts./.",
    "system.kernel",
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
    others = [f"{v.claim.id} is {v.ours.status} here" for v in found if v.theirs.status != v.ours.status]
    named = f": {', '.join(others)}" if others else ""
    return f"The same verdict here for {same} of {counted(len(found), 'claim')}{named}."


def rank(difference: Difference) -> int:
    """Place of a difference among those that change results, from 0; len(CAUSES) for all others."""
    return next((n for n, word in enumerate(CAUSES) if difference.what.startswith(word)), len(CAUSES))


def likely_first(found: Differences) -> list[Difference]:
    """The differences that change results most often before the others; also a virtual machine of one side only."""
    return sorted(
        (*found.differs, *(d for d in found.unknown if d.what.startswith("virtualisation."))), key=rank
    )


def others_line(count: int, bundle: str) -> str:
    """The end of a list of differences that names only the likeliest."""
    return f"and {counted(count, 'other difference')}: etude diff on an experiment of {bundle}, and now"


def refuted(found: Verified, differences: Differences, files: Sequence[OtherFile]) -> str:
    """A claim that is refuted here, with what differs."""
    return f"{claim_heading(found)}. {DIFFERS}: {causes(differences, files)}"


def claim_heading(found: Verified) -> str:
    """`memory: refuted here, supported there`."""
    return f"{found.claim.id}: {found.ours.status} here, {found.theirs.status} there"


def causes(differences: Differences, files: Sequence[OtherFile]) -> str:
    """The differences that most likely change a result, and how many others there are."""
    named = [*(file_text(each) for each in files), *map(str, likely_first(differences))]
    more = f"; and {len(named) - MOST_CAUSES} more" if len(named) > MOST_CAUSES else ""
    return f"{'; '.join(named[:MOST_CAUSES])}{more}" if named else "no recorded setting, and no file"


def figure_caption(bound: Bound) -> str:
    """The caption of a figure of both results."""
    return f"Both values with their {percent(1.0 - LEVEL)} intervals, against the bound {bound.text}"


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
