"""Claims that were run: their file, state and results, from a results directory or an unpacked bundle."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from etude.claims.claims_file import Claim, ClaimsFile, read_claims
from etude.claims.digests import digests_below, input_digests
from etude.claims.evidence import findings
from etude.claims.run import STATE, Result, State, check_state, is_last, read_state, results_of
from etude.errors import InputError, UsageError
from etude.stats.sequential import all_of

SOURCES = "claims"
"""Directory of a bundle that has the claims file and its inputs."""


@dataclass(frozen=True)
class StoredClaims:
    """Claims with what was measured for them."""

    directory: Path
    """Results of the experiments, a directory each."""
    file: ClaimsFile
    claims: tuple[Claim, ...]
    state: State

    def results(self) -> tuple[Result, ...]:
        """The verdict on each claim."""
        return results_of(self.file, self.claims, self.state, self.directory)

    def measured(self) -> dict[str, Path]:
        """Results directories of the experiments that have one, by name."""
        places = {name: self.directory / name for name in self.state.experiments}
        return {name: place for name, place in places.items() if (place / "experiment.json").exists()}


def has_claims(directory: Path) -> bool:
    """True if a directory holds results of claims."""
    return (directory / STATE).is_file()


def read_stored(directory: Path) -> StoredClaims:
    """The claims of a results directory.

    Raises:
        InputError: there are none, or they are invalid.
    """
    state = read_state(directory)
    return _stored(directory, Path(state.file), state)


def read_packed(root: Path) -> StoredClaims:
    """The claims of an unpacked bundle, whose verdicts are what its results give.

    Raises:
        InputError: there are none; they are invalid; an input or a verdict is another than when they were run.
    """
    state = read_state(root)
    path = root / SOURCES / Path(state.file).name
    found = _stored(root / "results", path, state)
    if not path.is_file() or path.read_text("utf-8", "replace") != state.text:
        raise InputError(f"{path}: is another claims file than the one that was run; was it edited?")
    packed_inputs(found)
    _check_evidence(found, root)
    return found


def _stored(results: Path, path: Path, state: State) -> StoredClaims:
    file = read_claims(path, state.scale, state.text)
    try:
        claims = file.chosen(tuple(state.claims))
    except UsageError as error:
        raise InputError(f"{STATE}: {error}; was it edited?") from None
    if {claim.experiment for claim in claims} != state.experiments.keys():
        raise InputError(f"{STATE}: has other experiments than its claims; was it edited?")
    check_state(file, claims, state, results)
    return StoredClaims(results, file, claims, state)


def _check_evidence(stored: StoredClaims, root: Path) -> None:
    """Raise InputError if the last look at an experiment says something else than its results."""
    for claim in stored.claims:
        looks = stored.state.experiments[claim.experiment].looks
        if not looks:
            continue
        experiment = stored.file.experiments[claim.experiment]
        last = is_last(experiment, looks[-1].trials)
        found = findings(
            stored.directory / experiment.name, experiment, claim.hold, stored.file.margin, last=last
        )
        now = all_of([each.evidence for each in found])
        then = looks[-1].evidence.get(claim.id, (math.nan, math.nan))
        if not all(
            math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12)
            for a, b in zip(then, (now.supported, now.refuted), strict=True)
        ):
            raise InputError(
                f"{root / STATE}: has another result for claim {claim.id} than results/{experiment.name}: "
                "it was edited, or packed before its run had ended; pack it again"
            )


def packed_inputs(stored: StoredClaims) -> tuple[dict[str, Path], list[str]]:
    """Inputs below the claims file's directory by their relative path, and the paths of all others.

    Raises:
        InputError: one cannot be read, or changed since it was measured.
    """
    place = stored.file.path.absolute().parent
    found = relative_names(inputs_of(stored), place)
    below = {name: digest for name, digest in found.items() if not os.path.isabs(name)}
    check_inputs(stored, below, str(place))
    return {name: place / name for name in below}, sorted(found.keys() - below.keys())


def check_inputs(stored: StoredClaims, now: Mapping[str, str], place: str) -> None:
    """Raise InputError for an input that is another one than when it was measured."""
    then = recorded_digests(stored)
    for name, digest in now.items():
        if then.get(name) != digest:
            raise InputError(
                f"{os.path.join(place, name)}: is another file than the one that was measured; run the claims again"
            )


def inputs_of(stored: StoredClaims) -> dict[str, str]:
    """Digests of the inputs of all experiments as they are now, by absolute path."""
    found: dict[str, str] = {}
    for name in stored.state.experiments:
        found |= input_digests(stored.file.experiments[name])
    place = stored.file.path.absolute().parent
    for path in recorded_digests(stored):
        if not os.path.isabs(path) and (place / path).is_file():  # a program beside the claims file
            found |= dict(digests_below(place / path))
    return found


def relative_names(digests: Mapping[str, str], place: Path) -> dict[str, str]:
    """The digests, with names below a directory relative to it."""
    return {
        str(Path(name).relative_to(place)) if Path(name).is_relative_to(place) else name: digest
        for name, digest in digests.items()
    }


def recorded_digests(stored: StoredClaims) -> dict[str, str]:
    """Digests when it was measured, by names that do not depend on the place of the claims file."""
    place = Path(stored.state.file).parent
    found: dict[str, str] = {}
    for measured in stored.state.experiments.values():
        found |= relative_names(measured.digests, place)
    return found
