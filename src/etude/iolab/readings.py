"""What a sweep says, in sentences: an automatic reading, and what it cannot know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etude.analysis.subject import Subject, subject_of
from etude.analysis.warnings.machine import busy_machine
from etude.analysis.warnings.thresholds import Thresholds
from etude.iolab import buffers, totals
from etude.iolab.comparisons import Comparison, comparisons_of
from etude.iolab.costs import Costs, costs_of
from etude.iolab.points import Over, Swept, swept_of
from etude.iolab.shapes import Parting, Shape, partings_of, shape_of
from etude.present.sentences.warnings import warning_text
from etude.results.results import Results, of_machine
from etude.units.formatting import counted


@dataclass(frozen=True)
class Reading:
    """What the curves say, and what to keep in mind about such curves."""

    over: Over
    findings: tuple[str, ...]
    caveats: tuple[str, ...]
    costs: tuple[Costs, ...] = ()
    """Of a sweep over buffers, what each curve costs."""
    shapes: tuple[Shape, ...] = ()
    """Peak, plateau, steps and scatter of each curve of a sweep over buffers."""
    partings: tuple[Parting, ...] = ()
    """Sizes of a sweep over buffers from which on touched or huge pages are quicker."""
    comparisons: tuple[Comparison, ...] = ()
    """Each program of a sweep over totals against the first."""

    def __str__(self) -> str:
        return "\n".join((*self.findings, "", *(f"Note: {caveat}" for caveat in self.caveats)))


def explain(source: Results | Subject) -> Reading:
    """Read a sweep's results as the L41 notes read theirs: where curves bend and what lies there, or where a
    difference falls below 5 % and 1 %.

    Raises:
        InputError: the results are not those of a sweep.
    """
    return reading_of(swept_of(source if isinstance(source, Subject) else subject_of(source)))


def reading_of(swept: Swept) -> Reading:
    """The reading of a sweep."""
    unknown = (*measured_badly(swept), *unknown_machine(swept.experiment))
    if swept.over == "total":
        compared = comparisons_of(swept)
        sentences = tuple(totals.findings(swept.curves[0].name, compared))
        return Reading(swept.over, sentences, (*totals.CAVEATS, *unknown), comparisons=compared)
    costs = tuple(found for curve in swept.curves if (found := costs_of(curve, swept)) is not None)
    shapes = tuple(shape_of(curve) for curve in swept.curves if curve.sizes.size > 1)
    partings = partings_of(swept)
    sentences = tuple(buffers.findings(swept, {each.curve: each for each in costs}, shapes, partings))
    return Reading(swept.over, sentences, (*buffers.CAVEATS, *unknown), costs, shapes, partings)


def measured_badly(swept: Swept) -> tuple[str, ...]:
    """Why its values say less than they could: few trials, a busy machine."""
    few = min(values.size for curve in swept.curves for values in curve.samples)
    enough = Thresholds.few
    said = [f"a size has as few as {counted(few, 'trial')}: make {enough} or more"] if few < enough else []
    busy = list(map(warning_text, busy_machine(swept.experiment)))
    return (*said, *busy)


def unknown_machine(experiment: Mapping[str, Any]) -> tuple[str, ...]:
    """Facts that a virtual machine does not know of itself; none on a real one, and where nothing was recorded."""
    seen = of_machine(experiment, "virtualisation") or {}
    if not (seen.get("hypervisor_flag") or seen.get("hypervisor")):
        return ()
    name = seen.get("product") or seen.get("hypervisor")
    return (
        f"this is a virtual machine{f' ({name})' if name else ''}: its caches and TLBs are those that the hypervisor "
        "reports, which need not be the processor's, nor this machine's alone; each miss of a TLB walks the host's "
        "tables, too; whether the host backs memory by huge pages is not visible from here",
    )
