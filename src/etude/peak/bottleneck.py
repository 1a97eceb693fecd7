"""Whose limit it was when less was sent than asked for: the server's or the generator's.

A generator that did not offer what it was asked is the commonest wrong answer of a load test. It is the server that was
at its limit when all requests that may be outstanding were, while the generator had time to spare; in every other
case it is not known to be, and the trial tells nothing of the server. It was the server's, too, when it left more
than a twentieth of what was sent without an answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from etude.peak.task import Limited
from etude.units.formatting import digits

SHORT = 0.95
"""Sent, as a share of what was asked for: below this something is at its limit."""
BUSY = 0.80
"""Of its cores: a generator above this may itself have been late."""
AT_LIMIT = 0.90
"""Of the requests that may be outstanding: the mean is never quite all of them."""


@dataclass(frozen=True, slots=True)
class Generator:
    """What is known of it before it runs."""

    cores: float = 1.0
    """How many it can keep busy: its threads."""
    outstanding: float | None = None
    """How many requests can be under way at once: its connections. None: not known."""
    spins: bool = False
    """It waits by looking at the clock: that its core is busy says nothing."""
    serves: bool = False
    """It is itself what is measured (a benchmark of the CPU): its CPU time is the server's."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What it did in one trial."""

    asked: float | None
    """Requests per second; None of closed systems, in which nothing is due."""
    ran_s: float
    sent: int | None
    """Requests begun; None where that is not told."""
    completed: int
    failed: int
    cores: float | None
    """That it kept busy, or waited for while others had them; None where unknown."""
    outstanding: float | None
    """Requests under way, on average over the trial."""
    refused: int = 0
    """Requests it could not begin for want of something of its own: descriptors, ports."""
    clients: float | None = None
    """Of closed systems: how many requests are to be under way at once."""
    most_outstanding: float | None = None
    """The same in the window in which most were; None: as `outstanding`."""


def find_bottleneck(generator: Generator, effort: Effort) -> Limited | None:
    """Whose limit it was; None where what was asked for was sent."""
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
    """Whether less than 95 % of what was sent had an answer, and more had none than can be under way at the end: twice
    the average and 3 sigma of it; where no times are known, 3 sigma of all."""
    if effort.sent is None:
        return False
    mean = effort.outstanding or 0.0
    under_way = 2 * mean + 3 * math.sqrt(mean) + 3 if mean else 3 * math.sqrt(effort.sent)
    return effort.sent - effort.completed - effort.failed > max((1 - SHORT) * effort.sent, under_way)


def _held(effort: Effort) -> bool:
    """Whether as many requests were under way as there are clients: then the generator kept up, however busy it was."""
    known = effort.clients is not None and effort.outstanding is not None
    return known and (effort.outstanding or 0.0) >= AT_LIMIT * (effort.clients or 0.0)


def busy_share(generator: Generator, effort: Effort) -> float | None:
    """The share of its cores that it kept busy; None where that is unknown, or says nothing of its own limit."""
    if effort.cores is None or generator.spins or generator.serves:
        return None
    return effort.cores / generator.cores


def headroom(busy: float) -> float:
    """The share of its capacity that a generator has left: 0 where it counts as saturated."""
    return max(0.0, 1 - busy / BUSY)


def sent_too_little(due: float, sent: float) -> bool:
    """Whether less was sent than 95 % of what was due, by more than the luck of Poisson arrivals (3 sigma)."""
    return sent < min(SHORT * due, due - 3 * math.sqrt(due))


def effort_line(generator: Generator, effort: Effort) -> str:
    """The trial in a line: asked, sent, completed, failed, and what it took."""
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
