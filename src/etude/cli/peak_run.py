"""A search from its source to its answer: carried out, shown, and gone on with."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from etude.cli import pooled
from etude.cli.ending import Ended, ending_by_signals
from etude.cli.peak_display import PeakDisplay
from etude.cli.peak_show import show
from etude.cli.pool_options import pool_of
from etude.cli.show import say_note
from etude.cli.terminal import Terminal
from etude.errors import EtudeError, Interrupted
from etude.experiment.sitting import new_directory
from etude.workbench.bench import Bench
from etude.workbench.deadline import Punctual
from etude.workbench.kept import Kept, Sought, keeping
from etude.workbench.policies.policy import Policy
from etude.workbench.policies.registry import policy
from etude.workbench.record import Record
from etude.workbench.search import search
from etude.workbench.sources import Source
from etude.workbench.task import Answer, Offer, Trial
from etude.workbench.watched import Paced, Watched


def search_peak(options: argparse.Namespace, source: Source) -> int:
    """Search, and show the answer; returns the exit code."""
    chosen = policy(options.policy)
    sought = Sought(source.name, source.task, options.policy, source.text, dict(options.factor))
    if (spec := pool_of(options)) is not None:
        found = pooled.peak(directory_of(options, source), source, sought, spec, options)
        assert found.answer is not None
        show(found, found.answer, options, source.peak)
        return 0 if found.answer.kept else 1
    with ending_by_signals(), keeping(directory_of(options, source), sought, options.command_line) as kept:
        answer = _answered(options, source, chosen, kept)
        kept.answered(answer)
    show(kept, answer, options, source.peak)
    return 0 if answer.kept else 1


def directory_of(options: argparse.Namespace, source: Source) -> Path:
    """Where results go: as -o says, else a new one."""
    return Path(options.output) if options.output is not None else new_directory(None, f"peak-{source.name}")


def _answered(options: argparse.Namespace, source: Source, policy: Policy, kept: Kept) -> Answer:
    """The search itself: it goes on after the trials that are on disk."""
    if options.deadline is not None:
        policy = punctual(policy, options.deadline)
    before = kept.trials()
    say_lost(kept, "trials")
    with held(options, source, kept) as bench:
        if options.quiet:
            return search(policy, kept.task, bench, before, kept.keep)
        display = PeakDisplay(sys.stderr, kept.task, policy)
        display.resumed(before)

        def made(offer: Offer, trial: Trial) -> None:
            kept.keep(offer, trial)
            display.made(offer, trial)

        try:
            watched = Watched(bench, display.begins, display.window)
            return search(policy, kept.task, watched, before, made)
        finally:
            display.close()


def say_lost(kept: Record, what: str) -> None:
    """Print the trials that a directory has lost since its last sitting."""
    if text := kept.lost_text(what):
        say_note(
            Terminal(sys.stderr),
            f"{kept.directory}: {text}; what is missing is made again where it is needed",
        )


@contextmanager
def held(options: argparse.Namespace, source: Source, kept: Kept) -> Iterator[Bench]:
    """The bench of a search, brought to where the trials on disk left it; however it ends, it says where they are.

    Raises:
        EtudeError: with where the trials are, and how to go on.
    """
    place = kept.directory / "harness"
    try:
        with source.bench(kept.sought.factors, place, kept.trials(), kept.task.seed) as bench:
            yield bench if options.speed is None else Paced(bench, options.speed, time.sleep)
    except KeyboardInterrupt as ended:
        number = ended.number if isinstance(ended, Ended) else signal.SIGINT
        raise Interrupted(number, f"ended by {signal.Signals(number).name}; {_on_disk(kept)}") from None
    except EtudeError as error:
        if kept.trials():
            error.args = (f"{error}; {_on_disk(kept)}",)
        raise


def _on_disk(kept: Kept) -> str:
    count = len(kept.trials())
    return (
        f"{count} trial{'' if count == 1 else 's'} on disk; the same command with -o {kept.directory} goes on"
    )


def punctual(policy: Policy, deadline: datetime) -> Policy:
    """Answers by then."""
    return Punctual(policy, lambda: (deadline - datetime.now(UTC)).total_seconds())
