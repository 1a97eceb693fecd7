"""The figures of a warning by name, and the warning as JSON-able data (docs/reference/formats.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etude.analysis.warnings import DataWarning, facts
from etude.present.sentences.warnings import processes_text, warm_up_runs, ways_text, words_of

_NUMBERS: Mapping[type[facts.Facts], tuple[str, ...]] = {
    facts.TooFew: ("count", "needed"),
    facts.MissingValues: ("count", "of"),
    facts.NoMatch: ("of", "reason"),
    facts.TooShort: ("times", "ticks"),
    facts.CoarseClock: ("step", "unit"),
    facts.AllEqual: ("of", "value", "unit"),
    facts.TwoGroups: ("few", "many", "low", "high", "unit"),
    facts.AutocorrelatedTrials: ("of", "worth"),
    facts.SkewedValues: ("p", "skewness"),
    facts.NeverSteady: ("first", "last", "change", "p"),
    facts.Leak: ("each", "total", "of", "p"),
    facts.NotConverged: ("width", "target", "more"),
    facts.Busy: ("load", "cpus"),
}
"""The fields of facts that JSON has as `numbers`, in this order."""


def finding_document(warning: DataWarning) -> dict[str, Any]:
    """The warning as JSON-able data (docs/reference/formats.md)."""
    text, what_to_do = words_of(warning)
    return {
        "kind": warning.kind,
        "rank": warning.rank,
        "test": warning.test,
        "metric": warning.metric,
        "text": text,
        "advice": what_to_do,
        "trials": warning.trials,
        "numbers": numbers_of(warning),
    }


def numbers_of(warning: DataWarning) -> dict[str, Any]:
    """The figures of a warning by name, as JSON has them; empty for kinds without."""
    found = _numbers(warning, warning.facts)
    return found | {"machine": warning.machine} if found and warning.machine else found


def _numbers(w: DataWarning, f: facts.Facts) -> dict[str, Any]:
    match f:
        case facts.FailedTrials():
            return {"count": len(w.trials), "of": f.of, "how": ways_text(f), "kept": f.included}
        case facts.FarValues():
            among = {} if f.among is None else {"among": f.among}
            return {"count": f.count, "of": f.of, "farthest": f.farthest, **among}
        case facts.DriftOfValues():
            return {"of": f.of, "change": f.change, "p": f.p, "slower": int(f.slower)}
        case facts.OtherEnds() if w.kind == "warm-up":
            return {"first": f.first, "shift": f.shift, "runs": warm_up_runs(f)}
        case facts.OtherEnds():
            first = {"first": f.first, "shift_first": f.shift} if f.first else {}
            return {"last": f.last, "shift": f.shift_last, **first}
        case facts.OtherLoad():
            return {"cpu_s": f.cpu_s, "share": f.share, "of": f.of, "named": processes_text(f)}
        case _:
            return {name: getattr(f, name) for name in _NUMBERS.get(type(f), ())}
