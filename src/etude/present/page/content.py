"""A report made of what was gathered, with what was expected of each test, and written as HTML, Markdown or LaTeX."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from etude.analysis.cross_session import CrossSession
from etude.analysis.gate import answers, parse_bound
from etude.analysis.verdict import TestVerdict, Verdict
from etude.analysis.warnings import meaning_of
from etude.errors import EtudeError, MachineRefuses
from etude.escaping import delimited
from etude.osutil.files import replace_file
from etude.osutil.trust import write_user_file
from etude.present.long_names import shortened
from etude.present.page.answers import answers_of, headline
from etude.present.page.engine_sections import engine_sections
from etude.present.page.gather import SEARCHES, Gathered, kind_of
from etude.present.page.method_notes import explanations
from etude.present.page.rawdata import anchor, raw_data, warning_anchor
from etude.present.page.setup import setups_table, simulation_of
from etude.present.page.tables import (
    comparisons_table,
    machine_tables,
    metrics_table,
    summary_table,
    tests_table,
)
from etude.present.section import (
    MET,
    NOT_MET,
    OPEN,
    TO_BE_JUDGED,
    Block,
    Content,
    Expectation,
    Paragraphs,
    Section,
    Snapshot,
    Source,
    TestSection,
    Warned,
)
from etude.present.sections.monitor import monitor_sections
from etude.present.sections.pool import pool_sections
from etude.present.sentences import comparison as text
from etude.present.sentences.bounds import answer_reason
from etude.present.sentences.comparison import precision_line, test_line, widened_line
from etude.present.sentences.details import detail_lines
from etude.present.sentences.warnings import words_of
from etude.present.to_html import to_html
from etude.present.to_latex import to_latex
from etude.present.to_markdown import to_markdown
from etude.version import __version__


def content_of(
    found: Gathered, title: str | None = None, now: datetime | None = None, parts: Sequence[Section] = ()
) -> Content:
    """Put everything into words and tables, without secrets.

    now: when the report was made; the present unless given.
    """
    warnings = tuple(
        warned for place, verdict in enumerate(found.verdicts) for warned in _warnings(verdict, place)
    )
    labels = (
        *(verdict.subject.label for verdict in found.verdicts),
        *(each.label for each in found.summaries),
        *(label for label, _ in found.reports),
    )
    parts = (*engine_sections(found), *parts)
    answer = tuple(line for part in parts for line in part.answer)
    beside = (*pool_sections(found), *monitor_sections(found))
    opening = (*headline(found, answer), *(line for part in beside for line in part.answer))
    answers = answers_of(found, parts, beside)
    content = Content(
        title=title or _title(found, labels),
        made=(now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        labels=labels,
        headline=opening,
        answers=answers,
        banner=_banner(found),
        expectations=expectations_of(found),
        comparisons=comparisons_table(found),
        tests=tests_table(found),
        metrics=metrics_table(found),
        summaries=tuple(summary_table(s.label, s.rows, place) for place, s in enumerate(found.summaries)),
        warnings=warnings,
        shown=tuple(_shown(found, warnings)),
        snapshots=tuple(_snapshots(found)),
        differences=tuple(machine_tables(found)),
        setups=setups_table(found),
        explained=tuple(explanations(found, parts)),
        sources=tuple(_sources(found)),
        data=raw_data(found),
        details=tuple(_details(found)),
        parts=_told_once(parts, (*opening, *(line for each in answers for line in each.sentences))),
        beside=beside,
    )
    masked: Content = found.mask.parts(content)
    names = [found.mask.text(test.test) for verdict in found.verdicts for test in verdict.tests]
    return replace(masked, **{part: shortened(getattr(masked, part), names) for part in _TELLING})


_TELLING = (
    *(
        "headline",
        "answers",
        "expectations",
        "comparisons",
        "metrics",
        "warnings",
        "shown",
        "explained",
        "details",
    ),
    *("parts", "beside"),
)
"""Parts of a page in which names are shortened: all but the table of tests and what was recorded."""


def _told_once(parts: Sequence[Section], told: Sequence[str]) -> tuple[Section, ...]:
    """The section of a page's only result without the sentences that stand above it; those of several results as they
    are, since each is read by itself."""
    if len(parts) != 1:
        return tuple(parts)
    (part,) = parts
    blocks: list[Block] = []
    for block in part.blocks:
        if isinstance(block, Paragraphs):
            lines = tuple(line for line in block.lines if not any(line in each for each in told))
            blocks += [replace(block, lines=lines)] if lines else []
        else:
            blocks.append(block)
    return (replace(part, blocks=tuple(blocks)),)


def _banner(found: Gathered) -> str:
    simulated = [text for v in found.verdicts if (text := simulation_of(v.subject.experiment))]
    if not simulated:
        return ""
    which = "All" if len(simulated) == len(found.verdicts) + len(found.summaries) else "Some"
    return (
        f"{which} of it is simulated ({', '.join(dict.fromkeys(simulated))}): no machine served these loads."
    )


def _title(found: Gathered, labels: Sequence[str]) -> str:
    names = [str((verdict.subject.experiment or {}).get("name") or "") for verdict in found.verdicts]
    known = [name for name in dict.fromkeys(names) if name] or [Path(label).name for label in labels]
    return ", ".join(known[:3]) or "Report"


def _warnings(verdict: Verdict, result: int) -> list[Warned]:
    bare = {test.test for test in verdict.tests if not _has_chart(verdict, test)}
    series = enumerate(verdict.subject.tests)
    charts = {each.test: anchor(result, place) for place, each in series if each.test not in bare}
    return [
        Warned(
            warning_anchor(result, number),
            warning.kind,
            meaning_of(warning.kind),
            warning.test,
            *words_of(warning),
            charts.get(warning.test, ""),
            warning.trials,
        )
        for number, warning in enumerate(verdict.every)
    ]


def _shown(found: Gathered, warnings: Sequence[Warned]) -> list[TestSection]:
    return [
        TestSection(
            where := anchor(result, place),
            f"{test.test} ({verdict.subject.label})" if len(found.verdicts) > 1 else test.test,
            test_line(test, verdict.primary).removeprefix(f"{delimited(test.test)}: "),
            tuple(each for each in warnings if each.chart == where),
        )
        for result, verdict in enumerate(found.verdicts)
        for place, test in enumerate(verdict.tests)
        if _has_chart(verdict, test)
    ]


def _has_chart(verdict: Verdict, test: TestVerdict) -> bool:
    """False for a load or a configuration that was measured once: a single dot shows nothing."""
    return test.made > 1 or kind_of(verdict.subject) not in SEARCHES


def _snapshots(gathered: Gathered) -> list[Snapshot]:
    found = []
    for verdict in gathered.verdicts:
        experiment = gathered.mask.data(verdict.subject.experiment or {})
        before = (experiment.get("machine") or {}).get("before")
        if before:
            members = [*_members(before), *_members(experiment.get("versions") or {}, "version")]
            found.append(Snapshot(verdict.subject.label, tuple(members)))
    return found


def _members(part: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in part.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping):
            found += _members(value, name)
        elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
            for place, each in enumerate(value):
                found += _members(each, f"{name}.{place}")
        else:
            found.append((name, _value(value)))
    return found


def _value(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _sources(gathered: Gathered) -> list[Source]:
    found = []
    for verdict in gathered.verdicts:
        experiment = gathered.mask.data(verdict.subject.experiment or {})
        label = verdict.subject.label
        line = experiment.get("command_line")
        if line:
            shown = line if isinstance(line, str) else _shell_line(line)
            found.append(Source(f"Command line of {label}", shown))
        plan = experiment.get("plan") or {}
        texts = plan.get("text")
        for kind in ("harness", "spec"):
            if (text := str(plan.get(kind) or "")) and not simulation_of(experiment):
                found.append(Source(f"The {kind} of {label}", text))
        if isinstance(texts, Mapping):
            found += [
                Source(f"{name} ({label})", "\n".join(map(str, lines))) for name, lines in texts.items()
            ]
    return found


def _shell_line(line: Sequence[str]) -> str:
    first, *rest = map(str, line)
    return " ".join([first, *map(shlex.quote, rest)])


def _details(found: Gathered) -> list[str]:
    lines = [
        f"{c.other} against {c.base}: {line}"
        for verdict in found.verdicts
        for c in verdict.comparisons
        for line in detail_lines(c)
    ]
    for verdict in found.verdicts:
        lines += [each for each in [widened_line(verdict.asked)] if each]
        lines += [line for test in verdict.tests if (line := precision_line(test, verdict.asked)) is not None]
    return lines


def rendered(content: Content, form: str) -> str:
    """The document as text. `form`: html, markdown or latex.

    Raises:
        MachineRefuses: a library that the page is made with is not installed.
    """
    return {"html": to_html, "markdown": to_markdown, "latex": to_latex}[form](content)


def write(path: Path, document: str) -> None:
    """Replace the file whole: a page that is looked at is never half written. Characters that UTF-8 lacks become `?`.

    Raises:
        MachineRefuses: it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():  # a device, such as /dev/stdout
            write_user_file(path, document.encode("utf-8", "replace"))
            return
        replace_file(path, document.encode("utf-8", "replace"), sync=False)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise MachineRefuses(f"{path}: the report cannot be written: {reason}; name another file") from error


def expectations_of(found: Gathered) -> tuple[Expectation, ...]:
    """Expectations of every test that has a purpose or an expectation.

    An expectation that is a bound, such as `elapsed < 5 ms` or `elapsed < baseline * 1.05` (the grammar of
    `--fail-if`), is judged by its interval; any other is left to the reader.
    """
    result = []
    for verdict in found.verdicts:
        entries: Sequence[Any] = (verdict.subject.experiment or {}).get("tests") or ()
        texts = {entry.get("name"): entry for entry in entries}
        where = f" ({verdict.subject.label})" if len(found.verdicts) > 1 else ""
        across = [a for a in found.across if a.other_label == verdict.subject.label]
        for test in verdict.tests:
            entry = texts.get(test.test) or {}
            purpose, expect = str(entry.get("purpose") or ""), str(entry.get("expect") or "")
            if purpose or expect:
                met, why = _judged(expect, test, verdict, across) if expect else ("", "")
                line = text.test_line(test, verdict.primary).removeprefix(f"{delimited(test.test)}: ")
                result.append(Expectation(test.test + where, purpose, expect, line, met, why))
    return tuple(result)


def _judged(
    expect: str, test: TestVerdict, verdict: Verdict, across: Sequence[CrossSession]
) -> tuple[str, str]:
    others = [a for a in across if a.other == test.test]
    try:
        bound = parse_bound(expect.strip().rstrip("."))
        within = [c for c in verdict.comparisons if c.other == test.test]
        given = answers(bound, [test], within, [] if within else others)
    except EtudeError as error:
        reason = str(error).partition(": ")[2]
        return TO_BE_JUDGED, reason if _is_bound(expect) else ""
    # It was written as what shall be; `fails` is true where the bound surely holds.
    verdicts = {answer.fails for answer in given}
    met = MET if verdicts == {True} else NOT_MET if False in verdicts else OPEN
    return met, "; ".join(answer_reason(answer) for answer in given)


def _is_bound(expect: str) -> bool:
    try:
        parse_bound(expect.strip().rstrip("."))
    except EtudeError:
        return False
    return True
