"""Claims as a section: the verdict table, and what would decide those that are undecided."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from etude.claims.claims_file import ClaimsFile
from etude.claims.run import Result, looks_of
from etude.present.section import Block, Column, Section, Sentence, Table, number
from etude.present.sentences import claims as text
from etude.stats.sequential import trials_needed

SCHEMA = "https://etude.invalid/schema/claims-1.json"


def claims_section(file: ClaimsFile, results: Sequence[Result]) -> Section:
    """The verdict on each claim of a file."""
    return Section("claims", file.title, tuple(_blocks(file, results)), (text.summary(results),))


def _blocks(file: ClaimsFile, results: Sequence[Result]) -> Iterator[Block]:
    yield Sentence(text.summary(results), "strong")
    yield Table(
        (
            Column("claim", [r.claim.id for r in results]),
            Column("verdict", [r.status for r in results]),
            Column("reason", [text.reason(r) for r in results]),
            Column("p", [number(f"{r.decision.p:.2g}", r.decision.p) for r in results], rank=2),
            Column("trials", [number(str(r.trials), r.trials) for r in results], rank=1),
        ),
        "verdicts",
        words=3,
    )
    for result in results:
        if result.status == "undecided" and (needed := what_decides(file, result)) is not None:
            yield Sentence(text.undecided(result, *needed))


def what_decides(file: ClaimsFile, result: Result) -> tuple[float, float] | None:
    """Number of trials of each test that decide an undecided claim with 90 %, and the seconds of the further ones;
    None where trials cannot be added or nothing is known."""
    experiment = file.experiments[result.claim.experiment]
    if not experiment.extends or result.failed or not result.trials:
        return None
    needed = [
        trials_needed(
            f.estimate, _distance(f, file.margin), result.decision.level / len(looks_of(experiment))
        )
        for f in result.findings
        if f.estimate is not None and not f.lacking
    ]
    if not needed:
        return None
    trials = max(needed)
    return trials, (trials - result.trials) * result.seconds / result.trials


def _distance(found: Any, margin: float) -> float:
    """The way from the value to the nearer end of the bound, less the margin, on the scale of the errors."""
    estimate, bound = found.estimate, found.bound
    ends = [
        end
        for end in (bound.low, bound.high)
        if math.isfinite(end) and (end > 0.0 or not estimate.logarithmic)
    ]
    if estimate.logarithmic:
        return min(abs(math.log(end / estimate.value)) for end in ends) - math.log1p(margin)
    return min(abs(end - estimate.value) - margin * abs(end) for end in ends)


def claims_document(file: ClaimsFile, results: Sequence[Result]) -> dict[str, Any]:
    """The verdicts as a document for programs (docs/reference/claims-schema.json)."""
    return {
        "version": 1,
        "file": str(file.path),
        "scale": file.scale,
        "confidence": file.confidence,
        "claims": [_claim(file, result) for result in results],
    }


def _claim(file: ClaimsFile, result: Result) -> dict[str, Any]:
    needed = what_decides(file, result) if result.status == "undecided" else None
    return {
        "id": result.claim.id,
        "text": result.claim.text,
        "status": result.status,
        "reason": text.reason(result),
        "p": result.decision.p,
        "trials": result.trials,
        "further_trials": None
        if needed is None or math.isinf(needed[0])
        else max(1, round(needed[0]) - result.trials),
        "bounds": [
            {
                "bound": f.bound.text,
                "value": f.estimate and f.estimate.value,
                "low": f.estimate and _end(f.estimate.interval(result.decision.level).low),
                "high": f.estimate and _end(f.estimate.interval(result.decision.level).high),
                "unit": f.estimate and f.estimate.unit,
                "lacking": f.lacking,
            }
            for f in result.findings
        ],
    }


def _end(value: float) -> float | None:
    return value if math.isfinite(value) else None
