"""Parts of a report on replays and loads: of files that hold the output of one, and of tests whose outputs do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from etude.present.page.gather import SEARCHES, Gathered
from etude.present.section import Section
from etude.present.sections.load import load_section
from etude.present.sections.replay import replay_section
from etude.results.engine_reports import LoadReport, ReplayReport, Report, TestReports, reports_of_tests

NO_MACHINE = "{} does not name its machine or file system; a test of etude run records both."


def engine_sections(found: Gathered) -> tuple[Section, ...]:
    """A section for each file, then one for each test."""
    several = len(found.reports) + len(found.verdicts) + len(found.summaries) > 1
    made = []
    for number, (label, report) in enumerate(found.reports):
        where = (NO_MACHINE.format("The file" if several else label),)
        made.append(report_section({1: report}, f"file-{number}", label if several else "", where=where))
    for number, (label, each) in enumerate(_of_tests(found)):
        name = f"{label}: {each.test}" if several else each.test
        made.append(report_section(each.reports, f"test-{number}", name, missing=each.missing))
    return tuple(made)


def _of_tests(found: Gathered) -> Iterator[tuple[str, TestReports]]:
    for verdict in found.verdicts:
        subject = verdict.subject
        kind = ((subject.experiment or {}).get("plan") or {}).get("kind")
        if subject.directory is None or not subject.directory.is_dir() or kind in SEARCHES:
            continue
        trials = {series.test: [int(n) for n in series.trials[series.kept]] for series in subject.tests}
        for each in reports_of_tests(subject.directory, trials):
            yield subject.label, each


def report_section(
    reports: Mapping[int, Report], key: str, name: str, *, where: tuple[str, ...] = (), missing: int = 0
) -> Section:
    """The section of a file's report, or of those of a test's trials; arguments as those of `replay_section`."""
    of = f" of {name}" if name else ""
    if isinstance(next(iter(reports.values())), ReplayReport):
        replays = cast(Mapping[int, ReplayReport], reports)
        return replay_section(
            replays, f"replay-{key}", f"Replay{of}", name=name, where=where, missing=missing
        )
    loads = cast(Mapping[int, LoadReport], reports)
    return load_section(loads, f"load-{key}", f"Load{of}", name=name, where=where, missing=missing)
