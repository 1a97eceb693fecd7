"""Rehearsals of searches and of maps, as blocks and as documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from etude.peak.rehearse import Place, Rehearsal, Share
from etude.peak.task import Task
from etude.present.section import Block, Column, Sentence, Table
from etude.present.sentences.peak import target_text
from etude.surface.rehearsal import RehearsedMap
from etude.units.formatting import duration, percent


def rehearsal_blocks(found: Rehearsal, place: Place) -> Iterator[Block]:
    """Blocks on the cost of searches of simulated servers, and on how often they were right."""
    by_curve = found.by_curve()
    yield Table(
        (
            Column("simulated server", [*by_curve, "all"]),
            Column("benchmarking time", [_median(each) for each in (*by_curve.values(), found)], 0),
            Column("quartiles", [_quartiles(each) for each in (*by_curve.values(), found)], 3),
            Column("right", [_share(_right(each)) for each in (*by_curve.values(), found)], 1),
            Column("says so", [_share(each.kept) for each in (*by_curve.values(), found)], 2),
        )
    )
    right = _right(found)
    yield Sentence(
        f"Target: {target_text(found.task)}; of {right.of} searches "
        f"{percent(right.value)} were right (95 %: {percent(right.low)} to {percent(right.high)})."
    )
    yield Sentence(
        f"A search takes {_median(found)} of benchmarking time (median), {_quartiles(found)} in half of all, "
        f"where a trial costs {duration(place.fixed_cost_s)} besides its run."
    )
    yield Sentence(
        "Note: simulated servers have only the shapes and the noise of their models (docs/howto/peak.md).",
        "aside",
    )


def _right(found: Rehearsal) -> Share:
    return found.near if found.task.promise == "rate" else found.in_region


def _median(found: Rehearsal) -> str:
    return duration(3600 * found.hours(0.5))


def _quartiles(found: Rehearsal) -> str:
    return f"{duration(3600 * found.hours(0.25))} … {duration(3600 * found.hours(0.75))}"


def _share(share: Share) -> str:
    return f"{100 * share.value:.0f} %"


def rehearsal_document(found: Rehearsal, policy: str, place: Place) -> dict[str, Any]:
    """A rehearsal as JSON-able data (docs/reference/formats.md). `policy`: its name."""

    def outcome(each: Rehearsal) -> dict[str, Any]:
        right = _right(each)
        return {
            "searches": len(each.outcomes),
            "bench_s": {str(q): 3600 * each.hours(q) for q in (0.25, 0.5, 0.75)},
            "right": {"share": right.value, "low": right.low, "high": right.high},
            "kept": each.kept.value,
        }

    curves = {name: outcome(each) for name, each in found.by_curve().items()}
    task = found.task
    return {
        "policy": policy,
        "promise": task.promise,
        "confidence": task.confidence,
        "fixed_cost_s": place.fixed_cost_s,
        "curves": curves,
        "all": outcome(found),
    }


def map_rehearsal_blocks(
    found: Sequence[RehearsedMap], size: int, task: Task, place: Place
) -> Iterator[Block]:
    """Blocks on the cost of maps of simulated surfaces, and on how many cells were right. `size`: cells of the
    space."""
    yield Table(
        (
            Column("simulated server", [each.curve for each in found]),
            Column("benchmarking time", [duration(each.spent_s) for each in found], 0),
            Column("configurations", [f"{each.measured} of {size}" for each in found], 2),
            Column("trials", [str(each.trials) for each in found], 3),
            Column("right", [percent(_right_share(each)) for each in found], 1),
        )
    )
    costs = [each.spent_s for each in found]
    yield Sentence(
        f"A map takes {duration(median(costs))} of benchmarking time (median; {duration(min(costs))} … "
        f"{duration(max(costs))}), where a trial costs {duration(place.fixed_cost_s)} besides its run."
    )
    if any(_unknown(each, size) for each in found):
        left = max(_unknown(each, size) for each in found)
        yield Sentence(
            f"The budget ends it before up to {left} of {size} configurations have a value.", "warning"
        )
    yield Sentence(
        f"Right: within {percent(task.within)} of the truth, measured or predicted. Target of a search: "
        f"{target_text(task)}."
    )
    yield Sentence(
        "Note: simulated surfaces are as smooth, and simulated servers as noisy, as their models "
        "(docs/howto/surfaces.md).",
        "aside",
    )


def _right_share(each: RehearsedMap) -> float:
    return each.near / (each.measured + each.predicted)


def _unknown(each: RehearsedMap, size: int) -> int:
    return size - each.measured - each.predicted


def map_rehearsal_document(
    found: Sequence[RehearsedMap], size: int, task: Task, place: Place
) -> dict[str, Any]:
    """Rehearsed maps as JSON-able data (docs/howto/surfaces.md)."""
    return {
        "cells": size,
        "confidence": task.confidence,
        "within": task.within,
        "fixed_cost_s": place.fixed_cost_s,
        "maps": [
            {
                "curve": each.curve,
                "bench_s": each.spent_s,
                "measured": each.measured,
                "predicted": each.predicted,
                "trials": each.trials,
                "right": _right_share(each),
            }
            for each in found
        ],
    }
