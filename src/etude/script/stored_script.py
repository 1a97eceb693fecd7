"""The script stored in a results directory, to run it again whatever happened to its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from etude.codec import decoded
from etude.errors import InputError
from etude.experiment.plan import refuse_masked
from etude.masking import mask_of
from etude.results.results import machine_member
from etude.script.parse import parse_stored
from etude.script.run import ScriptOptions
from etude.script.source import same_text


def stored_script(document: Mapping[str, Any], seed: int, source: str) -> ScriptOptions:
    """The stored script of an experiment.json, with another seed. `source` is its path.

    Raises:
        InputError: it is not of a script, or its text cannot be run.
    """
    plan = document["plan"]
    if plan.get("kind") != "script":
        raise InputError(f"{source}: is not of a script")
    try:
        stored = decoded(_Script, plan, source, "plan")
    except InputError:
        stored = _Script({}, "", {})
    if not stored.text:
        raise InputError(f"{source}: the script's text is not in it; run the script itself")
    refuse_masked({"text": stored.text, "assignments": stored.assignments}, source)
    program = parse_stored(stored.text)
    digest = document.get("digest")
    program = replace(
        program, path=stored.script, digest=digest if isinstance(digest, str) else program.digest
    )
    return ScriptOptions(
        program,
        stored.assignments,
        seed,
        plan.get("res", True) is not False,
        str(plan.get("counters", "auto")),
        mask_of(plan, source).patterns,
    )


def changed_files(document: Mapping[str, Any]) -> list[str]:
    """Files of the script that have changed since they were read, one line each; the stored text is run."""
    plan = document["plan"]
    place = machine_member(document, "directory", "path") or ""
    found = []
    for number, (file, lines) in enumerate(plan["text"].items()):
        path = plan["script"] if number == 0 else os.path.join(place, file)
        same = same_text(path, lines)
        if same is not True:
            found.append(f"{path} {'is gone' if same is None else 'has changed'} since")
    return found


@dataclass(frozen=True)
class _Script:
    text: dict[str, list[str]]
    """Lines of each of its files."""
    script: str
    """Its path."""
    assignments: dict[str, str]
