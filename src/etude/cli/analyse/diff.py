"""`etude diff`: what differs between the machines of two results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from etude.analysis.snapshot_differences import Differences, compare, compare_states, state_now, state_of
from etude.errors import InputError, UsageError
from etude.present.sections.machine import differences_blocks, differences_document
from etude.present.terminal import show
from etude.present.to_json import print_json
from etude.results.bundle import is_bundle, open_bundle
from etude.results.reader import read_experiment

NOW = "now"


def run(options: argparse.Namespace) -> int:
    """Read, compare, show; 1 where a name of --fail-if differs."""
    if NOW in (options.first, options.second) and options.first == (options.second or options.first):
        raise UsageError("now is compared with a result: etude diff DIR now")
    labels, found = _compared(options)
    if options.json:
        print_json(differences_document(labels, found))
    else:
        show(differences_blocks(labels, found, everything=options.all))
    return int(any(fnmatchcase(d.what, name) for d in found.differs for name in options.fail_if))


def _compared(options: argparse.Namespace) -> tuple[tuple[str, str], Differences]:
    if options.second is None:
        document = _document(options.first)
        labels = (f"{options.first} before", f"{options.first} after")
        return labels, compare_states(*(_of(document, when, options.first) for when in ("before", "after")))
    labels = (options.first, options.second)
    if NOW not in labels:
        documents = [_document(label) for label in labels]
        for document, label in zip(documents, labels, strict=True):
            _of(document, "before", label)
        return labels, compare(*documents)
    states = [None if label == NOW else _of(_document(label), "before", label) for label in labels]
    known = next(state for state in states if state is not None)
    return labels, compare_states(*(state_now(known) if state is None else state for state in states))


def _document(path: str) -> Mapping[str, Any]:
    """The experiment.json of a results directory, or of the only one in a bundle.

    Raises:
        InputError: it cannot be read; UsageError: the bundle holds several.
    """
    place = Path(path)
    if not is_bundle(place):
        return read_experiment(place)
    with open_bundle(place) as found:
        if len(found) != 1:
            names = ", ".join(f"results/{each.name}" for each in found)
            raise UsageError(f"{path}: holds {len(found)} results; unpack it, and name one of {names}")
        return read_experiment(found[0])


def _of(document: Mapping[str, Any], when: str, label: str) -> dict[str, Any]:
    """Its snapshot, with the versions of what measured. Raises InputError where there is none."""
    machine = document.get("machine")
    if not isinstance(machine, Mapping) or not isinstance(machine.get(when), Mapping):
        ended = "; it has not ended yet, or was killed" if when == "after" else ""
        raise InputError(f"{label}: has no record of its machine {when} its trials{ended}")
    return state_of(document, when)
