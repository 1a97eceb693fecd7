"""A search in its results directory: opened or resumed, run to its answer, and stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path

from etude.errors import EtudeError
from etude.osutil.processes import naming_results
from etude.peak.policies import policy
from etude.peak.search import NOBODY, Bench, Policy, Watcher, search, with_deadline
from etude.peak.search_store import SearchSpec, SearchStore, open_store
from etude.peak.sources import Source
from etude.units.formatting import counted

BenchOpener = Callable[[SearchStore], AbstractContextManager[Bench]]
"""Starts the system under test, in its state after the trials on disk."""
Watch = Callable[[SearchStore, Policy], AbstractContextManager[Watcher]]
"""Follows a search, from the start of its bench to its answer."""


def unwatched(kept: SearchStore, policy: Policy) -> AbstractContextManager[Watcher]:
    """Follows nothing."""
    return nullcontext(NOBODY)


def run_search(
    directory: Path,
    sought: SearchSpec,
    opened: BenchOpener,
    *,
    command_line: Sequence[str] = (),
    deadline: datetime | None = None,
    watch: Watch = unwatched,
) -> SearchStore:
    """Search from the trials on disk to an answer, and store it. `deadline`: time of the answer at the latest.

    Raises:
        UsageError: no such policy; InputError: the directory holds another search; EtudeError: from the bench. Each
        trial is on disk by then.
    """
    chosen = policy(sought.policy)
    if deadline is not None:
        chosen = with_deadline(chosen, deadline)
    with open_store(directory, sought, command_line) as kept:
        with opened(kept) as bench, watch(kept, chosen) as watcher:
            answer = search(chosen, kept.task, bench, kept.trials(), kept.keep, watcher)
        kept.answered(answer)
    return kept


def plain_bench(source: Source, kept: SearchStore) -> AbstractContextManager[Bench]:
    """The bench of a source, in its state after the trials on disk."""
    return source.bench(kept.sought.factors, kept.directory / "harness", kept.trials(), kept.task.seed)


@contextmanager
def named_bench(source: Source, kept: SearchStore) -> Iterator[Bench]:
    """The bench of a source; an error, or a signal, names the trials on disk, and how to resume.

    Raises:
        Interrupted: a signal came; EtudeError: from the bench.
    """

    def on_disk(error: EtudeError | None) -> str:
        count = len(kept.trials())
        return "" if error and not count else resumed_by_same_command(counted(count, "trial"), kept.directory)

    with naming_results(on_disk), plain_bench(source, kept) as bench:
        yield bench


def resumed_by_same_command(count: str, directory: object) -> str:
    """Clause on a search or a map that the same command resumes."""
    return f"{count} on disk; the same command with -o {directory} resumes"
