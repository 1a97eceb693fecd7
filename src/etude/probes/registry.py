"""Probes by name: entry points of the group `etude.probes`, of Étude and other installed packages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from etude.errors import UsageError
from etude.probes.probe import Probe

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "etude.probes"


def find_probe(names: Sequence[str]) -> list[Probe]:
    """A new probe for each name, in this order; repeated names count once.

    Raises:
        UsageError: there is no such probe, two packages have one of that name, or it cannot be loaded.
    """
    known = _known()
    for name in names:
        if name not in known:
            raise UsageError(f"no probe {name!r}; there are: {', '.join(sorted(known)) or 'none'}")
    return [_load(name, known[name]) for name in dict.fromkeys(names)]


def known_probes() -> list[str]:
    """The names of all installed probes, sorted."""
    return sorted(_known())


def _known() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import (
        entry_points,
    )  # reads every package's metadata: only if a probe is requested

    known: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        known.setdefault(point.name, []).append(point)
    return known


def _load(name: str, points: Sequence[EntryPoint]) -> Probe:
    if len({point.value for point in points}) > 1:
        given = " and ".join(sorted(point.value for point in points))
        raise UsageError(f"probe {name!r} is given twice, by {given}; uninstall one of them")
    try:
        probe: Probe = points[0].load()()
    except Exception as error:  # a plug-in may be broken in any way
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UsageError(f"probe {name!r} ({points[0].value}) cannot be loaded: {reason}") from error
    return probe
