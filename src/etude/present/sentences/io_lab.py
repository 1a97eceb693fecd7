"""The automatic reading of a sweep of the I/O lab in sentences, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etude.analysis.subject import Subject, subject_of
from etude.analysis.verdict_options import Thresholds
from etude.analysis.warnings.machine import busy_machine
from etude.iolab.lab import Reading, reading_of
from etude.iolab.points import Swept, swept_of
from etude.present.sentences import io_buffers, io_totals
from etude.present.sentences.warnings import warning_text
from etude.results.results import Results, machine_member
from etude.units.formatting import counted


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
