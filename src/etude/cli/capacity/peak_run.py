"""A search from its source to its answer: carried out, shown, and gone on with."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from etude.cli.capacity.show_results import show_searches
from etude.cli.shared_options import pool_of
from etude.errors import EtudeError
from etude.experiment.session import new_directory
from etude.osutil.end_signals import ending_by_signals, naming_results
from etude.peak.bench import Bench, ObservedBench, PacedBench
from etude.peak.policies.policy import Policy, with_deadline
from etude.peak.policies.registry import policy
from etude.peak.record import Record
from etude.peak.search import search
from etude.peak.search_store import SearchSpec, SearchStore, open_store
from etude.peak.sources import Source
from etude.peak.task import Answer, Trial, TrialRequest
from etude.present.progress.peak import PeakDisplay
from etude.present.section import note
from etude.present.sections.peak import search_of
from etude.present.to_terminal import show_aside
from etude.units.formatting import counted


def search_peak(options: argparse.Namespace, source: Source) -> int:
    """Search, and show the answer; returns the exit code."""
    chosen = policy(options.policy)
    sought = SearchSpec(source.name, source.task, options.policy, source.text, dict(options.factor))
    if (spec := pool_of(options)) is not None:
        from etude.cli.measure import pool_run  # clusters are loaded where there is one

        found = pool_run.peak(directory_of(options, source), source, sought, spec, options)
        assert found.answer is not None
        show_searches([search_of(found, found.answer, source.peak)], options)
        return 0 if found.answer.kept else 1
    with ending_by_signals(), open_store(directory_of(options, source), sought, options.command_line) as kept:
        answer = _answered(options, source, chosen, kept)
        kept.answered(answer)
    show_searches([search_of(kept, answer, source.peak)], options)
    return 0 if answer.kept else 1


def directory_of(options: argparse.Namespace, source: Source) -> Path:
    """The results directory: that of -o, else a new one."""
    return Path(options.output) if options.output is not None else new_directory(None, f"peak-{source.name}")


def _answered(options: argparse.Namespace, source: Source, policy: Policy, kept: SearchStore) -> Answer:
    """The search itself: it goes on after the trials that are on disk."""
    if options.deadline is not None:
        policy = with_deadline(policy, options.deadline)
    before = kept.trials()
    say_lost(kept, "trials")
    with open_bench(options, source, kept) as bench:
        if options.quiet:
            return search(policy, kept.task, bench, before, kept.keep)
        display = PeakDisplay(sys.stderr, kept.task, policy)
        display.resumed(before)

        def made(request: TrialRequest, trial: Trial) -> None:
            kept.keep(request, trial)
            display.made(request, trial)

        try:
            watched = ObservedBench(bench, display.begins, display.window)
            return search(policy, kept.task, watched, before, made)
        finally:
            display.close()


def say_lost(kept: Record, what: str) -> None:
    """Print the trials that a directory has lost since its last session."""
    if text := kept.lost_text(what):
        show_aside(note(f"{kept.directory}: {text}; missing trials are repeated where needed"))


@contextmanager
def open_bench(options: argparse.Namespace, source: Source, kept: SearchStore) -> Iterator[Bench]:
    """The bench of a search, brought to where the trials on disk left it; however it ends, it says where they are.

    Raises:
        EtudeError: with where the trials are, and how to go on.
    """
    place = kept.directory / "harness"

    def on_disk(error: EtudeError | None) -> str:
        count = len(kept.trials())
        return "" if error and not count else resumed_by_same_command(counted(count, "trial"), kept.directory)

    with (
        naming_results(on_disk),
        source.bench(kept.sought.factors, place, kept.trials(), kept.task.seed) as bench,
    ):
        yield bench if options.speed is None else PacedBench(bench, options.speed, time.sleep)


def resumed_by_same_command(count: str, directory: object) -> str:
    """The clause of a verb that resumes by being typed again."""
    return f"{count} on disk; the same command with -o {directory} resumes"
