"""Checks of the trials themselves: failed, excluded, too few, larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from etude.analysis.warnings import facts
from etude.analysis.warnings.thresholds import Thresholds
from etude.analysis.warnings.warning import DataWarning, warning
from etude.results.model import CALIBRATION, FIRST_RUN, is_printed
from etude.results.series import Series
from etude.results.trial_join import NONE

DATA = (
    "storage_read",
    "storage_written",
    "tree_read",
    "tree_written",
    "disk_read_bytes",
    "disk_write_bytes",
    "peak_memory",
    "tree_peak_memory",
)
"""Metrics of the bytes that a trial read, wrote or used."""


def failed(series: Series) -> list[DataWarning]:
    """Warning about trials whose commands failed; failures of several kinds rank higher."""
    ways: dict[str, list[int]] = {}
    for failure in series.failures:
        if not failure.of_experiment:
            ways.setdefault(failure.how, []).append(int(failure.trial))
    trials = sorted({trial for each in ways.values() for trial in each})
    if not trials:
        return []
    kept = set(series.trials[series.kept].tolist()).intersection(trials)
    kind = "failed" if len(ways) == 1 else "mixed-failures"
    by_way = tuple((how, tuple(each)) for how, each in ways.items())
    found = facts.FailedTrials(by_way, int(series.trials.size), len(kept))
    return [warning(kind, series.test, "", found, trials)]


def set_aside(series: Series) -> list[DataWarning]:
    """Warning about trials excluded for another reason than the plan or a failure."""
    broken = {int(f.trial) for f in series.failures if not f.of_experiment}
    reasons: dict[str, list[int]] = {}
    for place in np.flatnonzero(~series.kept).tolist() if series.why else ():
        trial, why = int(series.trials[place]), series.why[place]
        if trial not in broken and why not in (FIRST_RUN, CALIBRATION):
            reasons.setdefault(why or "", []).append(trial)
    if not reasons:
        return []
    found = facts.ExcludedTrials(
        tuple((why, tuple(trials)) for why, trials in reasons.items()), int(series.trials.size)
    )
    all_of_them = sorted(trial for trials in reasons.values() for trial in trials)
    return [warning("set-aside", series.test, "", found, all_of_them)]


def too_few(series: Series, metric: str, count: int, thresholds: Thresholds) -> list[DataWarning]:
    """Warnings if fewer trials have a value than are needed, or than are included."""
    kept = int(np.count_nonzero(series.kept))
    column = series.columns[metric]
    if count == 0:
        no_value = facts.NoValue(column.reason, kept, column.joined != NONE)
        return [warning("too-few", series.test, metric, no_value)]
    found = []
    if count < thresholds.few:
        found.append(warning("too-few", series.test, metric, facts.TooFew(count, thresholds.few)))
    if count < kept:
        found.append(_missing(series, metric, count, kept))
    return found


def never_begun(test: str, failure: Mapping[str, Any] | None) -> list[DataWarning]:
    """Warning that no trial of a script's test reached its EXEC; `failure`: of its last one, in experiment.json."""
    if failure is None:
        return []
    return [warning("failed", test, "", facts.NoTrialMade(str(failure["why"]), str(failure["log"])))]


def several_matches(test: str, notes: Mapping[str, str]) -> list[DataWarning]:
    """Warnings about patterns that found different values in one output; `notes`: by metric."""
    return [
        warning("several-matches", test, name, facts.SeveralMatches(text)) for name, text in notes.items()
    ]


def limited(test: str, reasons: Mapping[str, str]) -> list[DataWarning]:
    """Warning that a limit ended a script's test before its stop rule's target; `reasons`: of all such tests."""
    if test not in reasons:
        return []
    return [warning("not-converged", test, "", facts.LimitReached(reasons[test]))]


def printed(series: Series) -> list[DataWarning]:
    """Warnings about metrics to be printed that no included trial, or not every one, has a value of."""
    found = []
    for name, column in series.columns.items():
        if not is_printed(name) or column.reason is None or column.joined == NONE:
            continue
        count, kept = series.sample(name).size, int(np.count_nonzero(series.kept))
        if kept and not count:
            found.append(warning("no-match", series.test, name, facts.NoMatch(kept, column.reason)))
        elif count < kept:
            found.append(_missing(series, name, count, kept))
    return found


def _missing(series: Series, metric: str, count: int, kept: int) -> DataWarning:
    return warning("missing-values", series.test, metric, facts.MissingValues(kept - count, kept))


def caches_not_as_declared(series: Series) -> list[DataWarning]:
    """Warning about included trials whose caches were not prepared, or not in the declared state afterwards."""
    wrong: dict[int, str] = {}
    for trial, kept, cache in zip(series.trials.tolist(), series.kept.tolist(), series.caches, strict=False):
        why = _why_not(cache) if kept and cache else None
        if why is not None:
            wrong[trial] = why
    if not wrong:
        return []
    declared = next(cache["declared"] for cache in series.caches if cache)
    found = facts.CachesDiffer(declared, tuple(wrong.items()), int(np.count_nonzero(series.kept)))
    return [warning("caches", series.test, "", found, wrong)]


WARNING = 4
"""Level of the kernel's warnings; lower levels are more severe."""


def kernel_complained(series: Series) -> list[DataWarning]:
    """Warning about included trials in which the kernel warned of something, or throttled hot CPUs."""
    said: dict[int, str] = {}
    slowed: dict[int, int] = {}
    for trial, kept, found in zip(series.trials.tolist(), series.kept.tolist(), series.kernel, strict=False):
        if not kept or not found:
            continue
        if grave := [message for message in found["messages"] if message["level"] <= WARNING]:
            said[trial] = str(min(grave, key=lambda message: message["level"])["text"])
        if found["throttled"]:
            slowed[trial] = found["throttled"]
    if not said and not slowed:
        return []
    complaints = facts.KernelComplained(tuple(sorted(said.items())), tuple(sorted(slowed.items())))
    return [warning("kernel", series.test, "", complaints, sorted({*said, *slowed}))]


def _why_not(cache: Mapping[str, Any]) -> str | None:
    if cache["performed"] is None and cache["declared"] not in ("none", "warm"):
        return str(cache.get("why") or "")
    return cache.get("wrong")


def memory_cliff(series: Series, memory_bytes: int | None, thresholds: Thresholds) -> list[DataWarning]:
    """Warning about data of about the size of the memory: the named data set, or else the metric whose size is nearest
    to it."""
    share = data_share(series, memory_bytes)
    if share is not None and thresholds.memory_low <= share <= thresholds.memory_high:
        return [warning("memory-cliff", series.test, "", facts.DataNearMemory(share))]
    if not memory_bytes or memory_bytes <= 0:
        return []
    shares = [(name, share) for name, share in _shares(series, memory_bytes) if share > 0]
    near = [
        (name, share) for name, share in shares if thresholds.memory_low <= share <= thresholds.memory_high
    ]
    if not near:
        return []
    name, share = min(near, key=lambda pair: abs(pair[1] - 1.0))
    return [warning("memory-cliff", series.test, name, facts.DataNearMemory(share, memory_bytes))]


def data_share(series: Series, memory_bytes: int | None) -> float | None:
    """Size of the data set as a share of the memory, as the trial recorded it, or else of the machine's.

    None if no included trial names a data set, or the memory is unknown.
    """
    shares = []
    for kept, cache in zip(series.kept.tolist(), series.caches, strict=False):
        size = cache.get("bytes") if kept and cache else None
        memory = (cache.get("memory_bytes") if cache else None) or memory_bytes
        if isinstance(size, int) and memory:
            shares.append(size / memory)
    return float(np.median(shares)) if shares else None


def _shares(series: Series, memory_bytes: int) -> Iterable[tuple[str, float]]:
    for name in DATA:
        values = series.sample(name)
        if values.size and series.columns[name].unit == "B":
            yield name, float(np.median(values / memory_bytes))
