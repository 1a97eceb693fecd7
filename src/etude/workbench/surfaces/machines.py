"""What a surface says of the machines that its cells were measured on: how many, and whether one is apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from etude.report.warnings.machine import machine_warnings
from etude.stats.twosample import Difference, welch
from etude.units.formatting import percent
from etude.workbench.surfaces.factors import Floats
from etude.workbench.surfaces.kept import KeptSurface
from etude.workbench.surfaces.samples import known
from etude.workbench.surfaces.surrogates.choose import Choice

LEAST = 4
"""Cells on a machine, and on all others, before they are held against each other."""
CONFIDENCE = 0.95
"""That no machine is named apart where none is."""


def machine_findings(kept: KeptSurface, fit: Choice | None) -> list[str]:
    """Lines; none of a surface that was measured on one machine. `fit`: what is believed of the surface. Of a system
    that has a machine of its own, it is that one which counts."""
    hosts = {line.sample.cell: line.system or line.host for line in kept.attempts() if not line.lost}
    if len(set(hosts.values())) < 2:
        return []
    several = [w.text for w in machine_warnings(kept.document) if w.kind == "several-machines"]
    if fit is None:
        return several
    data = known(kept.samples())
    off = data.log - fit.left_out.log
    return [*several, *apart(off, [hosts[cell] for cell in data.cells])]


def apart(off: Floats, hosts: Sequence[str]) -> list[str]:
    """Machines whose cells are off from what all other cells predict in another way than those of the others; the
    farthest first, which then is none of the others any more.

    `off`: measured less predicted, in logs, each predicted without itself. Source: Welch's test of each machine
    against all others, at a level at which all of them hold together (Bonferroni).
    """
    names, where = sorted(set(hosts)), np.array(hosts)
    said = []
    while len(names) > 1:
        shown = (
            names[:1] if len(names) == 2 else names
        )  # of two, one is apart from the other as the other from it
        found = {name: one for name in shown if (one := _difference(off, where, name, names, len(shown)))}
        if not found:
            break
        name = min(found, key=lambda each: found[each].p)
        if found[name].low <= 0 <= found[name].high:
            break
        said.append(_told(name, found[name], len(names) == 2))
        names.remove(name)
    return said


def _difference(
    off: Floats, where: NDArray[np.str_], name: str, names: Sequence[str], count: int
) -> Difference | None:
    """One machine against the others; None where they are too few, or nothing varies."""
    here, others = off[where == name], off[np.isin(where, [each for each in names if each != name])]
    if min(len(here), len(others)) < LEAST:
        return None
    try:
        return welch(here, others, confidence=1 - (1 - CONFIDENCE) / count)
    except ValueError:
        return None


def _told(name: str, found: Difference, pair: bool) -> str:
    near, far = sorted(abs(math.expm1(bound)) for bound in (found.low, found.high))
    middle = percent(abs(math.expm1(found.difference)))
    return (
        f"cells measured on {name} are {middle} ({percent(near)} … {percent(far)}) "
        f"{'above' if found.low > 0 else 'below'} those of the other machine{'' if pair else 's'}, held against what "
        "all cells predict: a machine is in these differences, besides the factors"
    )
