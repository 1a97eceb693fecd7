"""Bottleneck of a trial that sent less than requested: the server or the load generator.

A load generator that does not offer the requested load is the most common error of load tests. The server was the
bottleneck if all permitted requests were outstanding while the generator had CPU time to spare, or if more than 5 % of
the sent requests were not answered; in every other case the bottleneck is unknown and the trial says nothing about the
server.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from etude.peak.task import Limited
from etude.units.formatting import digits

SHORT = 0.95
"""Sent requests as a share of the requested ones: below this, server or generator is at its limit."""
BUSY = 0.80
"""CPU utilisation of its cores above which the generator counts as saturated."""
AT_LIMIT = 0.90
"""Share of the permitted outstanding requests that counts as all of them: the mean never quite reaches the maximum."""


@dataclass(frozen=True, slots=True)
class Generator:
    """Properties of a load generator that are known before a run."""

    cores: float = 1.0
    """Cores that it can keep busy: its number of threads."""
    outstanding: float | None = None
    """Maximum outstanding requests: its number of connections. None: unknown."""
    spins: bool = False
    """The generator polls the clock: CPU utilisation says nothing about its load."""
    serves: bool = False
    """The generator is itself the system under test (a CPU benchmark): its CPU time is the server's."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Work of the load generator in one trial."""

    asked: float | None
    """Requested load, requests/s; None for closed systems, in which no request is due."""
    ran_s: float
    sent: int | None
    """Requests begun; None if not reported."""
    completed: int
    failed: int
    cores: float | None
    """Cores kept busy or waited for while other threads ran on them; None if unknown."""
    outstanding: float | None
    """Mean number of outstanding requests over the trial."""
    refused: int = 0
    """Requests that could not be begun because the generator ran out of descriptors, ports or similar."""
    clients: float | None = None
    """Closed systems: requested number of concurrent requests."""
    most_outstanding: float | None = None
    """Mean outstanding requests in the window with the most of them; None: same as `outstanding`."""


def find_bottleneck(generator: Generator, effort: Effort) -> Limited | None:
    """The component that limited the trial; None if the requested load was sent."""
    busy = (busy_share(generator, effort) or 0.0) >= BUSY
    if effort.refused:
        return "generator"
    if effort.asked is None:
        return "generator" if busy and not _held(effort) else None
    if _unanswered(effort):
        return "generator" if busy else "server"
    if effort.sent is None or not sent_too_little(effort.asked * effort.ran_s, effort.sent):
        return None
    if generator.serves:
        return "server"
    most = effort.outstanding if effort.most_outstanding is None else effort.most_outstanding
    if busy or generator.spins or generator.outstanding is None or most is None:
        return "generator"
    return "server" if most >= AT_LIMIT * generator.outstanding else "generator"


def _unanswered(effort: Effort) -> bool:
    """True if less than 95 % of the sent requests were answered and more are missing than can be outstanding at the
    end: twice the mean plus 3 sigma of it; without response times, 3 sigma of all."""
    if effort.sent is None:
        return False
    mean = effort.outstanding or 0.0
    under_way = 2 * mean + 3 * math.sqrt(mean) + 3 if mean else 3 * math.sqrt(effort.sent)
    return effort.sent - effort.completed - effort.failed > max((1 - SHORT) * effort.sent, under_way)


def _held(effort: Effort) -> bool:
    """True if as many requests were outstanding as there are clients: the generator kept up, however busy it was."""
    known = effort.clients is not None and effort.outstanding is not None
    return known and (effort.outstanding or 0.0) >= AT_LIMIT * (effort.clients or 0.0)


def busy_share(generator: Generator, effort: Effort) -> float | None:
    """CPU utilisation of the generator's cores, a share; None if unknown or meaningless as its limit."""
    if effort.cores is None or generator.spins or generator.serves:
        return None
    return effort.cores / generator.cores


def headroom(busy: float) -> float:
    """Remaining share of the generator's capacity: 0 if it counts as saturated."""
    return max(0.0, 1 - busy / BUSY)


def sent_too_little(due: float, sent: float) -> bool:
    """True if less than 95 % of the due requests were sent, by more than Poisson noise (3 sigma)."""
    return sent < min(SHORT * due, due - 3 * math.sqrt(due))


def effort_line(generator: Generator, effort: Effort) -> str:
    """The trial in one line: requests requested, sent, completed and failed, and the resources used."""
    ran = max(effort.ran_s, 1e-9)
    parts = [] if effort.asked is None else [f"asked {effort.asked:.4g}/s"]
    if effort.sent is not None:
        parts.append(f"sent {effort.sent / ran:.4g}/s")
    parts += [f"completed {effort.completed / ran:.4g}/s", f"failed {effort.failed}"]
    if effort.refused:
        parts.append(f"refused by the generator {effort.refused}")
    if effort.cores is not None:
        parts.append(f"generator {effort.cores:.2f} of {generator.cores:g} cores")
    if effort.outstanding is not None:
        most = "" if generator.outstanding is None else f" of {generator.outstanding:g}"
        parts.append(f"outstanding {digits(effort.outstanding, 2)}{most}")
    return ", ".join(parts)
