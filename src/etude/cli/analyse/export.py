"""`etude export`: results in the formats of other programs."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from etude.analysis.subject import SIMULATED
from etude.errors import InputError, UsageError
from etude.escaping import write_document
from etude.export import export_to
from etude.export.document import Document, Run, lost_lines
from etude.export.gather import document_of, gather
from etude.present.export import write_text
from etude.present.sentences.notes import listed_names
from etude.present.terminal import Terminal
from etude.store.database import open_store
from etude.store.entry import Machine, Selector

NAMED = 3
"""Simulated results that the note names."""


def run(options: argparse.Namespace) -> int:
    """Read, choose, write; says what was left out."""
    if bool(options.files) == (options.store is not None):
        raise UsageError("expected either results or --store PLACE; see etude export --help")
    document = _chosen(_of_store(options) if options.store is not None else _of_files(options), options)
    found = export_to(options.format, document)
    if options.output in (None, "-"):
        write_document(sys.stdout, found.text)
    else:
        write_text(Path(options.output), found.text)
    screen = Terminal(sys.stderr)
    with suppress(OSError):  # the document is written
        for line in lost_lines(found.left_out):
            screen.say(f"Left out: {line}")
        if simulated := [run.source for run in document.runs if SIMULATED in run.tags]:
            screen.say(
                f"Note: simulated: no machine served the loads of {listed_names(simulated, NAMED, 'result')}"
            )
    return 0


def _of_files(options: argparse.Namespace) -> Document:
    origin = Run("", commit=options.commit, branch=options.branch)
    return gather(options.files, origin, confidence=options.confidence)


def _of_store(options: argparse.Namespace) -> Document:
    test = options.test[0] if len(options.test) == 1 else None
    metric = options.metric[0] if len(options.metric) == 1 else None
    wanted = Selector(test, metric, commit=options.commit, branch=options.branch, machine=options.machine)
    with open_store(options.store) as store:
        return document_of(store.entries(wanted), confidence=options.confidence)


def _chosen(document: Document, options: argparse.Namespace) -> Document:
    points = [
        point
        for point in document.points
        if point.test in (options.test or (point.test,))
        and point.metric in (options.metric or (point.metric,))
        and (options.machine is None or options.machine in _called(point.run.machine))
    ]
    if not points:
        there = sorted({f"{point.test}: {point.metric}" for point in document.points})
        raise InputError(f"no result fits --test, --metric and --machine; there is {', '.join(there[:10])}")
    metrics = {point.metric for point in points}
    return replace(
        document,
        points=tuple(points),
        primary=document.primary if document.primary in metrics else points[0].metric,
        compared=tuple(
            c
            for c in document.compared
            if c.metric in metrics and (not options.test or {c.other, c.base} <= set(options.test))
        ),
        repository=options.repository,
        reason=options.reason,
    )


def _called(machine: Machine | None) -> tuple[str, str]:
    return (machine.name, machine.digest) if machine else ("", "")
