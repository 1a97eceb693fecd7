"""`etude report`: one self-contained HTML page of results."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath

from etude.analysis.load_subject import read_subject
from etude.analysis.subject import Subject
from etude.analysis.verdict_options import VerdictOptions
from etude.bisect.result import stored_bisection
from etude.cli.analyse.options import REPORT_FORMATS
from etude.cli.shared_options import check_named_once
from etude.errors import UsageError
from etude.escaping import write_document
from etude.experiment.session import holds_results
from etude.iolab.lab import RECORD, SWEEPS
from etude.iolab.points import over_of
from etude.present.page import content_of, gather
from etude.present.page.content import rendered, write
from etude.present.section import Section
from etude.present.sections.bisect import bisect_section
from etude.present.sections.io_sweep import sweep_section
from etude.present.sections.peak import peak_section, stored_search
from etude.present.sections.peaks import peaks_section, searches_of
from etude.present.sections.surface import map_goal, surface_section
from etude.present.sentences.peak import of_map
from etude.present.sentences.verdict import as_line
from etude.results.bundle import bundles_opened, is_bundle
from etude.results.reader import read_experiment
from etude.surface.map_store import MapStore, surface_result_of


def parts_of(paths: Sequence[str], labels: Mapping[str, str] | None = None) -> tuple[Section, ...]:
    """The parts of pages of those results that have one, in their order; labels: as of `gather`.

    Raises:
        InputError: one of them cannot be read.
    """
    kinds = [_kind(path) for path in paths]
    found = (
        (path, number, MAKERS.get(kind)) for number, (path, kind) in enumerate(zip(paths, kinds, strict=True))
    )
    each = tuple(
        maker(path, number, (labels or {}).get(path, path) if len(paths) > 1 else "")
        for path, number, maker in found
        if maker is not None
    )
    peaks = [path for path, kind in zip(paths, kinds, strict=True) if kind == "peak"]
    return (peaks_section(searches_of(peaks)), *each) if len(peaks) > 1 else each


def _kind(path: str) -> str:
    """The kind of a results directory; empty of anything else, and where it has no part of its own."""
    if not Path(path, "experiment.json").exists():
        return ""
    experiment = read_experiment(Path(path))
    kind = experiment["plan"].get("kind")
    if isinstance(kind, str):
        return kind
    tests = [entry for entry in experiment["tests"] if entry.get("role", "test") == "test"]
    return over_of([entry.get("parameters") or {} for entry in tests]) or ""


def _sweep(heading: str, path: str, number: int, name: str) -> Section:
    found = read_subject(path)
    assert isinstance(found, Subject)
    named = f"{heading}: {name}" if name else heading
    return sweep_section(found, f"sweep-{number}", named, several=bool(name))


def sweeps_of_labs(paths: Sequence[str]) -> list[str]:
    """The paths, with the directory of an I/O lab replaced by those of its sweeps that have begun."""
    found: list[str] = []
    for path in paths:
        lab = Path(path, RECORD).is_file()
        sweeps = [str(Path(path, name)) for name in SWEEPS if holds_results(Path(path, name))] if lab else []
        found += sweeps or [path]
    return found


def _peak(path: str, number: int, name: str) -> Section:
    heading = f"Peak rate of {name}" if name else "Peak rate"
    return peak_section(stored_search(path), f"peak-{number}", heading, several=bool(name))


def _surface(path: str, number: int, name: str) -> Section:
    kept = MapStore(path)
    kept.check_whole("configurations")
    mapped = surface_result_of(kept)
    heading = f"Surface of {name}" if name else "Surface"
    status, end = as_line(of_map(kept, mapped)), kept.document.get("surface") or {}
    return surface_section(
        mapped,
        f"surface-{number}",
        heading,
        status=status,
        ended=str(end.get("why") or ""),
        goal=map_goal(kept),
    )


def _bisect(path: str, number: int, name: str) -> Section:
    heading = f"Bisection of {name}" if name else "Bisection"
    return bisect_section(stored_bisection(Path(path)), f"bisect-{number}", heading)


MAKERS: Mapping[str, Callable[[str, int, str], Section]] = {
    "peak": _peak,
    "surface": _surface,
    "bisect": _bisect,
    "buffer": partial(_sweep, "Throughput over buffer sizes"),
    "total": partial(_sweep, "Time over file sizes"),
}
"""Maker of a section by the kind of a plan, from path, number, and name; without a name it is the only one."""


def run(options: argparse.Namespace) -> int:
    """Read, judge, write; says where the page is."""
    form = report_format(options.output, options.format)
    verdict_options = VerdictOptions(
        confidence=options.confidence,
        reference=options.reference,
        same_within=options.same_within,
        full=True,
    )
    check_named_once(options.files)
    with bundles_opened(options.files) as labels:
        paths = sweeps_of_labs(list(labels))
        found = gather(paths, verdict_options, options.metric, options.between_sessions, labels)
        given = {
            "--metric": options.metric,
            "--reference": options.reference,
            "--same-within": options.same_within,
        }
        if not found.verdicts and (unused := [name for name, value in given.items() if value is not None]):
            raise UsageError(
                f"{unused[0]}: {options.files[0]}: has no trials of tests that it could apply to"
            )
        document = rendered(content_of(found, options.title, parts=parts_of(paths, labels)), form)
    target = options.output or ("-" if form != "html" else str(_beside(options.files[0])))
    if target == "-":
        write_document(sys.stdout, document)
        return 0
    write(Path(target), document)
    print(f"Report: {target}")
    return 0


def report_format(output: str | None, given: str | None, default: str = "html") -> str:
    """The format by option or by the ending of the file. Raises UsageError: they contradict, or the ending is none of a
    report."""
    endings = {f".{ending}": form for form, ending in REPORT_FORMATS.items()} | {
        ".htm": "html",
        ".markdown": "markdown",
    }
    suffix = PurePath(output or "").suffix.lower()
    named = endings.get(suffix)
    if given is not None and named not in (None, given):
        raise UsageError(
            f"-o {output}: --format {given} is written as .{REPORT_FORMATS[given]}, not as {suffix}"
        )
    if given is None and suffix and named is None:
        raise UsageError(f"-o {output}: a report is written as .html, .md or .tex; or name a --format")
    return given or named or default


def _beside(path: str) -> Path:
    place = Path(path)
    if is_bundle(place):  # never into an unpacked one, whose checksums name every file
        return Path(os.path.relpath(place.resolve().parent)) / "report.html"
    return (place if place.is_dir() else Path()) / "report.html"
