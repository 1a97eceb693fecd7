"""`etude export`: results in the formats of other programs."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from etude.analysis.verdict import Verdict
from etude.analysis.verdict_options import is_shown
from etude.cli.analyse.exports import SUMMARIES, Export
from etude.errors import InputError, UsageError, cannot_write
from etude.escaping import write_document
from etude.export.document import Document, Run, lost_lines
from etude.export.formats import export_to
from etude.export.gather import document_of, gather
from etude.osutil.user_files import write_user_file
from etude.present import export
from etude.present.terminal import Terminal
from etude.store.database import open_store
from etude.store.entry import Selector


def run(options: argparse.Namespace) -> int:
    """Read, choose, write; says what was left out."""
    if bool(options.files) == (options.store is not None):
        raise UsageError("expected either results or --store PLACE; see etude export --help")
    document = _chosen(_of_store(options) if options.store is not None else _of_files(options), options)
    found = export_to(options.format, document)
    screen = Terminal(sys.stderr)
    for line in lost_lines(found.left_out):
        screen.say(f"Left out: {line}")
    if options.output in (None, "-"):
        write_document(sys.stdout, found.text)
    else:
        write_text(Path(options.output), found.text)
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
    """The chosen part of the document. Raises InputError where nothing is left."""
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
            c for c in document.compared if c.metric in metrics and _compares(c.other, c.base, options)
        ),
        repository=options.repository,
        reason=options.reason,
    )


def _called(machine: object) -> tuple[str, ...]:
    return (getattr(machine, "name", ""), getattr(machine, "digest", ""))


def _compares(other: str, base: str, options: argparse.Namespace) -> bool:
    return not options.test or {other, base} <= set(options.test)


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises MachineRefuses where that cannot be."""
    try:
        write_user_file(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise cannot_write(path, error) from error


_SUFFIX = {"go": "txt", "hyperfine-csv": "csv", "junit": "xml", "openmetrics": "txt", "otava": "csv"}


def write_exports(verdict: Verdict, exports: list[Export]) -> list[str]:
    """Write each; returns a line for each kind of thing that is shown and that a format could not hold.

    Raises:
        MachineRefuses: a file cannot be written; UsageError: a format cannot hold these results.
    """
    left_out: list[str] = []
    for form, path in exports:
        if form in SUMMARIES:
            export.write(verdict, form, path or verdict.directory / f"summary.{SUMMARIES[form]}")
        else:
            left_out += _write_other(verdict.directory, form, path)
    return left_out


def _write_other(directory: Path, form: str, path: Path | None) -> list[str]:
    found = export_to(form, gather([str(directory)]))
    write_text(path or directory / f"{form}.{_SUFFIX.get(form, 'json')}", found.text)
    return list(lost_lines([lost for lost in found.left_out if is_shown(lost.metric)]))
