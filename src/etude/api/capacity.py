"""The maximum sustainable load of a server, and a response over configurations."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from etude import codec
from etude.api.call import public
from etude.api.result import PathText, Result, frame_of
from etude.errors import UsageError
from etude.experiment.session import new_directory
from etude.figures.data import Figure
from etude.figures.surface import figures_of
from etude.peak.policies import DEFAULT
from etude.peak.policies import policy as policy_of
from etude.peak.search_session import named_bench, run_search
from etude.peak.search_store import SearchSpec
from etude.peak.sources import of_harness, of_simulation
from etude.peak.task import slo_ratio_of
from etude.peak.window import joined_windows
from etude.present.section import Block, Section
from etude.present.sections.peak import (
    Search,
    load_members,
    peak_section,
    search_figures,
    search_of,
    stored_search,
)
from etude.present.sections.surface import map_blocks, map_goal, map_status, surface_document, surface_section
from etude.present.sentences.peak import of_map
from etude.surface.map_request import map_here, request_map
from etude.surface.map_store import MapStore, surface_result_of
from etude.surface.next_configuration import Plan
from etude.surface.summary import optimum
from etude.surface.surface_result import Estimate, SurfaceResult

if TYPE_CHECKING:
    import polars


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True, repr=False)
class PeakRate(Result):
    """The answer of a search, with its trials."""

    search: Search

    @classmethod
    @public
    def read(cls, directory: PathText) -> PeakRate:
        """A search on disk. Raises InputError where there is none."""
        return cls(stored_search(Path(directory)))

    @property
    def rate(self) -> float | None:
        """The peak rate, 1/s, or number of clients of a closed system; None if only bounds are known."""
        return self.search.answer.rate

    @property
    def low(self) -> float:
        """Lower limit of its interval; 0: no bound."""
        return self.search.answer.low

    @property
    def high(self) -> float:
        """Upper limit of its interval; infinite: no bound."""
        return self.search.answer.high

    @property
    def kept(self) -> bool:
        """True if the search met its target of precision."""
        return self.search.answer.kept

    @property
    def directory(self) -> Path:
        """Directory of the results."""
        return Path(self.search.place)

    def section(self) -> Section:
        """The answer, the response over the load, and all trials."""
        return peak_section(self.search)

    def figures(self) -> dict[str, Figure]:
        """Figures of the search by name."""
        return search_figures([self.search])

    def to_frame(self) -> polars.DataFrame:
        """One row per trial, in order: `load` (1/s or clients), `runlength_s`, `ran_s`, `response_s` (mean),
        `reading` (SLO ratio; null: none), `ended`, `limited`, `cost_s`, and for
        trials with answers `offered`, `completed` (1/s), `errors`, `p50_s`, … and `lateness_p99_s`."""
        rows = [
            {
                "load": trial.load,
                "runlength_s": trial.runlength_s,
                "ran_s": trial.ran_s,
                "response_s": joined_windows(trial.windows).mean_so_far_s if trial.windows else None,
                "reading": _finite(slo_ratio_of(self.search.task.goal, trial)),
                "ended": trial.ended,
                "limited": trial.limited,
                "cost_s": trial.cost_s,
            }
            | load_members(trial)
            for trial in self.search.trials
        ]
        return frame_of(
            rows,
            {
                **dict.fromkeys(("load", "runlength_s", "ran_s", "response_s", "reading"), float),
                "ended": str,
                "limited": str,
                "cost_s": float,
            },
        )

    def __repr__(self) -> str:
        answer, task = self.search.answer, self.search.task
        found = "no rate" if answer.rate is None else task.load_text(answer.rate)
        bounds = f"[{task.load_digits(answer.low)}, {task.load_digits(answer.high)}]"
        words = ", ".join((f"{len(self.search.trials)} trials", *self.search.status))
        return f"<PeakRate of {self.search.name}: {found} {bounds}, {words}>"


@public
def peak(
    harness: PathText | None = None,
    *,
    simulate: str | None = None,
    directory: PathText | None = None,
    policy: str = DEFAULT,
    factors: Mapping[str, str] | None = None,
    seed_load: codec.Positive | None = None,
    promise: Literal["rate", "region"] | None = None,
    within: codec.Share | None = None,
    width: codec.Share | None = None,
    confidence: codec.Share | None = None,
    budget_s: codec.Positive | None = None,
    seed: codec.Count | None = None,
) -> PeakRate:
    """Search the highest load at which a server meets its goal (`etude peak`).

    harness: a HARNESS.toml, or `MODULE:NAME` of a harness in Python. simulate: a simulated server instead, such as
    `mm1:500`. directory: results directory; one of the same search, unfinished, is resumed.
    factors: values of the harness's factors. seed_load: first load, 1/s or clients. within: relative error of the
    answer; width: half width of the peak-rate region; confidence: fractions. budget_s: benchmarking time.

    Raises:
        UsageError: options that do not fit; InputError: the harness is invalid, or the directory holds another search;
        MachineRefuses: the server or the load generator cannot be run. What was measured is on disk.
    """
    if (harness is None) == (simulate is None):
        raise UsageError("expected a harness, or simulate=CURVE")
    factors = dict(factors or {})
    settings = {
        "seed": seed,
        "seed_load": seed_load,
        "promise": promise,
        "within": within,
        "width": width,
        "confidence": confidence,
        "budget_s": budget_s,
    }
    source = of_simulation(simulate) if simulate is not None else of_harness(os.fspath(harness or ""))
    source = source.changed(settings, factors)
    policy_of(policy)  # an unknown one is refused before there is a directory
    path = new_directory(None, f"peak-{source.name}") if directory is None else Path(directory)
    sought = SearchSpec(source.name, source.task, policy, source.text, factors)
    kept = run_search(path, sought, partial(named_bench, source))
    assert kept.answer is not None
    return PeakRate(search_of(kept, kept.answer, source.peak))


@dataclass(frozen=True, repr=False)
class SurfaceMap(Result):
    """A response at every configuration, measured or predicted."""

    stored: MapStore
    result: SurfaceResult

    @classmethod
    @public
    def read(cls, directory: PathText) -> SurfaceMap:
        """A map on disk. Raises InputError where there is none."""
        kept = MapStore(Path(directory))
        kept.check_whole("configurations")
        return cls(kept, surface_result_of(kept))

    @property
    def name(self) -> str:
        """Name of the specification, or of the simulated system."""
        return self.stored.definition.name

    @property
    def directory(self) -> Path:
        """Directory of the results."""
        return self.stored.directory

    @property
    def best(self) -> dict[str, str] | None:
        """The best configuration, a level by factor; None if nothing is known."""
        found = optimum(self.result)
        return None if found is None else dict(self.result.space.settings(found.best.cell))

    def estimates(self) -> Iterable[Estimate]:
        """The response at each configuration, in the order of the space."""
        return map(self.result.estimate, self.result.space)

    def section(self) -> Section:
        """The best configuration, the response everywhere, effects and limits."""
        ended = (self.stored.document.get("surface") or {}).get("why", "")
        status = map_status(self.stored, self.result)
        return surface_section(
            self.result, status=status, ended=ended, drawn=False, goal=map_goal(self.stored)
        )

    def blocks(self) -> Iterable[Block]:
        """The blocks of a terminal."""
        return map_blocks(self.stored, self.result)

    def figures(self) -> dict[str, Figure]:
        """Figures of the map by name."""
        return dict(figures_of(self.result)) if self.result.filled.known.any() else {}

    def to_frame(self) -> polars.DataFrame:
        """One row per configuration: a column per factor, `state` (measured, predicted, bounded, failed), `value`,
        `low`, `high` in the response's unit (null: no bound), `kept` (target met; null: not measured), `why`, `trials`,
        `cost_s`."""
        names = ("state", "value", "low", "high", "kept", "why", "trials", "cost_s")
        rows = [
            {**cell["factors"], **{name: cell[name] for name in names}}
            for cell in surface_document(self.result)["cells"]
        ]
        schema = {
            "state": str,
            **dict.fromkeys(("value", "low", "high"), float),
            "kept": bool,
            "why": str,
            "trials": int,
            "cost_s": float,
        }
        return frame_of(rows, schema)

    def __repr__(self) -> str:
        states = Counter(each.state for each in self.estimates() if math.isfinite(each.value or math.nan))
        known = ", ".join(f"{count} {state}" for state, count in states.items())
        words = ", ".join((known or "none known", *of_map(self.stored, self.result)))
        return f"<SurfaceMap of {self.name}, {self.result.space.size} configurations: {words}>"


@public
def surface(
    spec: PathText | None = None,
    *,
    simulate: str | None = None,
    directory: PathText | None = None,
    plan: Plan | None = None,
    count: codec.Whole | None = None,
    error: codec.Share | None = None,
    skip: bool | None = None,
    budget_s: codec.Positive | None = None,
    retry: bool = False,
) -> SurfaceMap:
    """Map a response over configurations (`etude surface`).

    spec: a SPEC.toml. simulate: a simulated system instead, by name. directory: results directory; one of the same
    map, unfinished, is resumed.
    plan: order of configurations. count: maximum number that is measured. error: mean absolute error of predictions,
    a fraction, at which an adaptive map ends. skip: leave out configurations that are predicted well enough.
    budget_s: benchmarking time. retry: measure configurations again that failed in an earlier session.

    Raises:
        UsageError: options that do not fit; InputError: the specification is invalid, or the directory holds another
        map; MachineRefuses: nothing can be measured. What was measured is on disk.
    """
    if (spec is None) == (simulate is None):
        raise UsageError("expected a specification, or simulate=NAME")
    changes = {"plan": plan, "count": count, "error": error, "skip": skip}
    asked = request_map(None if spec is None else Path(spec), simulate or "", changes, budget_s=budget_s)
    path = new_directory(None, f"surface-{asked.definition.name}") if directory is None else Path(directory)
    kept = map_here(path, asked, retry=retry)
    return SurfaceMap(kept, surface_result_of(kept))
