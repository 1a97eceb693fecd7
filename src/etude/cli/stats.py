"""Statistics of stored results, ours or another program's: summaries, comparisons, warnings, and answers for CI.

FILE is a results directory, a bundle, an Auto-pilot .res file, or what hyperfine, perf stat, fio, pytest-benchmark and
others write (docs/reading-other-tools.md); FORMAT:FILE names the format. Of several files the first is the baseline.
What each number means, and its formula: docs/statistics.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from etude.cli import parser as kinds
from etude.cli.bounds import add_undecided, answer, read_bounds

if TYPE_CHECKING:
    from etude.report.across import Across
    from etude.report.judging import Judging
    from etude.report.subject import Subject
    from etude.report.verdict import Verdict
    from etude.stats.predicate import Predicate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude stats`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="results; the first is the baseline")
    parser.add_argument(
        "--style",
        choices=("etude", "autopilot"),
        default="etude",
        help="autopilot: the tables of Getstats, with its options (etude stats --style autopilot --help)",
    )
    _shown(parser.add_argument_group("what is shown"))
    _compared(parser.add_argument_group("what is compared"))
    _warned(parser.add_argument_group("notes"))
    _asked(parser.add_argument_group("questions, answered by the exit code"))
    from etude.report.pipeline.arguments import add_options

    add_options(parser)


def _shown(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="show this metric only; the first is compared",
    )
    add("--all", action="store_true", help="show all metrics, and a table for each of many tests")
    add(
        "--wide",
        action="store_true",
        help="all columns, also on a narrow screen, and each sample as a line of bars in the order of its trials, "
        "outliers marked",
    )
    add(
        "--confidence",
        type=kinds.percent_between,
        default=0.95,
        metavar="PERCENT",
        help="of all intervals (default 95)",
    )
    add(
        "--percentiles",
        type=kinds.percentile_list,
        nargs="?",
        const=(0.5, 0.9, 0.99, 0.999),
        metavar="LIST",
        help="with intervals, of all responses where trials carry histograms, else of the trials "
        "(default p50,p90,p99,p99.9)",
    )
    add(
        "--trim",
        type=kinds.share_below_half,
        metavar="SHARE",
        help="also the mean without that share at either end",
    )
    add(
        "--mean",
        choices=("arithmetic", "harmonic", "geometric", "proportion"),
        help="insist on this mean; refused where it does not fit the metric",
    )
    add(
        "--error-bars",
        choices=("interval", "min-max", "quartiles", "deviation"),
        default="interval",
        help="what stands beside the mean (default: its interval)",
    )
    add("--json", action="store_true", help="print JSON (docs/formats.md)")


def _compared(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--reference", metavar="TEST", help="compare all other tests with this one")
    add(
        "--between-sittings",
        type=kinds.share,
        metavar="PERCENT",
        help="how far sittings of one test lie apart on this machine (a standard deviation, such as 3%%): "
        "results of different sittings are compared only where that is known",
    )
    add(
        "--same-within",
        type=kinds.share,
        metavar="SHARE",
        help="also judge whether tests are the same within this margin, such as 2%%",
    )
    add(
        "--test",
        action="append",
        default=[],
        choices=("student", "by-variance", "permutation", "bootstrap"),
        help="a further two-sample test of each comparison; repeat for several",
    )


def _warned(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--threshold",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="where a warning begins, such as drift=5%% (docs/warnings.md)",
    )
    add(
        "--watch",
        action="append",
        default=[],
        metavar="NAME",
        help="also say whether this metric rises, falls or changes its level over the trials",
    )
    add("--no-warn", action="append", default=[], metavar="KIND", help="leave out warnings of this kind")
    add(
        "-v",
        "--verbose",
        "--all-warnings",
        action="store_true",
        help="every note in full, not only the most important; outliers, too, that the monitor cannot explain",
    )


def _asked(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--predicate",
        metavar="EXPR",
        help="ends with 1 unless EXPR holds for elapsed, user and system (or --metric) of every test, "
        "as getstats --predicate",
    )
    add(
        "--fail-if",
        action="append",
        default=[],
        metavar="BOUND",
        help="ends with 1 where BOUND holds by the interval, such as 'elapsed > baseline * 1.05'",
    )
    add_undecided(group)


def take_over(arguments: Sequence[str]) -> int | None:
    """With `--style autopilot` all words are Getstats'; returns its exit code, else None."""
    words = list(arguments)
    for place, word in enumerate(words):
        if word == "--":
            break
        if word == "--style=autopilot" or words[place : place + 2] == ["--style", "autopilot"]:
            from etude.cli import getstats

            del words[place : place + (1 if "=" in word else 2)]
            return getstats.main(words)
    return None


def run(options: argparse.Namespace) -> int:
    """Show each file, compare the later ones with the first, answer what was asked."""
    from etude.cli.stats_display import StatsDisplay
    from etude.report.uncompared import unanswered_lines
    from etude.report.verdict import verdict

    judging = _judging(options)
    bounds, predicate = read_bounds(options.fail_if), _predicate(options)
    sources = [source for path in options.files for source in _sources(path, options)]
    subjects = [source for source in sources if source is not None]
    verdicts = [verdict(subject, _metrics(subject, options), judging) for subject in subjects]
    across, without = _across(verdicts, options, judging)
    display = StatsDisplay(options, judging)
    notes = unanswered_lines(verdicts, across, same_within=options.same_within, tests=options.test)
    if options.json:
        display.json(verdicts, across, _machines(subjects))
        for line in notes:
            print(f"Note: {line}", file=sys.stderr)
    else:
        display.show(verdicts, across, without, [*_machines(subjects), *notes])
    code = answer(
        bounds,
        verdicts,
        across,
        undecided=options.undecided,
        few=judging.thresholds.few,
        aside=options.json,
    )
    judged = _judge(subjects, predicate, options)
    return 1 if 1 in (code, judged) else code


def _judging(options: argparse.Namespace) -> Judging:
    from etude.errors import UsageError
    from etude.report.judging import Judging
    from etude.report.warnings import KINDS, Thresholds

    for kind in options.no_warn:
        if kind not in KINDS:
            raise UsageError(
                f"--no-warn {kind}: no such kind of warning; there are {', '.join(sorted(KINDS))}"
            )
    return Judging(
        confidence=options.confidence,
        thresholds=Thresholds.parse(options.threshold),
        silent=frozenset(options.no_warn),
        watched=_watched(options),
        reference=options.reference,
        same_within=options.same_within,
        secondary=tuple(options.metric[1:]) if options.metric else None,
        every_outlier=options.verbose or options.json,
        full=True,
    )


def _watched(options: argparse.Namespace) -> tuple[str, ...]:
    return tuple(name for names in options.watch for name in names.replace(",", " ").split())


def _sources(path: str, options: argparse.Namespace) -> list[Subject | None]:
    """The file's tests; of a bundle those of each of its results."""
    from pathlib import Path

    from etude.results.bundle_name import is_bundle

    place = Path(path)
    if not is_bundle(place):
        return [_read(path, options)]
    from dataclasses import replace

    from etude.results.bundle import opened

    with opened(place) as found:
        subjects = [(directory.name, _read(str(directory), options)) for directory in found]
    several = len(subjects) > 1
    return [
        subject and replace(subject, label=f"{path}: {name}" if several else path)
        for name, subject in subjects
    ]


def _read(path: str, options: argparse.Namespace) -> Subject | None:
    """The file's tests; None for one that holds summaries only, which are shown at once."""
    from etude.report.reading import read_subject
    from etude.report.summaries import Summaries

    metrics = None if options.all or options.json else options.metric
    found = read_subject(
        path,
        options.transforms,
        options.variables,
        metrics=metrics,
        watched=_watched(options),
        confidence=options.confidence,
    )
    if isinstance(found, Summaries):
        from etude.cli.stats_display import show_summaries

        show_summaries(found, options)
        return None
    return found


def _metrics(subject: Subject, options: argparse.Namespace) -> list[str] | None:
    """The metrics to summarise; None for all."""
    if options.metric:
        from etude.report.subject import check_metric

        for metric in options.metric:
            check_metric(subject.tests, metric)
        return list(options.metric)
    if options.all or options.json:
        return None
    from etude.report.usual import usual_metrics

    return usual_metrics(subject)


def _across(
    verdicts: Sequence[Verdict], options: argparse.Namespace, judging: Judging
) -> tuple[list[Across], list[str]]:
    """The later files against the first, and why some are not compared."""
    if len(verdicts) < 2:
        return [], []
    from etude.report.across import compare_with_first

    found, without = compare_with_first(
        [verdict.subject for verdict in verdicts],
        verdicts[0].primary,
        between=options.between_sittings,
        confidence=judging.confidence,
    )
    return found, [f"Not compared: {reason}" for _, reason in without]


def _machines(subjects: Sequence[Subject]) -> list[str]:
    """Of the later files: what differs between their machines and the first one's."""
    if len(subjects) < 2:
        return []
    from etude.report.across import machines_lines

    return machines_lines(subjects)


def _predicate(options: argparse.Namespace) -> Predicate | None:
    if options.predicate is None:
        return None
    from etude.report.predicated import read_predicate

    return read_predicate(options.predicate, options.confidence)


def _judge(subjects: Sequence[Subject], predicate: Predicate | None, options: argparse.Namespace) -> int:
    """1 unless the predicate holds for every judged metric of every test; says for which it does not."""
    if predicate is None:
        return 0

    from etude.report.predicated import judge_subjects

    judgements = judge_subjects(subjects, predicate, options.metric)
    for test, judgement in judgements:
        if not judgement.holds:
            print(
                f"--predicate does not hold: {test}: {judgement.why}",
                file=sys.stderr if options.json else None,
            )
    return 0 if judgements and all(judgement.holds for _, judgement in judgements) else 1
