"""Claims as a section: the verdict table, what would decide those that are undecided, and what a check found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from etude.claims.claims_file import ClaimsFile
from etude.claims.cost import Cost, decision_cost
from etude.claims.run import Result
from etude.errors import EtudeError
from etude.present.section import Block, Column, Section, Sentence, Table, note, number
from etude.present.sentences import claims as text

FORMAT, VERSION = "etude-claims", 1
"""Format and version of the document; docs/reference/claims-schema.json describes it."""


def claims_section(file: ClaimsFile, results: Sequence[Result]) -> Section:
    """The verdict on each claim of a file."""
    return Section("claims", file.title, tuple(_blocks(file, results)), (text.summary(results),))


def _blocks(file: ClaimsFile, results: Sequence[Result]) -> Iterator[Block]:
    yield Sentence(text.summary(results), "strong")
    yield Table(
        (
            Column("claim", [r.claim.id for r in results]),
            Column("verdict", [r.status for r in results], words=True),
            Column("reason", [text.reason(r) for r in results], words=True),
            Column("trials", [number(str(r.trials), r.trials) for r in results], rank=1),
            Column("p", [number(f"{r.decision.p:.2g}", r.decision.p) for r in results], rank=2),
        ),
        "verdicts",
    )
    for result in results:
        if result.status == "undecided" and (cost := decision_cost(file, result)) is not None:
            yield Sentence(text.undecided(result, file.experiments[result.claim.experiment].trials, *cost))
    yield from (note(line) for line in text.caveats(file, results))


def check_blocks(errors: Sequence[EtudeError], costs: Sequence[Cost], pilot: bool) -> Iterator[Block]:
    """The problems that a check found, then the cost of each claim."""
    for error in errors:
        yield Sentence(str(error), "warning")
    if pilot:
        yield Table(
            (
                Column("claim", [c.claim.id for c in costs]),
                Column("experiment", [c.claim.experiment for c in costs], words=True),
                Column("trials needed", [number(text.trials_text(c), c.trials) for c in costs]),
                Column("time", [number(text.seconds_text(c.seconds), c.seconds) for c in costs]),
                Column("disk", [number(text.bytes_text(c.disk_bytes), c.disk_bytes) for c in costs]),
            ),
            "costs",
        )
    for line in text.check_lines(errors, costs, pilot):
        yield Sentence(line)


def claims_document(file: ClaimsFile, results: Sequence[Result], directory: Path) -> dict[str, Any]:
    """The verdicts as a document for programs (docs/reference/claims-schema.json)."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "file": str(file.path),
        "results": str(directory),
        "scale": file.scale,
        "confidence": file.confidence,
        "margin": file.margin,
        "claims": [_claim(file, result) for result in results],
    }


def _claim(file: ClaimsFile, result: Result) -> dict[str, Any]:
    cost = decision_cost(file, result) if result.status == "undecided" else None
    known = cost is not None and math.isfinite(cost[0])
    return {
        "id": result.claim.id,
        "text": result.claim.text,
        "experiment": result.claim.experiment,
        "figure": result.claim.figure or None,
        "status": result.status,
        "reason": text.reason(result),
        "p": result.decision.p,
        "level": result.level,
        "trials": result.trials,
        "seconds": result.seconds,
        "further_trials": max(1, math.ceil(cost[0]) - result.trials) if cost is not None and known else None,
        "further_seconds": max(0.0, cost[1]) if cost is not None and known else None,
        "bounds": [
            {
                "bound": each.bound.text,
                "value": None if each.estimate is None else _finite(each.estimate.value),
                "low": None if each.estimate is None else _finite(each.estimate.interval(result.level).low),
                "high": None if each.estimate is None else _finite(each.estimate.interval(result.level).high),
                "unit": None if each.estimate is None else each.estimate.unit or "1",
                "lacking": each.lacking or None,
            }
            for each in result.findings
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
