"""Claims that were run again elsewhere: both results side by side, and what differs where a claim is refuted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from etude.analysis.snapshot_differences import Differences
from etude.claims.claims_file import ClaimsFile
from etude.claims.cost import decision_cost
from etude.claims.verification import LEVEL, Agreement, OtherFile, Verified
from etude.present.section import Block, Column, Section, Sentence, Table, note
from etude.present.sentences import claims as claims_text
from etude.present.sentences import verification as text
from etude.stats.sequential import Estimate


def verification_section(
    file: ClaimsFile,
    found: Sequence[Verified],
    differences: Differences,
    files: Sequence[OtherFile],
    their_scale: str,
) -> Section:
    """The table of both results, a sentence for each claim that is refuted here, and what would decide the others.

    file: the claims as they were run here.
    """
    blocks = tuple(_blocks(file, found, differences, files, their_scale))
    return Section("verification", text.summary(found), blocks, (text.summary(found),))


def _blocks(
    file: ClaimsFile,
    found: Sequence[Verified],
    differences: Differences,
    files: Sequence[OtherFile],
    their_scale: str,
) -> Iterator[Block]:
    yield Sentence(text.summary(found), "strong")
    rows = [(v, a) for v in found for a in v.bounds]
    yield Table(
        (
            Column("claim", [v.claim.id for v, _ in rows]),
            Column("bound", [a.bound.text for _, a in rows], rank=3),
            Column("theirs", [text.value_text(a, a.theirs) for _, a in rows]),
            Column("here", [text.value_text(a, a.ours) for _, a in rows]),
            Column("direction", [text.DIRECTION[a.same_direction] for _, a in rows], rank=2),
            Column("here / theirs", [text.change_text(a.change) for _, a in rows], rank=1),
            Column("verdict there", [v.theirs.status for v, _ in rows]),
            Column("verdict here", [v.ours.status for v, _ in rows]),
        ),
        "verification",
        words=8,
    )
    if their_scale != file.scale:
        yield note(text.scale_note(their_scale, file.scale))
    if line := text.files_line(files):
        yield Sentence(line)
    for each in found:
        if each.ours.status == "refuted":
            yield Sentence(text.refuted(each, differences, files))
        elif each.ours.failed:
            yield Sentence(f"{each.claim.id}: {claims_text.reason(each.ours)}")
        elif each.ours.status == "undecided" and (cost := decision_cost(file, each.ours)) is not None:
            yield Sentence(
                claims_text.undecided(each.ours, file.experiments[each.claim.experiment].trials, *cost)
            )


def announcement(bundle: str, found: Differences) -> Iterator[Block]:
    """The differences that change results most often, before anything runs, and the number of the others."""
    ranked = text.likely_first(found)
    named = [d for d in ranked if text.rank(d) < len(text.CAUSES)][: text.MOST_ANNOUNCED]
    yield Sentence(f"{text.DIFFERS}, {bundle} → now:" if named else text.NOTHING_DIFFERS, "strong")
    yield from (Sentence(f"  {difference}") for difference in named)
    if others := len(ranked) - len(named):
        yield Sentence(f"  {text.others_line(others, bundle)}", "aside")


def verification_document(
    found: Sequence[Verified], differences: Differences, files: Sequence[OtherFile], scales: tuple[str, str]
) -> dict[str, Any]:
    """The verification as a document for programs."""
    return {
        "format": "etude-claims-verification",
        "version": 1,
        "scale": {"theirs": scales[0], "ours": scales[1]},
        "level": LEVEL,
        "claims": [
            {
                "id": v.claim.id,
                "text": v.claim.text,
                "theirs": v.theirs.status,
                "ours": v.ours.status,
                "bounds": [_bound(a) for a in v.bounds],
            }
            for v in found
        ],
        "differs": [{"what": d.what, "theirs": d.then, "ours": d.now} for d in differences.differs],
        "files": [{"name": f.name, "theirs": f.theirs or None, "ours": f.ours or None} for f in files],
    }


def _bound(a: Agreement) -> dict[str, Any]:
    return {
        "bound": a.bound.text,
        "theirs": _estimate(a.theirs),
        "ours": _estimate(a.ours),
        "same_direction": a.same_direction,
        "change": _estimate(a.change),
    }


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    interval = estimate.interval(LEVEL)
    low, high = (end if math.isfinite(end) else None for end in (interval.low, interval.high))
    return {"value": estimate.value, "low": low, "high": high, "unit": estimate.unit}
