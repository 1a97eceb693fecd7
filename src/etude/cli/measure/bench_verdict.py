"""The verdict of `etude bench` on results that it has just measured."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from etude.analysis.cross_session import CrossSession, compare_with_first
from etude.analysis.gate import Bound
from etude.analysis.subject import Subject
from etude.analysis.verdict import Verdict, verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.cli.analyse.bounds import answer
from etude.cli.analyse.export import write_exports
from etude.cli.analyse.exports import Export
from etude.errors import NotComparable
from etude.present.section import Sentence
from etude.present.sections.bench import BESIDE, verdict_blocks
from etude.present.sentences.machines import machines_lines
from etude.present.to_json import print_json, verdict_document
from etude.present.to_terminal import show, show_aside
from etude.results.results import Results
from etude.stats.cross_session import NotSupported


def show_verdict(
    options: argparse.Namespace,
    results: Results,
    bounds: Sequence[Bound],
    exports: list[Export],
    baseline: Subject | None,
) -> int:
    """Judge what was measured, show it and write the exports; returns the exit code."""
    primary = results.experiment["plan"]["primary"]
    bounded = (bound.metric for bound in bounds)
    metrics = None if options.json or exports else tuple(dict.fromkeys((primary, *BESIDE, *bounded)))
    found = verdict(results, metrics, VerdictOptions(every_outlier=options.json))
    across, without = _across(baseline, found, options.between_sessions)
    left_out = write_exports(found, exports)
    machines = _machines(baseline, found)
    if options.json:
        print_json(verdict_document(found, across, machines))
    else:
        show(verdict_blocks(found, across, without, machines))
    show_aside(*(Sentence(f"Left out: {line}") for line in left_out))
    code = answer(
        bounds,
        [found],
        across,
        undecided=options.undecided,
        beside=_beside_bounds(options),
        aside=options.json,
    )
    return code or _refusal(across, without)


def _beside_bounds(options: argparse.Namespace) -> list[tuple[str, str]]:
    """The options that say what the bounds compare with."""
    pairs = [] if options.baseline is None else [("--baseline", str(options.baseline))]
    if options.between_sessions is not None:
        pairs.append(("--between-sessions", f"{100 * options.between_sessions:.12g}%"))
    return pairs


def _refusal(across: list[CrossSession], without: list[str]) -> int:
    """The exit code where a test was not compared with the baseline; 0 where there is none, or all were."""
    if not (across or without):
        return 0
    refused = without or any(isinstance(each.found, NotSupported) for each in across)
    return NotComparable.exit_code if refused else 0


def _machines(baseline: Subject | None, found: Verdict) -> list[str]:
    """The lines before a comparison with a baseline whose machine was another."""
    if baseline is None:
        return []
    return machines_lines([baseline, found.subject])


def _across(
    baseline: Subject | None, found: Verdict, between: float | None
) -> tuple[list[CrossSession], list[str]]:
    """The tests against those of the baseline, and why they are not compared."""
    if baseline is None:
        return [], []
    across, without = compare_with_first([baseline, found.subject], found.primary, between=between)
    return across, [f"Not compared: {reason}" for _, reason in without]
