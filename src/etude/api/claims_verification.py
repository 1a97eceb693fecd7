"""Claims of a bundle run again on this machine (`etude claims verify`)."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.analysis.snapshot_differences import Differences, compare_states, state_now, state_of
from etude.api.call import public
from etude.api.claims import Runner
from etude.api.result import PathText, Result, frame_of
from etude.claims.claims_file import ClaimsFile, read_claims
from etude.claims.run import STATE, Observer, run_claims
from etude.claims.stored_claims import (
    StoredClaims,
    packed_inputs,
    read_packed,
    read_stored,
    recorded_digests,
)
from etude.claims.verification import OtherFile, Verified, other_files, verified
from etude.errors import InputError
from etude.experiment import run as experiments
from etude.experiment.session import new_directory
from etude.present.section import Section
from etude.present.sections.verification import verification_section
from etude.present.sections.verification_page import verification_page
from etude.results.bundle import open_bundle
from etude.results.reader import read_experiment

if TYPE_CHECKING:
    import polars

WORK = "work"
"""Directory of the verification in which the commands run: the claims file and its inputs."""
_PROGRAMS = (b"#!", b"\x7fELF")
"""First bytes of inputs that are made executable: a bundle has no modes."""


@dataclass(frozen=True)
class Verification(Result):
    """Both results of each claim, and what differs between the machines."""

    claims: tuple[Verified, ...]
    differences: Differences
    """Machine and settings; theirs first."""
    files: tuple[OtherFile, ...]
    scales: tuple[str, str]
    """Theirs and ours."""
    file: ClaimsFile
    """The claims as they were run here."""
    directory: Path

    def section(self) -> Section:
        """A table of both results, and what differs where a claim is refuted."""
        return verification_section(self.file, self.claims, self.differences, self.files, self.scales[0])

    def page(self) -> str:
        """A page in HTML: both results of each claim, and what differs between the machines."""
        return verification_page(self.file, self.claims, self.differences, self.files, self.section())

    def to_frame(self) -> polars.DataFrame:
        """One row per bound: `id`, `bound`, `theirs`, `ours`, `change`, `low`, `high`, and both verdicts."""
        rows = [_row(v, number) for v in self.claims for number in range(len(v.bounds))]
        texts = dict.fromkeys(("id", "bound", "status_theirs", "status_ours"), str)
        return frame_of(rows, {**texts, **dict.fromkeys(("theirs", "ours", "change", "low", "high"), float)})


def _row(found: Verified, number: int) -> dict[str, Any]:
    a = found.bounds[number]
    interval = a.change.interval(0.05) if a.change else None
    return {
        "id": found.claim.id,
        "bound": a.bound.text,
        "theirs": a.theirs and a.theirs.value,
        "ours": a.ours and a.ours.value,
        "change": a.change and a.change.value,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "status_theirs": found.theirs.status,
        "status_ours": found.ours.status,
    }


@public
def verify_claims(
    bundle: PathText,
    *,
    scale: str | None = None,
    directory: PathText | None = None,
    budget_s: float = math.inf,
    announce: Callable[[Differences], None] = lambda differences: None,
    observe: Observer = lambda experiment, trials: None,
    observe_trials: experiments.Observer = experiments.ignore_events,
) -> Verification:
    """Run the claims of a bundle again on this machine.

    scale: another one than theirs. directory: results directory; one of the same bundle is resumed. announce: is told
    what differs between the machines, before anything is run.

    Raises:
        InputError: the bundle was altered, or holds no claims; UsageError: no such scale.
    """
    path = Path(os.fspath(bundle))
    with open_bundle(path) as results:
        root = results[0].parent.parent if results else path
        if not (root / STATE).is_file():
            raise InputError(f"{path}: holds no claims: expected a bundle of results of etude claims run")
        theirs = read_packed(root)
        read_claims(theirs.file.path, scale or theirs.state.scale)
        place = (
            new_directory(None, f"claims-{theirs.file.path.stem}") if directory is None else Path(directory)
        )
        path = _staged(theirs, place)
        differences = _differences(theirs, path.parent)
        announce(differences)
        file = read_claims(path, scale or theirs.state.scale)
        chosen = file.chosen(tuple(theirs.state.claims))
        ours = run_claims(file, chosen, place, Runner(observe_trials), budget_s=budget_s, observe=observe)
        pairs = zip(theirs.results(), ours, strict=True)
        return Verification(
            tuple(verified(then, now) for then, now in pairs),
            differences,
            other_files(recorded_digests(theirs), recorded_digests(read_stored(place))),
            (theirs.state.scale, file.scale),
            file,
            place,
        )


def _staged(theirs: StoredClaims, place: Path) -> Path:
    """The claims file in a directory of its own with all inputs, copied once.

    Raises:
        InputError: another bundle was verified there.
    """
    work = place / WORK
    target = work / theirs.file.path.name
    inputs = packed_inputs(theirs)[0]
    if work.exists():
        copied = {work / name: path for name, path in inputs.items()} | {target: theirs.file.path}
        if other := next(
            (a for a, b in copied.items() if not a.is_file() or not cmp(a, b, shallow=False)), None
        ):
            raise InputError(f"{other}: is not that of the bundle; name another directory")
        return target
    work.mkdir(parents=True)
    for name, path in inputs.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, work / name)
        with open(path, "rb") as opened:
            if opened.read(4).startswith(_PROGRAMS):
                (work / name).chmod(0o755)
    target.write_text(theirs.state.text, "utf-8")
    return target


def _differences(theirs: StoredClaims, work: Path) -> Differences:
    """Differences of their machine, at their first experiment, from this one now, with the work directory."""
    for place in theirs.measured().values():
        document = read_experiment(place)
        machine = document.get("machine")
        if isinstance(machine, Mapping) and isinstance(machine.get("before"), Mapping):
            then = state_of(document)
            now = state_now(then, str(work.absolute()))
            same = {"programs": _by_content(then, now), "directory": _at_their_path(then, now)}
            return compare_states(then, now | same)
    return Differences((), (), ())


def _by_content(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The programs here; one with the same content as theirs is the same, wherever it lies."""
    old = then.get("programs") or {}
    return {name: old[name] if _same(old.get(name), part) else part for name, part in now["programs"].items()}


def _at_their_path(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The work directory: it always lies elsewhere than theirs."""
    return {**now["directory"], "path": (then.get("directory") or {}).get("path")}


def _same(one: Any, other: Any) -> bool:
    known = [
        isinstance(each, Mapping) and (each.get("sha256") or each.get("build_id")) for each in (one, other)
    ]
    return bool(known[0]) and known[0] == known[1]
