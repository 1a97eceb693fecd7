"""Did the compared commands do the same work? What they printed and how they ended, before any number is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from etude.results.model import Measurement
from etude.results.results import Results
from etude.results.samples import Trial


class WorkDifference(NamedTuple):
    """One thing that speaks against the tests having done the same work."""

    text: str
    """The difference in words, with figures and without a full stop."""
    between: bool
    """Whether two tests differ, so that it may be on purpose; else one test's own trials do."""

    @property
    def advice(self) -> str:
        """The advice, a short clause."""
        return "is it the same work?" if self.between else "compare what they do before any number"


def differences(results: Results, trials: Mapping[str, Sequence[Trial]]) -> list[WorkDifference]:
    """What speaks against the same work, most important first: endings, then output of the set-aside first run.

    A program whose output is read for a metric prints a measurement: it is never the same, and is not compared.
    """
    names = results.names()
    each = results.experiment["plan"]["check_output"] == "each"
    found = [WorkDifference(text, False) for name in names for text in _within(name, trials[name], each)]
    measuring = {test["name"] for test in results.experiment["plan"]["tests"] if test.get("metrics")}
    firsts = {
        name: first
        for name in names
        if name not in measuring and (first := _first_output(trials[name])) is not None
    }
    reference = next(iter(firsts), None)
    for name in list(firsts)[1:]:
        assert reference is not None
        texts = _between(reference, firsts[reference], name, firsts[name])
        found += [WorkDifference(text, True) for text in texts]
    return found


def _first_output(trials: Sequence[Trial]) -> Measurement | None:
    return next((t.first for t in trials if t.first.stdout is not None), None)


def _between(base: str, a: Measurement, other: str, b: Measurement) -> list[str]:
    found = []
    if (a.exit_status, a.signal, a.accepted) != (b.exit_status, b.signal, b.accepted):
        found.append(f"{other} ended with {b.ending()}, {base} with {a.ending()}")
    assert a.stdout is not None
    assert b.stdout is not None
    if a.stdout["sha256"] != b.stdout["sha256"]:
        found.append(_printed(base, a.stdout["bytes"], other, b.stdout["bytes"]))
    return found


def _printed(base: str, base_bytes: int, other: str, other_bytes: int) -> str:
    if base_bytes == other_bytes:
        return f"{other} printed something else than {base} ({base_bytes:,} B each)"
    how = "less" if other_bytes < base_bytes else "more"
    return f"{other} printed {how} than {base} ({other_bytes:,} B against {base_bytes:,} B)"


def _within(name: str, trials: Sequence[Trial], each: bool) -> list[str]:
    """Whether a test's own trials differ among themselves; in what they print only where that was asked for."""
    finished = [m for t in trials for m in t.measurements if not m.unfinished]
    found = []
    endings = {m.ending() for m in {(m.exit_status, m.signal, m.accepted): m for m in finished}.values()}
    if len(endings) > 1:
        found.append(f"{name} did not always end alike: {', '.join(sorted(endings))}")
    if each and len({m.stdout["sha256"] for m in finished if m.stdout is not None}) > 1:
        found.append(f"{name} printed different things in different trials")
    return found
