"""Before a bench is booked: what a search will cost (`--rehearse`), and which run lengths it needs (`--calibrate`)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import Any

from etude.cli.end_signals import ending_by_signals
from etude.cli.peak_run import directory_of, open_bench
from etude.errors import InputError, UsageError
from etude.figures.data import Figure
from etude.figures.peak import Varying, readings_over_load, readings_over_runlength, trials_needed
from etude.peak import calibrate as calibrating
from etude.peak import rehearse as rehearsing
from etude.peak.calibrate import AtLoad, Calibration
from etude.peak.harnesses.curves import CURVES
from etude.peak.policies.registry import policy
from etude.peak.rehearse import Place, Rehearsal, Share, place_like
from etude.peak.search_store import SearchSpec, SearchStore, open_store
from etude.peak.sources import Source, simulated_curves
from etude.peak.task import Answer, Task
from etude.present.peak_display import FORMAT, VERSION, save_figures
from etude.present.peak_text import goal_text, target_text
from etude.present.table_layout import Column
from etude.present.terminal import Terminal
from etude.units.formatting import duration, percent

SEARCHES = 20
"""On each curve, unless another number is asked for."""
SHOWN_FACTORS = (0.3, 0.9)
"""Load factors of which Figure 5 of "Cutting Corners" shows trials."""


def rehearse(options: argparse.Namespace, source: Source) -> int:
    """Search simulated servers, and say what it cost and how often it was right."""
    task = source.task
    place = place_of(options, source)
    curves = [simulated_curves()[source.curve]] if source.curve else list(CURVES.values())
    screen = Terminal(sys.stderr)

    def progress(done: int, of: int) -> None:
        if screen.obeys and not options.quiet:
            screen.draw(f"{done} of {of} searches")

    found = rehearsing.rehearse(
        policy(options.policy),
        task,
        curves,
        options.searches or SEARCHES,
        task.seed,
        place=place,
        progress=progress,
    )
    if screen.obeys:
        screen.draw()
    if options.json:
        _print_json({"rehearsal": _rehearsal_document(found, options, place)})
    else:
        _say_rehearsal(found, place)
    return 0


def place_of(options: argparse.Namespace, source: Source) -> Place:
    """The cost and the windows of a trial: as the options or the harness say, else as in the paper."""
    if options.like is not None:
        return _like(Path(options.like), options.fixed_cost)
    usual = Place()
    besides_s = getattr(source.harness, "besides_s", usual.fixed_cost_s)
    return Place(
        besides_s if options.fixed_cost is None else options.fixed_cost,
        getattr(source.harness, "told_s", usual.window_s),
    )


def _like(path: Path, fixed_cost_s: float | None) -> Place:
    """As the trials of a stored search or calibration. Raises InputError: it is none, or ended without a rate."""
    kept = SearchStore(path)
    kept.check_whole("trials")
    answer = kept.answer
    rate = kept.task.seed_load if answer is None else answer.rate
    if rate is None:
        raise InputError(f"--like {path}: no peak rate is known there: expected a search that ended with one")
    try:
        place = place_like(kept.task, kept.trials(), rate)
    except InputError as error:
        raise InputError(f"--like {path}: {error}") from None
    return place if fixed_cost_s is None else replace(place, fixed_cost_s=fixed_cost_s)


def _say_rehearsal(found: Rehearsal, place: Place) -> None:
    screen = Terminal()
    by_curve = found.by_curve()
    screen.table(
        Column("simulated server", [*by_curve, "all"]),
        [
            Column("benchmarking time", [_median(each) for each in (*by_curve.values(), found)], 0),
            Column("quartiles", [_quartiles(each) for each in (*by_curve.values(), found)], 3),
            Column("right", [_share(_right(each)) for each in (*by_curve.values(), found)], 1),
            Column("says so", [_share(each.kept) for each in (*by_curve.values(), found)], 2),
        ],
    )
    right = _right(found)
    screen.say(
        f"Target: {target_text(found.task)}; of {right.of} searches "
        f"{percent(right.value)} were right (95 %: {percent(right.low)} to {percent(right.high)})."
    )
    screen.say(
        f"A search takes {_median(found)} of benchmarking time (median), {_quartiles(found)} in half of all, "
        f"where a trial costs {duration(place.fixed_cost_s)} besides its run."
    )
    screen.say(
        "Note: simulated servers have the shapes and the noise that were put into them (docs/workbench.md).",
        "dim",
    )


def _right(found: Rehearsal) -> Share:
    return found.near if found.task.promise == "rate" else found.in_region


def _median(found: Rehearsal) -> str:
    return duration(3600 * found.hours(0.5))


def _quartiles(found: Rehearsal) -> str:
    return f"{duration(3600 * found.hours(0.25))} … {duration(3600 * found.hours(0.75))}"


def _share(share: Share) -> str:
    return f"{100 * share.value:.0f} %"


def _rehearsal_document(found: Rehearsal, options: argparse.Namespace, place: Place) -> dict[str, Any]:
    def told(each: Rehearsal) -> dict[str, Any]:
        right = _right(each)
        return {
            "searches": len(each.outcomes),
            "bench_s": {str(q): 3600 * each.hours(q) for q in (0.25, 0.5, 0.75)},
            "right": {"share": right.value, "low": right.low, "high": right.high},
            "kept": each.kept.value,
        }

    curves = {name: told(each) for name, each in found.by_curve().items()}
    task = found.task
    return {
        "policy": options.policy,
        "promise": task.promise,
        "confidence": task.confidence,
        "fixed_cost_s": place.fixed_cost_s,
        "curves": curves,
        "all": told(found),
    }


def calibrate(options: argparse.Namespace, source: Source) -> int:
    """Make the trials of a calibration, resumably, and say what run lengths and trials it suggests.

    Raises:
        UsageError: no load near the peak is given; EtudeError: as a search.
    """
    task, peak = source.task, source.task.seed_load or source.peak
    if peak is None:
        raise UsageError("--calibrate measures at shares of the peak: give a load near it with --seed-load")
    plan = calibrating.plan(task, peak)
    sought = SearchSpec(source.name, task, "calibrate", source.text, dict(options.factor))
    screen = Terminal(sys.stderr)
    with ending_by_signals(), open_store(directory_of(options, source), sought, options.command_line) as kept:
        with open_bench(options, source, kept) as bench:
            for number, offer in enumerate(plan[len(kept.trials()) :], len(kept.trials()) + 1):
                if not options.quiet:
                    where = f"{task.load_text(offer.load)} for {duration(offer.runlength_s)}"
                    screen.say(f"{number} of {len(plan)}: {where}: {offer.why}")
                kept.keep(offer, bench.run(offer, lambda windows: False))
        found = calibrating.calibrate(task, peak, kept.trials())
        kept.answered(Answer(None, 0.0, float("inf"), task.confidence, False, "a calibration"))
    figures = _figures(task, found)
    paths = {name: Path(options.figures or kept.directory) / f"{name}.{options.format}" for name in figures}
    if options.json:
        _print_json({"calibration": _calibration_document(found), "results": str(kept.directory)})
    else:
        _say_calibration(task, found)
        Terminal().say_path("Results", str(kept.directory), "dim")
    save_figures(figures, paths, None if options.json else Terminal())
    return 0


def _say_calibration(task: Task, found: Calibration) -> None:
    screen = Terminal()
    screen.table(
        Column("load factor", [f"{at.factor:.2f}" for at in found.loads]),
        [
            Column("load", [task.load_text(at.load) for at in found.loads], 1),
            Column("variation", [percent(at.spreads[-1].cv) for at in found.loads], 0),
            Column("95 %", [_between(at) for at in found.loads], 3),
            Column("run length", [duration(at.cheapest.runlength_s) for at in found.loads], 0),
            Column("trials", [_trials(at.cheapest.trials) for at in found.loads], 0),
            Column("benchmarking time", [_bench(at) for at in found.loads], 2),
        ],
    )
    screen.say(
        f"Variation: standard deviation over mean of trials of {duration(found.loads[0].spreads[-1].runlength_s)}."
    )
    if found.warm_up_s:
        screen.say(
            f"Responses are slower in the first {duration(found.warm_up_s)} of a trial than later: declare a warm-up, "
            "or one that is longer by as much."
        )
    best = found.suggested
    if best.trials is None:
        screen.say(
            f"No run length that was tried reaches {percent(found.accuracy)} accuracy: make longer trials."
        )
        return
    screen.say(
        f"Suggested near the peak: r = {duration(best.runlength_s)}, t = {best.trials}: an accuracy of "
        f"{percent(found.accuracy)} at {percent(found.confidence)} confidence for {duration(best.bench_s)} of bench "
        f"time ({goal_text(task)})."
    )
    low, high = _trials(best.trials_low), _trials(best.trials_high)
    screen.say(f"Its t may as well be {low} to {high}: that is how well so few trials tell a variance.")


def _between(at: AtLoad) -> str:
    last = at.spreads[-1]
    return f"{percent(last.cv_low)} … {percent(last.cv_high)}"


def _trials(count: int | None) -> str:
    return "too many" if count is None else str(count)


def _bench(at: AtLoad) -> str:
    return "–" if at.cheapest.trials is None else duration(at.cheapest.bench_s)


def _figures(task: Task, found: Calibration) -> dict[str, Figure]:
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


def _nearest(loads: Sequence[AtLoad]) -> list[AtLoad]:
    found = [min(loads, key=lambda at: abs(at.factor - want)) for want in SHOWN_FACTORS]
    return list(dict.fromkeys(found))


def _unit(task: Task) -> tuple[float, str, float]:
    """What readings are multiplied by to be drawn, what they are then, and the limit."""
    (first, *others) = task.goal.criteria
    if others or first.of == "errors":
        return 1.0, "reading (share of the limit)", 1.0
    what = "mean response" if first.percent is None else f"p{first.percent:g} of responses"
    return 1e3 * first.limit, f"{what} (ms)", 1e3 * first.limit


def _calibration_document(found: Calibration) -> dict[str, Any]:
    def finite(value: float) -> float | None:
        return value if value < float("inf") else None

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
                "needs": [[need.runlength_s, need.trials, finite(need.bench_s)] for need in at.needs],
            }
            for at in found.loads
        ],
    }


def _print_json(document: dict[str, Any]) -> None:
    print(dumps({"format": FORMAT, "version": VERSION} | document, indent=1, ensure_ascii=False))
