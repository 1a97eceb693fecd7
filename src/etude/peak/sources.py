"""Subjects of `etude peak`: a HARNESS.toml, a harness in Python (MODULE:NAME), or a simulated server by name."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from etude.errors import InputError, UsageError
from etude.peak.search import Bench
from etude.peak.task import Criterion, Goal, Task, Trial

if TYPE_CHECKING:
    from etude.peak.harnesses.curves import Curve

PEAK = 500.0
"""Default peak rate of a simulated server, requests/s."""
LOWEST, HIGHEST = 50.0, 10_000.0
"""Range of loads of a simulated server; 50 is the low seed of "Cutting Corners", section 4."""


class Harness(Protocol):
    """Interface of a harness: one in Python, or one read from a HARNESS.toml."""

    @property
    def name(self) -> str: ...

    @property
    def task(self) -> Task: ...

    @property
    def text(self) -> str:
        """All that it depends on: a search is only resumed while this is unchanged."""
        ...

    def bench(self, factors: Mapping[str, str], place: Path) -> AbstractContextManager[Bench]:
        """Start the system, and stop it at exit; `place` is its scratch directory."""
        ...


@dataclass(frozen=True)
class Source:
    """A subject of a search, and how its bench is opened."""

    name: str
    task: Task
    text: str
    harness: Harness | None = None
    curve: str = ""
    peak: float | None = None
    """True peak rate of a simulated server."""

    @property
    def nodes(self) -> int:
        """Nodes of a pool that a search of it needs."""
        return getattr(self.harness, "nodes", 1)

    @property
    def load_hosts(self) -> int:
        """Number of other hosts that offer its load; 0: the load comes from the host of the search."""
        return len(getattr(self.harness, "hosts", ()))

    def changed(self, settings: Mapping[str, Any], factors: Mapping[str, str]) -> Source:
        """It with other settings of its task; None: as they are. Raises UsageError: they, or the factors of the
        configuration, do not fit it."""
        if factors and self.curve:
            raise UsageError("--factor is for a harness: a simulated server has none")
        load = settings.get("seed_load")
        if self.task.whole and load is not None and (load < 1 or not float(load).is_integer()):
            raise UsageError(f"--seed-load {load:g}: expected a whole number from 1, as the loads are")
        given = {name: value for name, value in settings.items() if value is not None}
        return replace(self, task=replace(self.task, **given))

    @contextmanager
    def bench(
        self, factors: Mapping[str, str], place: Path, before: Sequence[Trial], seed: int
    ) -> Iterator[Bench]:
        """The bench, in its state after the earlier trials."""
        if self.harness is not None:
            with self.harness.bench(factors, place) as bench:
                yield bench
        else:
            from etude.peak.harnesses.simulated import SimulatedServer

            assert self.peak is not None
            yield SimulatedServer(simulated_curves()[self.curve], self.peak, seed, before=before)


def of_harness(word: str) -> Source:
    """A HARNESS.toml, or MODULE:NAME of a callable without arguments that returns a harness. Raises InputError: from
    `read_harness`; UsageError: the module does not exist."""
    module, colon, attribute = word.partition(":")
    if colon and not Path(word).exists():
        harness = _imported(module, attribute)
    else:
        from etude.peak.harnesses.spec import read_harness

        harness = cast(Harness, read_harness(Path(word)))
    return Source(harness.name, harness.task, harness.text, harness)


def of_text(path: Path, text: str) -> Source:
    """A source from the text of a HARNESS.toml; the path is for messages, its directory is `{here}`. Raises
    InputError."""
    from etude.peak.harnesses.spec import read_harness

    harness = cast(Harness, read_harness(path, text))
    return Source(harness.name, harness.task, harness.text, harness)


def of_simulation(words: str) -> Source:
    """A simulated server from `mm1`, or `mm1:750` with another peak. Raises UsageError for an unknown curve."""
    name, colon, text = words.partition(":")
    known = simulated_curves()
    if name not in known:
        raise UsageError(f"--simulate {words}: no such curve; there are {', '.join(known)}")
    try:
        peak = float(text) if colon else PEAK
    except ValueError:
        peak = math.nan
    if not 0 < peak < math.inf:
        raise UsageError(f"--simulate {words}: expected CURVE or CURVE:PEAK, such as mm1:500")
    goal = Goal((Criterion("mean", 0.040),))
    task = Task(goal, LOWEST, HIGHEST, step=20.0)
    return Source(f"simulated-{name}", task, f"simulate {name}:{peak!r}", None, name, peak)


def simulated_curves() -> Mapping[str, Curve]:
    """All simulated servers by name, the troubled ones last."""
    from etude.peak.harnesses.curves import CURVES, TROUBLED

    return {**CURVES, **TROUBLED}


def _imported(module: str, attribute: str) -> Harness:
    try:
        return cast(Harness, getattr(import_module(module), attribute)())
    except (ImportError, AttributeError) as error:
        looked = ", ".join(filter(None, sys.path[:3]))
        raise UsageError(f"{module}:{attribute}: no such harness ({error}); looked in {looked}, …") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"{module}:{attribute}: gives no harness: {error}") from None
