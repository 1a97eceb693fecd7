"""Commands and scripts, measured until their numbers are known, and results that lie on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, Literal

from etude import codec
from etude.analysis.load_subject import Summaries, read_subject
from etude.analysis.subject import Subject, check_metric, subject_of
from etude.analysis.verdict import Verdict, verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.api.call import check_arguments, public
from etude.api.result import (
    PathText,
    ShownResults,
    ShownVerdict,
    check_kind,
    plotted,
    shown_results,
    shown_verdict,
)
from etude.codec import short
from etude.errors import InputError, UsageError
from etude.experiment.plan import BUDGET_S, Plan, make_plan
from etude.experiment.run import ignore_events
from etude.experiment.run import run as run_plan
from etude.experiment.test import Test
from etude.figures.plot import Plot
from etude.figures.plot_options import PlotOptions, threshold
from etude.figures.sources import read_samples, samples_of
from etude.figures.style import Style, check_font, check_side
from etude.results import reader
from etude.results.results import Results
from etude.script.run import read_script, run_script


@public
def bench(
    commands: Sequence[str | Test],
    *,
    directory: PathText | None = None,
    name: str | None = None,
    trials: codec.Whole | None = None,
    min_trials: codec.Whole | None = None,
    max_trials: codec.Whole | None = None,
    precision: codec.Share | None = None,
    budget_s: codec.Positive = BUDGET_S,
    least_s: codec.From0 | None = None,
    schedule: Literal["blocks", "in-turn", "duet"] | None = None,
    seed: codec.Count | None = None,
    shell: str | None = None,
    warmup: codec.Count = 1,
    primary: str = "elapsed",
    ignore_failure: bool = False,
    counters: Literal["auto", "on", "off"] = "auto",
    masks: Sequence[str] = (),
) -> ShownVerdict:
    """Measure commands, interleaved if there are several, until their means or ratios are known (`etude bench`).

    commands: command lines, split as by a shell, or tests with hooks, parameters and metrics of their own.
    directory: new results directory (default: `etude-results/NAME-UTCTIME`).
    trials: fixed number of trials of each; without it `min_trials`, `max_trials`, `precision` (relative margin of
    error of the mean, or of the ratio for several commands), `budget_s` and `least_s` (wall-clock seconds) shape the
    stop rule.
    primary: metric that is judged. masks: patterns of secrets that are not stored.

    Raises:
        UsageError: options that do not fit, before anything is run; CommandFailed: a command failed; MachineRefuses:
        the machine does not allow it. What was measured is on disk.
    """
    a_list = isinstance(commands, Sequence) and not isinstance(commands, str)
    if not a_list or not all(isinstance(each, str | Test) for each in commands):
        raise UsageError("expected a list of command lines or tests")
    plan = make_plan(
        commands,
        name=name,
        trials=trials,
        min_trials=min_trials,
        max_trials=max_trials,
        precision=precision,
        budget_s=budget_s,
        least_s=least_s,
        schedule=schedule,
        seed=seed,
        shell=shell,
        warmup=warmup,
        primary=primary,
        ignore_failure=ignore_failure,
        counters=counters,
        masks=tuple(masks),
    )
    return shown_verdict(verdict(run_plan(plan, directory, verb="bench").results))


@public
def run(
    script: PathText | Plan,
    directory: PathText | None = None,
    *,
    variables: Mapping[str, str] | None = None,
    seed: codec.Count | None = None,
    masks: Sequence[str] = (),
) -> ShownVerdict:
    """Run a script in the Auto-pilot language, or a plan of `make_plan` (`etude run`).

    variables: assignments, as NAME=VALUE of the command line. seed: seed of random orders; both are for scripts only.

    Raises:
        ScriptError, InputError: the script is invalid; CommandFailed: a command failed. What was measured is on disk.
    """
    if isinstance(script, Plan):
        if variables or seed is not None or masks:
            raise UsageError("variables, seed and masks are for scripts: a plan has its own")
        return shown_verdict(verdict(run_plan(script, directory).results))
    given = [f"{name}={value}" for name, value in (variables or {}).items()]
    asked = read_script(os.fspath(script), given, seed=seed, masks=tuple(masks))
    return shown_verdict(verdict(reader.load_results(run_script(asked, directory, observe=ignore_events))))


@public
def stats(
    source: ShownVerdict | Results | PathText,
    *,
    metrics: str | Sequence[str] | None = None,
    confidence: codec.Share = 0.95,
) -> ShownVerdict:
    """The verdict on results on disk, of Étude or of another program that it reads (`etude stats`).

    metrics: metrics to summarise, the first of which is judged; None: all. confidence: of all intervals, a fraction.

    Raises:
        InputError: it cannot be read, or holds summaries only; UsageError: no such metric.
    """
    if confidence == 1:
        raise UsageError(f"confidence {confidence}: expected a fraction between 0 and 1, such as 0.95")
    metrics = [metrics] if isinstance(metrics, str) else metrics
    if isinstance(source, Verdict):
        subject: Subject | Summaries = source.subject
    elif isinstance(source, Results):
        subject = subject_of(source)
    else:
        subject = read_subject(os.fspath(source), confidence=confidence)
    if isinstance(subject, Summaries):
        raise InputError(f"{source}: holds summaries, of which no verdict is made; expected single values")
    for metric in metrics or ():
        check_metric(subject.tests, metric)
    return shown_verdict(verdict(subject, metrics, VerdictOptions(confidence=confidence)))


@public
def load_results(directory: PathText) -> ShownResults:
    """The measurements of a results directory. Raises InputError: there are none."""
    return shown_results(directory)


@public
def plot(
    source: ShownVerdict | Results | PathText,
    kind: str | None = None,
    *,
    size: tuple[codec.Positive, codec.Positive | None] | None = None,
    font: codec.Positive | None = None,
    **options: Any,
) -> Plot:
    """A figure of results, or of any file that `etude stats` reads, which shows itself in a notebook and can be saved.

    kind: one of `etude.figures.KINDS` (default: lines if a number varies over the tests, else bars).
    size: width and height, inches. font: size of the text, points.
    options: members of `etude.figures.plot_options.PlotOptions`, such as `metrics=("user",)`, `bars="quartiles"` and
    `log="x"`.

    Raises:
        InputError: there is nothing to plot; UsageError: the options do not fit.
    """
    check_kind(kind)
    known = [each.name for each in fields(PlotOptions)]
    if unknown := options.keys() - set(known):
        alike = get_close_matches(min(unknown), known, 3, 0.5)
        near = f"; near ones: {', '.join(alike)}" if alike else f"; expected one of {', '.join(known)}"
        raise UsageError(f"no option {', '.join(sorted(unknown))}{near}")
    width, height = size or (None, None)
    usual = Style()
    style = Style(
        check_side(width or usual.width), height and check_side(height), check_font(font or usual.font)
    )
    asked = _plot_options(options)
    if isinstance(source, Verdict):
        samples = samples_of(source.subject, source.subject.label)
    elif isinstance(source, Results):
        samples = samples_of(subject_of(source), str(source.directory))
    else:
        samples = read_samples([os.fspath(source)], asked)
    return plotted(samples, kind, asked, style)


def _plot_options(options: dict[str, Any]) -> PlotOptions:
    if isinstance(options.get("metrics"), str):
        options["metrics"] = (options["metrics"],)
    for name in ("thresholds", "marks"):
        lines = options.get(name, ())
        if not isinstance(lines, list | tuple):
            raise UsageError(f"{name} {short(lines)}: expected a list, such as ['5ms=limit']")
        options[name] = tuple(threshold(each) if isinstance(each, str) else each for each in lines)
    check_arguments(PlotOptions, options)
    return PlotOptions(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}  # type: ignore[arg-type]
    )
