"""Other processes that used the CPUs during the trials of a test, by the probe `others`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from etude.analysis.subject import Subject
from etude.analysis.warnings.facts import OtherLoad
from etude.analysis.warnings.thresholds import Thresholds
from etude.analysis.warnings.warning import DataWarning, warning
from etude.results.blocks import read_blocks
from etude.results.series import Series

BLOCK = "others"
NAMED = 3
_SHARE = re.compile(r"(.+) = ([0-9]+\.[0-9]+) s \([0-9]+ process(?:es)?\)")
_REST, _OURS = "(rest)", "(etude)"


@dataclass(frozen=True)
class OtherProcesses:
    """The processes that the probe saw during the included trials of a test."""

    trials: int
    cpu_s: Mapping[str, float]
    """Per trial, by name of the processes, most first; the many small ones together as `(rest)`. Étude's own, which
    work before and after the measured command, are left out."""

    @property
    def total_s(self) -> float:
        """CPU time of all of them per trial."""
        return sum(self.cpu_s.values())


def other_processes(subject: Subject, series: Series) -> OtherProcesses | None:
    """The findings of the probe `others` during a test; None where it did not run.

    Raises:
        InputError: the test's blocks cannot be read.
    """
    entries = (subject.experiment or {}).get("tests") or ()
    entry = next((entry for entry in entries if entry["name"] == series.test), None)
    if entry is None or subject.directory is None or not subject.directory.is_dir():
        return None  # another program's, or a `.res`
    kept = set(series.trials[series.kept].tolist())
    blocks, _ = read_blocks(subject.directory / entry["directory"] / "blocks.jsonl")
    found = [each for each in blocks if each.block.name == BLOCK and each.trial in kept]
    if not found:
        return None
    total: dict[str, float] = {}
    for line in (line for each in found for line in each.block.lines):
        if (match := _SHARE.fullmatch(line)) and match[1] != _OURS:
            total[match[1]] = total.get(match[1], 0.0) + float(match[2])
    trials = len({each.trial for each in found})
    most_first = sorted(total, key=lambda name: -total[name])
    return OtherProcesses(trials, {name: total[name] / trials for name in most_first})


def others_warnings(subject: Subject, series: Series, thresholds: Thresholds) -> list[DataWarning]:
    """Warning about the processes that used the CPUs during a test, if their share of the elapsed time matters."""
    found = other_processes(subject, series)
    elapsed = series.sample("elapsed")
    if found is None or not elapsed.size or not found.total_s:
        return []
    share = found.total_s / max(float(elapsed.mean()), 1e-9)
    if share < thresholds.others:
        return []
    names = [name for name in found.cpu_s if name != _REST][:NAMED]
    most = tuple((name, found.cpu_s[name]) for name in names)
    load = OtherLoad(found.total_s, share, found.trials, most, len(found.cpu_s) - len(names))
    return [warning("others", series.test, "", load)]
