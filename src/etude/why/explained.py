"""The results that further trials belong to: trials of other ones are neither mixed with them nor removed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.experiment.origin import CONTENT
from etude.osutil.files import replace_file
from etude.results.reader import read_experiment
from etude.results.results import machine_member

FILE = "explained.json"
"""Digests of what identifies the results, as they were when further trials of them were begun."""
_PROGRAM = "program "


def place_for(directory: Path, place: Path) -> tuple[Path, str]:
    """The first of `place`, `place-2` … whose trials belong to these results as they are, or which has none; and a line
    about those before it. Trials of an Étude that did not note it belong to any.

    Raises:
        InputError: a file in one of them is invalid.
    """
    found, line = place, ""
    now = _state(read_experiment(directory)) if (directory / "experiment.json").exists() else {}
    for number in count(2):
        if not now or not (found / FILE).exists() or not (what := _differs(_read(found / FILE), now)):
            break
        line = f"{found}: is left as it is: {what} of {directory} is another one since; see {place}-{number}"
        found = place.with_name(f"{place.name}-{number}")
    return found, line


def note_explained(directory: Path, place: Path) -> None:
    """Note in `place` which results the trials that are begun there belong to; that stays when they are continued."""
    if not (place / "experiment.json").exists():
        replace_file(
            place / FILE, json.dumps(_state(read_experiment(directory)), ensure_ascii=False).encode()
        )


def _state(document: Mapping[str, Any]) -> dict[str, str]:
    plan, sessions = document["plan"], document["sittings"]
    machine = _map(sessions[-1].get("machine") if len(sessions) > 1 else machine_member(document))
    found = {
        "first session": sessions[0].get("start") if sessions else None,
        "kernel": _map(machine.get("system")).get("kernel_release"),
        "processor": _map(machine.get("cpu")).get("model"),
        "script": plan.get("text"),
        **{f"test {test['name']}": test for test in plan.get("tests") or ()},
    }
    for name, program in _map(machine.get("programs")).items():
        if program:
            found[_PROGRAM + name] = [program.get(member) for member in CONTENT]
    return {name: _digest(value) for name, value in found.items()}


def _differs(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The first part that is another one now; empty if trials of then belong to these results. Programs that are not
    known of both are not compared."""
    other = (
        name for name, digest in then.items() if now.get(name, digest * name.startswith(_PROGRAM)) != digest
    )
    return next(other, "")


def _read(path: Path) -> dict[str, str]:
    try:
        told = json.loads(path.read_bytes())
        return {str(name): str(digest) for name, digest in told.items()}
    except (OSError, ValueError, RecursionError, AttributeError) as error:
        raise InputError(f"{path}: cannot be read: {error}; name another directory with -o") from None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
