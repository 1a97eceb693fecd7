"""Runs the experiments of claims, look by look, until all claims are decided or the budget is spent."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from scipy.special import ndtr, ndtri

from etude.claims.check import problems
from etude.claims.claims_file import FEW, Claim, ClaimsFile, Experiment
from etude.claims.digests import changed, digests_of
from etude.claims.evidence import Finding, findings
from etude.codec import decoded, plain
from etude.errors import EtudeError, InputError, Interrupted, MachineRefuses, Restarting
from etude.osutil.files import replace_file
from etude.stats.sequential import (
    NOTHING_KNOWN,
    Decision,
    Evidence,
    all_of,
    at_a_look,
    decide,
    planned_looks,
)

STATE = "claims.json"
VERSION = 1
Status = Literal["supported", "refuted", "undecided"]


@dataclass(frozen=True)
class Look:
    """One look at the results of an experiment."""

    trials: int
    evidence: Mapping[str, tuple[float, float]]
    """Two-sided p of "supported" and "refuted" by claim."""


@dataclass
class Measured:
    """The looks at one experiment, its time and its files."""

    looks: list[Look] = field(default_factory=list)
    seconds: float = 0.0
    """Wall-clock time that it took so far."""
    digests: dict[str, str] = field(default_factory=dict)
    failed: str = ""
    """Reason why it cannot be measured; empty: none."""


@dataclass
class State:
    """State of a run of claims, on disk in `claims.json`."""

    version: int
    scale: str
    file: str
    """Absolute path of the claims file."""
    claims: list[str]
    """Ids of the claims that are decided together: their family."""
    text: str
    """The claims file."""
    experiments: dict[str, Measured]


@dataclass(frozen=True)
class Result:
    """The verdict on one claim."""

    claim: Claim
    status: Status
    decision: Decision
    findings: tuple[Finding, ...]
    """Evidence for each bound; empty: not measured."""
    trials: int
    seconds: float
    level: float
    """Two-sided level of the interval that decides at one look."""
    failed: str = ""


class Runner(Protocol):
    """Measures an experiment of some kind."""

    def measure(self, experiment: Experiment, place: Path, trials: int) -> None:
        """Bring the results in `place` to so many trials of each test. Raises EtudeError."""


Observer = Callable[[Experiment, int], None]


def looks_of(experiment: Experiment) -> tuple[int, ...]:
    """Numbers of trials at which an experiment is looked at; a single one if trials cannot be added."""
    return planned_looks(FEW, experiment.trials) if experiment.extends else (experiment.trials,)


def is_last(experiment: Experiment, trials: int) -> bool:
    """True if no further trials are planned."""
    return not experiment.extends or trials == looks_of(experiment)[-1]


def run_claims(
    file: ClaimsFile,
    claims: Sequence[Claim],
    directory: Path,
    runner: Runner,
    *,
    budget_s: float = math.inf,
    observe: Observer = lambda experiment, trials: None,
) -> tuple[Result, ...]:
    """Measure until each claim is decided, cannot be, or the budget is spent. A run that ended early is resumed.

    Raises:
        InputError: the directory is of other claims, or a program or input changed since.
    """
    state = open_state(file, claims, directory)
    spent_s = 0.0
    while spent_s < budget_s:
        experiment = _next(file, claims, state, budget_s - spent_s)
        if experiment is None:
            break
        done = state.experiments[experiment.name]
        trials = looks_of(experiment)[len(done.looks)]
        observe(experiment, trials)
        if (lacking := next(problems(file, experiment), None)) is not None:
            done.failed = str(lacking)
            _write(directory, state)
            continue
        started = time.monotonic()
        try:
            bounded = replace(experiment, budget_s=min(experiment.budget_s, max(1.0, budget_s - spent_s)))
            # Hooks run in the claims file's directory: their log needs a path that does not depend on it.
            runner.measure(bounded, (directory / experiment.name).absolute(), trials)
        except (Restarting, Interrupted, MachineRefuses):
            raise
        except EtudeError as error:
            done.failed = str(error)
        else:
            _compare(directory, experiment, done)
            done.looks.append(_look(file, claims, experiment, directory, trials))
        finally:
            took_s = time.monotonic() - started
            done.seconds += took_s
            spent_s += took_s
            _write(directory, state)
    return results_of(file, claims, state, directory)


def _compare(directory: Path, experiment: Experiment, done: Measured) -> None:
    """Raise InputError for a program or an input that changed since it was first measured. What a set-up has made by
    its first look is compared from then on."""
    now = digests_of(experiment)
    if found := changed(done.digests, now):
        raise InputError(f"{found[0]} changed while experiment {experiment.name} of {directory} was measured")
    done.digests = now


def open_state(file: ClaimsFile, claims: Sequence[Claim], directory: Path) -> State:
    """The state in a directory; a new one if it is empty.

    Raises:
        InputError: see `run_claims`.
    """
    now = {claim.experiment: digests_of(file.experiments[claim.experiment]) for claim in claims}
    if not (directory / STATE).exists():
        for name in now:
            if (directory / name).exists():
                raise InputError(
                    f"{directory / name}: exists, but no {STATE} beside it; name another directory"
                )
        state = State(
            VERSION,
            file.scale,
            str(file.path.absolute()),
            [claim.id for claim in claims],
            file.text,
            {name: Measured(digests=found) for name, found in now.items()},
        )
        directory.mkdir(parents=True, exist_ok=True)
        _write(directory, state)
        return state
    state = read_state(directory)
    if state.text != file.text or state.scale != file.scale:
        raise InputError(
            f"{directory}: is of other claims, or of another scale ({state.scale}); name another directory"
        )
    if state.claims != [claim.id for claim in claims]:
        raise InputError(
            f"{directory}: was begun with the claims {', '.join(state.claims)}: name the same ones"
        )
    check_state(file, claims, state, directory)
    for name, digests in now.items():
        state.experiments[name].failed = ""
        if found := changed(state.experiments[name].digests, digests):
            raise InputError(
                f"{directory}: {found[0]} changed since experiment {name} was begun; begin in another directory"
            )
    return state


def read_state(directory: Path) -> State:
    """The stored state. Raises InputError: there is none, or it is invalid."""
    path = directory / STATE
    try:
        told = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}; expected results of etude claims run"
        ) from None
    except ValueError:
        raise InputError(f"{path}: is no JSON; was it edited?") from None
    if isinstance(told, dict) and told.get("version", 0) != VERSION:
        raise InputError(
            f"{path}: is of version {told.get('version')}; expected {VERSION}: use a newer Étude"
        )
    return decoded(State, told, str(path))


def check_state(file: ClaimsFile, claims: Sequence[Claim], state: State, directory: Path) -> None:
    """Raise InputError for a state that no run of these claims leaves."""
    where = f"{directory / STATE}: experiments"
    if state.experiments.keys() != {claim.experiment for claim in claims}:
        raise InputError(f"{where}: are not those of its claims; was it edited?")
    for name, done in state.experiments.items():
        planned = looks_of(file.experiments[name])
        ids = {claim.id for claim in claims if claim.experiment == name}
        trials = tuple(look.trials for look in done.looks)
        fits = len(trials) <= len(planned) and (
            trials == planned[: len(trials)] or not file.experiments[name].extends
        )
        values = [p for look in done.looks for pair in look.evidence.values() for p in pair]
        if (
            not fits
            or any(look.evidence.keys() != ids for look in done.looks)
            or not all(0.0 <= p <= 1.0 for p in values)
            or not 0.0 <= done.seconds < math.inf
        ):
            raise InputError(f"{where}.{name}: its looks are none of this experiment; was it edited?")


def _write(directory: Path, state: State) -> None:
    document: dict[str, Any] = plain(state)
    replace_file(directory / STATE, json.dumps(document, ensure_ascii=False, indent=1).encode())


def _look(
    file: ClaimsFile, claims: Iterable[Claim], experiment: Experiment, directory: Path, trials: int
) -> Look:
    evidence, counts = {}, [0]
    for claim in claims:
        if claim.experiment == experiment.name:
            last = is_last(experiment, trials)
            seen = findings(directory / experiment.name, experiment, claim.hold, file.margin, last=last)
            found = all_of([each.evidence for each in seen])
            evidence[claim.id] = (found.supported, found.refuted)
            counts += [each.estimate.count for each in seen if each.estimate is not None]
    return Look(trials if experiment.extends else max(counts), evidence)


def decisions(file: ClaimsFile, claims: Sequence[Claim], state: State) -> tuple[Decision, ...]:
    """The decision on each claim from the last look at its experiment: its results say the same."""
    family = []
    for claim in claims:
        seen = state.experiments[claim.experiment].looks
        found = Evidence(*seen[-1].evidence[claim.id]) if seen else NOTHING_KNOWN
        family.append(at_a_look(found, len(looks_of(file.experiments[claim.experiment]))))
    return decide(family, 1.0 - file.confidence)


def results_of(
    file: ClaimsFile, claims: Sequence[Claim], state: State, directory: Path
) -> tuple[Result, ...]:
    """The verdict on each claim from what is on disk."""
    found = []
    for claim, decision in zip(claims, decisions(file, claims, state), strict=True):
        experiment, done = file.experiments[claim.experiment], state.experiments[claim.experiment]
        last = bool(done.looks) and is_last(experiment, done.looks[-1].trials)
        seen = (
            findings(directory / experiment.name, experiment, claim.hold, file.margin, last=last)
            if done.looks
            else ()
        )
        status: Status = (
            "undecided" if decision.supported is None else "supported" if decision.supported else "refuted"
        )
        trials = done.looks[-1].trials if done.looks else 0
        level = decision.level / len(looks_of(experiment))
        found.append(Result(claim, status, decision, seen, trials, done.seconds, level, done.failed))
    return tuple(found)


def _next(file: ClaimsFile, claims: Sequence[Claim], state: State, left_s: float) -> Experiment | None:
    """The experiment whose next look decides most claims a second; None if no look is left for an undecided claim, or
    none that takes `left_s` seconds at most."""
    decided = decisions(file, claims, state)
    level = 1.0 - file.confidence
    best: tuple[float, Experiment] | None = None
    for name, done in state.experiments.items():
        experiment = file.experiments[name]
        looks = looks_of(experiment)
        open_ = [
            d
            for claim, d in zip(claims, decided, strict=True)
            if claim.experiment == name and d.supported is None
        ]
        if done.failed or not open_ or len(done.looks) >= len(looks):
            continue
        if not done.looks:
            return experiment
        growth = looks[len(done.looks)] / looks[len(done.looks) - 1]
        further_s = done.seconds * (growth - 1.0)
        if further_s > left_s or done.seconds + further_s > experiment.budget_s:
            continue
        gain = sum(_chance(d.p, growth, level) for d in open_) / (further_s + 1e-9)
        if best is None or gain > best[0]:
            best = gain, experiment
    return best[1] if best else None


def _chance(p: float, growth: float, level: float) -> float:
    """Probability that more trials make a p of `level` of this one, if the estimate stays as it is."""
    now = -float(ndtri(max(p, 1e-300) / 2.0))
    return float(ndtr(now * math.sqrt(growth) + float(ndtri(level / 2.0))))
