"""The maximum sustainable load of a server, and a response over configurations."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from etude.api.result import PathText, Result, frame_of
from etude.codec import decoded, plain
from etude.errors import InputError, UsageError
from etude.experiment.session import new_directory
from etude.figures.data import Figure
from etude.figures.surface import figures_of
from etude.peak.policies import policy as policy_of
from etude.peak.search import search
from etude.peak.search_store import SearchSpec, open_store
from etude.peak.sources import of_harness, of_simulation
from etude.peak.task import Task
from etude.present.section import Section
from etude.present.sections.peak import (
    Search,
    load_members,
    peak_section,
    search_figures,
    search_of,
    stored_search,
)
from etude.present.sections.surface import surface_document, surface_section
from etude.surface.map_store import MapStore, define_map, open_map, surface_result_of
from etude.surface.next_configuration import Plan, Rules, contradiction
from etude.surface.peaks import response_of, simulated_response
from etude.surface.run_map import Display, MapBudget, run_map
from etude.surface.spec import read_spec
from etude.surface.summary import optimum
from etude.surface.surface_result import Estimate, SurfaceResult

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, repr=False)
class PeakRate(Result):
    """The answer of a search, with its trials."""

    search: Search

    @classmethod
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
        """One row per trial, in order: `load` (1/s or clients), `runlength_s`, `ended`, `limited`, `cost_s`, and for
        trials with answers `offered`, `completed` (1/s), `errors`, `p50_s`, … and `lateness_p99_s`."""
        rows = [
            {
                "load": trial.load,
                "runlength_s": trial.runlength_s,
                "ended": trial.ended,
                "limited": trial.limited,
                "cost_s": trial.cost_s,
            }
            | load_members(trial)
            for trial in self.search.trials
        ]
        return frame_of(rows, ("limited",))

    def __repr__(self) -> str:
        answer, task = self.search.answer, self.search.task
        found = "no rate" if answer.rate is None else task.load_text(answer.rate)
        bounds = f"[{task.load_digits(answer.low)}, {task.load_digits(answer.high)}]"
        return f"<PeakRate of {self.search.name}: {found} {bounds}, {len(self.search.trials)} trials>"


def peak(
    harness: PathText | None = None,
    *,
    simulate: str | None = None,
    directory: PathText | None = None,
    policy: str = "posterior",
    factors: Mapping[str, str] | None = None,
    seed_load: float | None = None,
    promise: Literal["rate", "region"] | None = None,
    within: float | None = None,
    width: float | None = None,
    confidence: float | None = None,
    budget_s: float | None = None,
    seed: int | None = None,
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
        raise UsageError("peak: expected a harness or simulate=CURVE")
    source = of_simulation(simulate) if simulate is not None else of_harness(os.fspath(harness or ""))
    given: dict[str, Any] = {
        "seed": seed,
        "seed_load": seed_load,
        "promise": promise,
        "within": within,
        "width": width,
        "confidence": confidence,
        "budget_s": budget_s,
    }
    task = replace(source.task, **{name: value for name, value in given.items() if value is not None})
    _check(Task, task, "peak")
    chosen = policy_of(policy)
    sought = SearchSpec(source.name, task, policy, source.text, dict(factors or {}))
    path = new_directory(None, f"peak-{source.name}") if directory is None else Path(directory)
    with open_store(path, sought, ()) as kept:
        place = kept.directory / "harness"
        with source.bench(sought.factors, place, kept.trials(), task.seed) as bench:
            answer = search(chosen, kept.task, bench, kept.trials(), kept.keep)
        kept.answered(answer)
        return PeakRate(search_of(kept, answer, source.peak))


def _check(kind: type, given: object, function: str) -> None:
    """Raise UsageError for a value that could not be read back from the results."""
    try:
        decoded(kind, orjson.loads(orjson.dumps(plain(given))), "", "")
    except (InputError, TypeError) as error:  # TypeError: of orjson, for a number beyond 64 bits
        told = str(error).partition("; was it edited")[0].removeprefix(": ")
        raise UsageError(f"{function}: {told}") from None


@dataclass(frozen=True, repr=False)
class SurfaceMap(Result):
    """A response at every configuration, measured or predicted."""

    name: str
    directory: Path
    """Directory of the results."""
    result: SurfaceResult

    @classmethod
    def read(cls, directory: PathText) -> SurfaceMap:
        """A map on disk. Raises InputError where there is none."""
        kept = MapStore(Path(directory))
        kept.check_whole("configurations")
        return cls(kept.definition.name, kept.directory, surface_result_of(kept))

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
        return surface_section(self.result, drawn=False)

    def figures(self) -> dict[str, Figure]:
        """Figures of the map by name."""
        return dict(figures_of(self.result)) if self.result.filled.known.any() else {}

    def to_frame(self) -> polars.DataFrame:
        """One row per configuration: a column per factor, `state` (measured, predicted, bounded, failed), `value`,
        `low`, `high` in the response's unit (null: no bound), `trials`, `cost_s`."""
        names = ("state", "value", "low", "high", "trials", "cost_s")
        rows = [
            {**cell["factors"], **{name: cell[name] for name in names}}
            for cell in surface_document(self.result)["cells"]
        ]
        return frame_of(rows)

    def __repr__(self) -> str:
        known = sum(math.isfinite(each.value or math.nan) for each in self.estimates())
        return f"<SurfaceMap of {self.name}: {known} of {self.result.space.size} configurations known>"


def surface(
    spec: PathText | None = None,
    *,
    simulate: str | None = None,
    directory: PathText | None = None,
    plan: Plan | None = None,
    count: int | None = None,
    error: float | None = None,
    budget_s: float | None = None,
) -> SurfaceMap:
    """Map a response over configurations (`etude surface`).

    spec: a SPEC.toml. simulate: a simulated system instead, by name. directory: results directory; one of the same
    map, unfinished, is resumed.
    plan: order of configurations. count: maximum number that is measured. error: mean absolute error of predictions,
    a fraction, at which an adaptive map ends. budget_s: benchmarking time.

    Raises:
        UsageError: options that do not fit; InputError: the specification is invalid, or the directory holds another
        map; MachineRefuses: nothing can be measured. What was measured is on disk.
    """
    if (spec is None) == (simulate is None):
        raise UsageError("surface: expected a specification or simulate=NAME")
    budget = MapBudget({}, budget_s)
    if simulate is not None:
        system, response = simulated_response(simulate)
        name, space, text = system.law.name, system.space, ""
        rules = Rules()
    else:
        read = read_spec(Path(spec or ""))
        name, space, text, rules = read.name, read.space, read.text, read.rules
        response = response_of(read, None)
        for factor, resource in read.resources.items():
            if (why := resource.check()) is not None:
                raise UsageError(f"{read.path}: factor {factor} ({resource.name}) cannot be set here: {why}")
        budget = MapBudget(read.resources, read.budget_s if budget_s is None else budget_s, read.cell_s)
    given: dict[str, Any] = {"plan": plan, "count": count, "error": error}
    rules = replace(rules, **{key: value for key, value in given.items() if value is not None})
    _check(Rules, rules, "surface")
    if count is not None and count < 1:
        raise UsageError(f"surface: count {count}: expected 1 or more")
    if budget_s is not None and not 0 < budget_s < math.inf:
        raise UsageError(f"surface: budget_s {budget_s}: expected seconds above 0")
    if (wrong := contradiction(rules, space.size)) is not None:
        raise UsageError(f"surface: {' '.join(wrong)}")
    path = new_directory(None, f"surface-{name}") if directory is None else Path(directory)
    with open_map(path, define_map(name, space, rules, response, text), ()) as kept:
        run_map(kept, response, budget, Display())
        return SurfaceMap(name, kept.directory, surface_result_of(kept))
