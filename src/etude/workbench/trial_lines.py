"""A trial as members of its line in `results.jsonl`, and back, exactly.

Numbers are written by repr, which JSON's readers take back to the same bits. A histogram is written as all of ours
are (HdrHistogram, base64), with as few digits as give the same classes back; where none do (values that no histogram
of five digits tells apart), its values and counts stand beside it as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from etude.results.histograms import BadHistogram, Counted, decode, encode
from etude.workbench.machine_state import machine_member, machine_of
from etude.workbench.task import Ended, GeneratorPart, Limited, Offer, Trial
from etude.workbench.window import Window

DIGITS = (3, 4, 5)
"""Significant digits of a histogram that are tried."""

OF_GENERATOR = ("generator_busy", "lateness_p99_s")
OF_PART = ("busy", "lateness_p99_s", "began_s")
LIMITS = {None, *get_args(Limited)}


class BadTrial(ValueError):
    """A line that is no trial of a search."""


def peak_member(offer: Offer, trial: Trial) -> dict[str, Any]:
    """What a trial of a search has beside the members of any measurement."""
    return {
        "load": finite(trial.load),
        "runlength_s": finite(trial.runlength_s),
        "cost_s": finite(trial.cost_s),
        "ended": trial.ended,
        "limited": trial.limited,
        "note": trial.note,
        "why": offer.why,
        **{name: finite(value) for name in OF_GENERATOR if (value := getattr(trial, name)) is not None},
        **({} if trial.machine is None else {"machine": machine_member(trial.machine)}),
        **({"generators": list(map(part_member, trial.generators))} if trial.generators else {}),
    }


def part_member(part: GeneratorPart) -> dict[str, Any]:
    """One host's part in a trial's load; what is not known is left out."""
    known = {name: finite(value) for name in OF_PART if (value := getattr(part, name)) is not None}
    return {"host": part.host, "limited": part.limited} | known


def window_lines(windows: Sequence[Window]) -> list[dict[str, Any]]:
    """Windows as docs/formats.md has them, with `mean_s` beside."""
    return [_window_line(window) for window in windows]


def from_line(line: Mapping[str, Any]) -> Trial:
    """The trial of a line that is a measurement.

    Raises:
        BadTrial: it is none of a search; KeyError, TypeError, ValueError: a member is missing, or cannot be meant.
    """
    peak = line.get("peak")
    if not isinstance(peak, Mapping):
        raise BadTrial("it lacks `peak`")
    parts = peak.get("generators") or ()
    if (
        peak["ended"] not in get_args(Ended)
        or not {peak["limited"], *(p["limited"] for p in parts)} <= LIMITS
    ):
        raise BadTrial("how it ended cannot be meant")
    return Trial(
        float(peak["load"]),
        float(peak["runlength_s"]),
        tuple(map(_window, line.get("windows") or ())),
        float(peak["cost_s"]),
        peak["ended"],
        peak["limited"],
        str(peak["note"]),
        **{name: None if peak.get(name) is None else float(peak[name]) for name in OF_GENERATOR},
        machine=None if peak.get("machine") is None else machine_of(peak["machine"]),
        generators=tuple(map(_part, parts)),
    )


def _part(member: Mapping[str, Any]) -> GeneratorPart:
    known = {name: float(member[name]) for name in OF_PART if member.get(name) is not None}
    return GeneratorPart(str(member["host"]), member["limited"], **known)


def finite(value: float) -> float | str:
    """A number as JSON has it; others as text that `float` reads."""
    return value if math.isfinite(value) else repr(float(value))


def _window_line(window: Window) -> dict[str, Any]:
    line: dict[str, Any] = {
        "duration_s": finite(window.duration_s),
        "offered": int(window.offered),
        "completed": int(window.completed),
        "failed": int(window.failed),
        "mean_s": None if window.mean_s is None else finite(float(window.mean_s)),
    }
    if window.latency is not None:
        line |= _latency(window.latency)
    return line if window.under_way is None else line | {"under_way": window.under_way}


def _latency(counted: Counted) -> dict[str, Any]:
    for digits in DIGITS:
        text = encode(counted.values, counted.counts, digits=digits)
        if _same(decode(text), counted):
            return {"latency": text}
    exact = {"values": counted.values.tolist(), "counts": counted.counts.tolist()}
    return {"latency": encode(counted.values, counted.counts), "latency_exact": exact}


def _window(line: Mapping[str, Any]) -> Window:
    mean = line["mean_s"]
    return Window(
        float(line["duration_s"]),
        int(line["offered"]),
        int(line["completed"]),
        int(line["failed"]),
        None if mean is None else float(mean),
        _counted(line),
        None if line.get("under_way") is None else int(line["under_way"]),
    )


def _counted(line: Mapping[str, Any]) -> Counted | None:
    exact = line.get("latency_exact")
    if exact is not None:
        values, counts = (np.array(exact[name], dtype=np.int64) for name in ("values", "counts"))
        return Counted(values, counts)
    text = line.get("latency")
    if text is None:
        return None
    try:
        return decode(text)
    except BadHistogram as error:
        raise BadTrial(f"latency: {error}") from None


def _same(one: Counted, other: Counted) -> bool:
    return np.array_equal(one.values, other.values) and np.array_equal(one.counts, other.counts)
