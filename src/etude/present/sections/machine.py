"""A machine as blocks and documents: sources of noise, differences, and what was made quiet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from etude.analysis.snapshot_differences import Difference, Differences
from etude.machine.checks import Finding
from etude.machine.quiet.apply_restore import Outcome, Row
from etude.present.section import Block, Sentence, Weight

WEIGHTS: dict[str, Weight] = {"noisy": "warning", "unknown": "aside", "good": "plain"}
"""Weight of each verdict of the doctor, the worst first."""
FEW_CHANGES = 3
"""Changes of the machine that are named; of more their number."""


def doctor_blocks(findings: Sequence[Finding], *, single_lines: bool) -> Iterator[Block]:
    """The findings, noisy ones first; `single_lines`: each with all that is known, as programs read it."""
    for finding in sorted(findings, key=lambda each: list(WEIGHTS).index(each.verdict)):
        state = f"{finding.name}: {finding.state}"
        if single_lines:
            yield Sentence(f"{finding.verdict}: {state}: {_meaning(finding)}")
            continue
        yield Sentence(f"{finding.verdict:<7}  {state}", WEIGHTS[finding.verdict])
        if finding.verdict != "good":
            yield Sentence(f"  {_meaning(finding)}")


def _meaning(finding: Finding) -> str:
    return finding.meaning if finding.verdict == "good" else f"{finding.meaning} To do: {finding.advice}."


def differences_blocks(labels: tuple[str, str], found: Differences, *, everything: bool) -> Iterator[Block]:
    """Differences between two machines, or two states of one; `everything`: also what always changes."""
    first, second = labels
    if found.differs:
        yield Sentence(f"What differs, {first} → {second}:", "strong")
        yield from _lines(found.differs)
    else:
        yield Sentence(
            f"Nothing differs between {first} and {second} that is recorded of both and does not always move."
        )
    if found.unknown:
        count = len(found.unknown)
        yield Sentence(f"Not comparable, because only one side recorded it: {count}")
        yield from _lines(found.unknown)
    if found.moved and everything:
        yield Sentence("What always moves:")
        yield from _lines(found.moved)
    elif found.moved:
        count = len(found.moved)
        yield Sentence(
            f"Values that always change (load, free space, times), not shown: {count} (--all)", "aside"
        )


def _lines(found: Sequence[Difference]) -> Iterator[Block]:
    return (Sentence(f"  {difference}") for difference in found)


def differences_document(labels: tuple[str, str], found: Differences) -> dict[str, Any]:
    """The differences as JSON-able data."""

    def plain(differences: Sequence[Difference]) -> list[dict[str, str | None]]:
        return [{"what": d.what, "first": d.then, "second": d.now} for d in differences]

    return {
        "format": "etude-diff",
        "version": 1,
        "first": labels[0],
        "second": labels[1],
        "differs": plain(found.differs),
        "moved": plain(found.moved),
        "unknown": plain(found.unknown),
    }


def quiet_blocks(outcome: Outcome) -> Iterator[Block]:
    """Lines on settings made quiet, quiet already, and not available."""
    yield from (Sentence(f"{name}: {_changes(changes)}") for name, changes in outcome.done.items())
    for name, items in outcome.refused.items():
        if items:
            yield Sentence(f"{name}: refused by the kernel, and left: {len(items)}")
    yield from (Sentence(f"{name}: quiet already") for name in outcome.already)
    yield from (Sentence(f"{name}: not here: {why}") for name, why in outcome.unavailable.items())
    yield Sentence("etude quiet off puts it back." if outcome.done else "Nothing was changed.")


def _changes(changes: Sequence[Any]) -> str:
    if len(changes) > FEW_CHANGES:
        return f"{len(changes)} changed"
    return "; ".join(f"{_item(each.item)} {each.was} -> {each.put}" for each in changes)


def _item(item: str) -> str:
    return f"/{item}" if item.startswith(("proc/", "sys/", "run/", "etc/")) else item


def rehearsal_blocks(rows: Sequence[Row]) -> Iterator[Block]:
    """Table of the changes that would be made."""
    for row in rows:
        if row.why_not:
            yield Sentence(f"{row.name}: not here: {row.why_not}")
        for change in row.changes:
            if change.was != change.put:
                put = change.put or "as it comes"
                yield Sentence(f"{row.name}: {_item(change.item)}: {change.was} -> {put}")


def status_blocks(rows: Sequence[Row]) -> Iterator[Block]:
    """A line per operation: present value, quiet value, and its state, which may wrap."""
    cells = [("operation", "now", "quiet", "state"), *((r.name, r.now, r.quiet, r.state_text) for r in rows)]
    widths = [max(map(len, column)) for column in list(zip(*cells, strict=True))[:-1]]
    for *first, state in cells:
        padded = (f"{cell:<{width}}" for cell, width in zip(first, widths, strict=True))
        yield Sentence("  ".join((*padded, state)))


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """The changes that were made, as JSON-able data."""
    return {
        "format": "etude-quiet",
        "version": 1,
        "done": {
            name: {each.item: [each.was, each.put] for each in changes}
            for name, changes in outcome.done.items()
        },
        "already": outcome.already,
        "unavailable": outcome.unavailable,
        "refused": {name: items for name, items in outcome.refused.items() if items},
    }


def status_document(rows: Sequence[Row]) -> dict[str, Any]:
    """The operations as JSON-able data."""
    operations = [
        {
            "name": row.name,
            "meaning": row.meaning,
            "usual": row.usual,
            "state": row.state,
            "why_not": row.why_not,
            "items": {change.item: [change.was, change.put] for change in row.changes},
            "held": {change.item: [change.was, change.put] for change in row.held},
        }
        for row in rows
    ]
    return {"format": "etude-quiet", "version": 1, "operations": operations}
