"""Rehearsals and calibrations as blocks, as documents and as figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from etude.figures.data import Figure
from etude.figures.peak import Varying, readings_over_load, readings_over_runlength, trials_needed
from etude.peak.calibrate import Calibration, LoadCalibration
from etude.peak.rehearse import Place, Rehearsal, Share
from etude.peak.task import Task
from etude.present.section import Block, Column, Sentence, Table
from etude.present.sentences.peak import goal_text, target_text
from etude.surface.rehearsal import RehearsedMap
from etude.units.formatting import duration, percent

SHOWN_FACTORS = (0.3, 0.9)
"""Load factors whose trials Figure 5 of "Cutting Corners" shows."""


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
        "Note: simulated servers have only the shapes and the noise of their models (docs/workbench.md).",
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
    """A rehearsal as JSON-able data (docs/workbench.md). `policy`: its name."""

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


def calibration_blocks(task: Task, found: Calibration) -> Iterator[Block]:
    """The variation at each load, and the run length and trials that are suggested."""
    yield Table(
        (
            Column("load factor", [f"{at.factor:.2f}" for at in found.loads]),
            Column("load", [task.load_text(at.load) for at in found.loads], 1),
            Column("variation", [percent(at.spreads[-1].cv) for at in found.loads], 0),
            Column("95 %", [_between(at) for at in found.loads], 3),
            Column("run length", [duration(at.cheapest.runlength_s) for at in found.loads], 0),
            Column("trials", [_trials(at.cheapest.trials) for at in found.loads], 0),
            Column("benchmarking time", [_bench(at) for at in found.loads], 2),
        )
    )
    yield Sentence(
        f"Variation: standard deviation over mean of trials of {duration(found.loads[0].spreads[-1].runlength_s)}."
    )
    if found.warm_up_s:
        yield Sentence(
            f"Responses are slower in the first {duration(found.warm_up_s)} of a trial than later: declare a warm-up, "
            "or one that is longer by as much."
        )
    best = found.suggested
    if best.trials is None:
        yield Sentence(
            f"No tested run length reaches {percent(found.accuracy)} accuracy: make longer trials."
        )
        return
    yield Sentence(
        f"Suggested near the peak: r = {duration(best.runlength_s)}, t = {best.trials}: an accuracy of "
        f"{percent(found.accuracy)} at {percent(found.confidence)} confidence for {duration(best.bench_s)} of "
        f"benchmarking time ({goal_text(task)})."
    )
    low, high = _trials(best.trials_low), _trials(best.trials_high)
    yield Sentence(f"Its t may as well be {low} to {high}: so few trials estimate a variance only this well.")


def _between(at: LoadCalibration) -> str:
    last = at.spreads[-1]
    return f"{percent(last.cv_low)} … {percent(last.cv_high)}"


def _trials(count: int | None) -> str:
    return "too many" if count is None else str(count)


def _bench(at: LoadCalibration) -> str:
    return "–" if at.cheapest.trials is None else duration(at.cheapest.bench_s)


def calibration_figures(task: Task, found: Calibration) -> dict[str, Figure]:
    """Figures 4, 5 and 6 of the paper."""
    factor, y, limit = _unit(task)
    whole = [(at, at.spreads[-1].values) for at in found.loads]
    over_load = Varying(
        "trials",
        tuple(at.load for at, values in whole for _ in values),
        tuple(factor * value for _, values in whole for value in values),
    )
    chosen = _nearest(found.loads)
    by_length = [
        Varying(
            f"load factor {at.factor:.1f}",
            tuple(spread.runlength_s for spread in at.spreads for _ in spread.values),
            tuple(factor * value for spread in at.spreads for value in spread.values),
        )
        for at in chosen
    ]
    needed = {
        f"load factor {at.factor:.1f}": [
            (need.runlength_s, float(need.trials)) for need in at.needs if need.trials
        ]
        for at in chosen
    }
    sweet = found.suggested.runlength_s if found.suggested.trials else None
    return {
        "readings-over-load": readings_over_load(
            over_load, y, limit, x="clients" if task.closed else "load (requests/s)"
        ),
        "readings-over-runlength": readings_over_runlength(by_length, y),
        "trials-needed": trials_needed(needed, sweet_s=sweet),
    }


def _nearest(loads: Sequence[LoadCalibration]) -> list[LoadCalibration]:
    found = [min(loads, key=lambda at: abs(at.factor - want)) for want in SHOWN_FACTORS]
    return list(dict.fromkeys(found))


def _unit(task: Task) -> tuple[float, str, float]:
    (first, *others) = task.goal.criteria
    if others or first.of == "errors":
        return 1.0, "response / limit", 1.0
    what = "mean response" if first.percent is None else f"p{first.percent:g} of responses"
    return 1e3 * first.limit, f"{what} (ms)", 1e3 * first.limit


def calibration_document(found: Calibration) -> dict[str, Any]:
    """A calibration as JSON-able data (docs/workbench.md)."""

    return {
        "peak": found.peak,
        "fixed_cost_s": found.fixed_cost_s,
        "accuracy": found.accuracy,
        "confidence": found.confidence,
        "warm_up_s": found.warm_up_s,
        "suggested": {
            "runlength_s": found.suggested.runlength_s,
            "trials": found.suggested.trials,
            "trials_between": [found.suggested.trials_low, found.suggested.trials_high],
        },
        "loads": [
            {
                "load": at.load,
                "factor": at.factor,
                "cv": [
                    [spread.runlength_s, spread.cv, spread.cv_low, spread.cv_high] for spread in at.spreads
                ],
                "needs": [[need.runlength_s, need.trials, need.bench_s] for need in at.needs],
            }
            for at in found.loads
        ],
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
        "Note: simulated surfaces are as smooth, and simulated servers as noisy, as their models (docs/surfaces.md).",
        "aside",
    )


def _right_share(each: RehearsedMap) -> float:
    return each.near / (each.measured + each.predicted)


def _unknown(each: RehearsedMap, size: int) -> int:
    return size - each.measured - each.predicted


def map_rehearsal_document(
    found: Sequence[RehearsedMap], size: int, task: Task, place: Place
) -> dict[str, Any]:
    """Rehearsed maps as JSON-able data (docs/surfaces.md)."""
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
