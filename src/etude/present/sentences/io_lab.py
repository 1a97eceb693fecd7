"""The automatic reading of a sweep of the I/O lab in sentences, and its limits."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etude.analysis.subject import Subject, subject_of
from etude.analysis.verdict_options import Thresholds
from etude.analysis.warnings.machine import busy_machine
from etude.iolab.lab import Reading, reading_of
from etude.iolab.landmarks import size_text
from etude.iolab.points import Gaps, Swept, swept_of
from etude.iolab.shapes import Growth, growth_of
from etude.present.sentences import io_buffers, io_totals
from etude.present.sentences.notes import listed_names
from etude.present.sentences.warnings import warning_text
from etude.results.results import Results, machine_member
from etude.units.formatting import counted

MOST_NAMED = 5
"""Tests that a line names."""


@dataclass(frozen=True)
class Explanation(Reading):
    """Statements on the curves, and general notes on such curves."""

    findings: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((*self.findings, "", *(f"Note: {caveat}" for caveat in self.caveats)))


def explain(source: Results | Subject) -> Explanation:
    """Read a sweep's results as the L41 notes read theirs: where curves bend and what lies there, or where a
    difference falls below 5 % and 1 %.

    Raises:
        InputError: the results are not those of a sweep.
    """
    return explanation_of(reading_of(swept_of(source if isinstance(source, Subject) else subject_of(source))))


def explanation_of(reading: Reading) -> Explanation:
    """A reading with its sentences."""
    swept = reading.swept
    if reading.over == "total":
        findings = tuple(io_totals.findings(swept.curves[0].name, reading.comparisons))
        caveats = io_totals.CAVEATS
    else:
        costs = {each.curve: each for each in reading.costs}
        findings = tuple(io_buffers.findings(swept, costs, reading.shapes, reading.partings))
        caveats = io_buffers.CAVEATS
    unknown = (*measured_badly(swept), *unknown_machine(swept.experiment))
    return Explanation(
        swept,
        reading.costs,
        reading.shapes,
        reading.partings,
        reading.comparisons,
        findings,
        (*caveats, *unknown),
    )


def verdict_of(reading: Reading) -> tuple[str, ...]:
    """The answer of a sweep in a line for each comparison, or in one for all curves."""
    if reading.over == "total":
        return tuple(io_totals.verdict_lines(reading.swept.curves[0].name, reading.comparisons))
    growths = growths_of(reading.swept)
    return (io_buffers.verdict_line(growths),) if growths else ("A single size: no curve over the buffer.",)


def question_lines(reading: Reading, gaps: Gaps) -> dict[str, tuple[str, ...]]:
    """Sentences on the questions of a page, by their keys."""
    swept = reading.swept
    if reading.over == "total":
        certain, large = verdict_of(reading), io_totals.size_lines(reading.comparisons)
    else:
        certain = tuple(map(io_buffers.growth_line, growths_of(swept)))
        large = io_buffers.size_lines(reading.shapes)
    return {
        "what": scope_lines(swept),
        "real": certain,
        "large": large,
        "against": (*gap_lines(gaps), *map(sentence, unknown_machine(swept.experiment))),
    }


def sentence(clause: str) -> str:
    """A clause as a sentence."""
    return f"{clause[0].upper()}{clause[1:]}."


def growths_of(swept: Swept) -> tuple[Growth, ...]:
    """The end of the growth of each curve with two sizes or more."""
    return tuple(growth_of(curve) for curve in swept.curves if curve.sizes.size > 1)


def scope_lines(swept: Swept) -> tuple[str, ...]:
    """Sentences on what a sweep measured, over which sizes, on which curves."""
    sizes = sorted({float(size) for curve in swept.curves for size in curve.sizes})
    names = ", ".join(curve.name for curve in swept.curves)
    what = (
        f"The rate of {'writing' if swept.writes else 'reading'} a file, by buffer size"
        if swept.over == "buffer"
        else f"The time of whole programs that {'write' if swept.writes else 'read'} a file, by its size"
    )
    span = f"{counted(len(sizes), 'size')} from {size_text(sizes[0])} to {size_text(sizes[-1])}"
    tests = (swept.experiment.get("plan") or {}).get("tests") or ()
    one = next(iter(tests), None)
    example = () if one is None else (f"{one['name']} runs: {shlex.join(map(str, one['command']))}",)
    return (f"{what}: {span}; {counted(len(swept.curves), 'curve')}: {names}.", *example)


def gap_lines(gaps: Gaps) -> tuple[str, ...]:
    """Sentences on what a sweep did not measure."""
    lines = (
        [f"Without an included trial: {listed_names(gaps.tests, MOST_NAMED, 'test')}."] if gaps.tests else []
    )
    if gaps.storage:
        lines.append(
            "The storage itself (O_DIRECT) was not measured: no rate here is known to be above or below it."
        )
    if gaps.cold:
        lines.append("Reads of a cold file were not measured: the file was in the page cache.")
    return tuple(lines)


def measured_badly(swept: Swept) -> tuple[str, ...]:
    """Reasons that weaken the values: few trials, a busy machine."""
    few = min(values.size for curve in swept.curves for values in curve.samples)
    enough = Thresholds.few
    said = [f"a size has as few as {counted(few, 'trial')}: make {enough} or more"] if few < enough else []
    busy = list(map(warning_text, busy_machine(swept.experiment)))
    return (*said, *busy)


def unknown_machine(experiment: Mapping[str, Any]) -> tuple[str, ...]:
    """Facts that a virtual machine does not know of itself; none on a real one, and where nothing was recorded."""
    seen = machine_member(experiment, "virtualisation") or {}
    if not (seen.get("hypervisor_flag") or seen.get("hypervisor")):
        return ()
    name = seen.get("product") or seen.get("hypervisor")
    return (
        f"this is a virtual machine{f' ({name})' if name else ''}: its caches and TLBs are those that the hypervisor "
        "reports, which need not be the processor's, nor this machine's alone; each miss of a TLB walks the host's "
        "tables, too; whether the host backs memory by huge pages is not visible from here",
    )
