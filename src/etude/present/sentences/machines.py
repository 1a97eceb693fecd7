"""Line before a comparison of results whose machines or settings differ."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from etude.analysis.cross_session import machines_compared
from etude.analysis.snapshot_differences import Differences
from etude.analysis.subject import Subject

MOST_NAMED = 3
"""Maximum number of differences that are named."""


def machine_line(label: str, other: str, found: Differences, *, bundled: bool = False) -> str | None:
    """Line on how the machine or settings of two results differ; None if they do not. `bundled`: the labels are no
    paths, since a bundle holds them."""
    if not found.differs:
        return None
    named = "; ".join(map(str, found.differs[:MOST_NAMED]))
    more = len(found.differs) - MOST_NAMED
    rest = f"; and {more} more" if more > 0 else ""
    command = "unpack the bundle" if bundled else shlex.join(["etude", "diff", label, other])
    return f"Machine or settings of {label} and {other} differ: {named}{rest} (all of it: {command})."


def machines_lines(subjects: Sequence[Subject]) -> list[str]:
    """A line for each later result whose machine or settings are not the first's."""
    bundled = any(subject.file and subject.file != subject.label for subject in subjects)
    lines = (
        machine_line(subjects[0].label, label, found, bundled=bundled)
        for label, found in machines_compared(subjects)
    )
    return [line for line in lines if line is not None]
