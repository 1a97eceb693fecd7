"""A trial as members of its line in `results.jsonl`, and back, without loss.

Numbers are written by repr, which JSON readers convert back to the same bits. A histogram is written as HdrHistogram in
base64, with the fewest digits that preserve its classes; if five digits do not, its values and counts are written as
well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from etude.codec import decoded, finite
from etude.errors import InputError
from etude.peak.machine_state import machine_member
from etude.peak.task import GeneratorPart, Trial, TrialRequest
from etude.peak.window import Window
from etude.results.histograms import Histogram, decode, encode

DIGITS = (3, 4, 5)
"""Candidate numbers of significant digits of a histogram."""

OF_GENERATOR = ("generator_busy", "lateness_p99_s")
OF_PART = ("busy", "lateness_p99_s", "began_s")


def peak_member(request: TrialRequest, trial: Trial) -> dict[str, Any]:
    """Member `peak` of a trial's line, in addition to those of any measurement."""
    return {
        "load": finite(trial.load),
        "runlength_s": finite(trial.runlength_s),
        "cost_s": finite(trial.cost_s),
        "ended": trial.ended,
        "limited": trial.limited,
        "note": trial.note,
        "why": request.why,
        **{name: finite(value) for name in OF_GENERATOR if (value := getattr(trial, name)) is not None},
        **({} if trial.machine is None else {"machine": machine_member(trial.machine)}),
        **({"generators": list(map(part_member, trial.generators))} if trial.generators else {}),
    }


def part_member(part: GeneratorPart) -> dict[str, Any]:
    """One host's part of a trial's load, without unknown members."""
    known = {name: finite(value) for name in OF_PART if (value := getattr(part, name)) is not None}
    return {"host": part.host, "limited": part.limited} | known


def window_lines(windows: Sequence[Window]) -> list[dict[str, Any]]:
    """Windows in the format of docs/formats.md, with `mean_s`."""
    return [_window_line(window) for window in windows]


def from_line(line: Mapping[str, Any], where: str) -> Trial:
    """The trial of a line that is a measurement. `where`: FILE:LINE.

    Raises:
        InputError: the line is not of a search, or a member is missing or has a wrong type; `errors.EDITED`: a
        histogram is invalid.
    """
    if "peak" not in line:
        raise InputError(f"{where}: no trial of a search: it lacks `peak`; was it edited?")
    peak = line["peak"]
    if isinstance(peak, dict):
        peak = {"ended": None, "note": None} | peak | {"windows": ()}
    windows = line.get("windows") or ()
    return replace(
        decoded(Trial, peak, where, "peak"),
        windows=tuple(_window(each, where, f"windows[{n}]") for n, each in enumerate(windows)),
    )


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
    if window.under_way is not None:
        line["under_way"] = window.under_way
    return line if window.waited_s is None else line | {"waited_s": finite(float(window.waited_s))}


def _latency(counted: Histogram) -> dict[str, Any]:
    for digits in DIGITS:
        text = encode(counted.values, counted.counts, digits=digits)
        if _same(decode(text), counted):
            return {"latency": text}
    exact = {"values": counted.values.tolist(), "counts": counted.counts.tolist()}
    return {"latency": encode(counted.values, counted.counts), "latency_exact": exact}


def _window(line: Mapping[str, Any], where: str, at: str) -> Window:
    return replace(decoded(Window, {**line, "latency": None}, where, at), latency=_counted(line))


def _counted(line: Mapping[str, Any]) -> Histogram | None:
    exact, text = line.get("latency_exact"), line.get("latency")
    if exact is not None:
        return Histogram(*(np.array(exact[name], dtype=np.int64) for name in ("values", "counts")))
    return None if text is None else decode(text)


def _same(one: Histogram, other: Histogram) -> bool:
    return np.array_equal(one.values, other.values) and np.array_equal(one.counts, other.counts)
