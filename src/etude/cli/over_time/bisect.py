"""`etude bisect`: the commit that changes a metric."""

from __future__ import annotations

import argparse
import random
import shlex
import sys
from pathlib import Path

from etude.bisect.request import Request
from etude.bisect.result import BisectResult, Notice
from etude.bisect.run import bisect, resume
from etude.cli import verb_parsers
from etude.cli.shared_options import UNDECIDED
from etude.errors import UsageError
from etude.experiment.test import shell_syntax
from etude.osutil.files import replace_file
from etude.present.page.content import write
from etude.present.sections.bisect import bisect_blocks, bisect_document, bisect_page
from etude.present.sentences.bisect import git_log, notice_line, state_line
from etude.present.terminal import Terminal, show
from etude.present.to_json import print_json

LOG = "bisect.log"
"""File in the results: the bisection as `git bisect log` prints it."""
RESUMED = ("resume", "budget", "page", "json", "quiet")
"""Options that a bisection may be resumed with; all others are in its results directory."""


def run(options: argparse.Namespace) -> int:
    """Bisect, or continue; show the answer."""
    watcher = _Display(options.quiet)
    try:
        if options.resume is not None:
            _check_resume(options)
            path = Path(options.resume)
            result = resume(path, budget_s=options.budget, observe=watcher.observe)
        else:
            path, result = bisect(
                _request(options),
                Path(options.output) if options.output else None,
                observe=watcher.observe,
                command_line=["etude", *options.command_line],
            )
    finally:
        watcher.close()
    replace_file(path / LOG, git_log(result).encode("utf-8", "surrogatepass"))
    if options.page:
        write(Path(options.page), bisect_page(result))
    if options.json:
        print_json(bisect_document(result))
    else:
        screen = Terminal()
        show(bisect_blocks(result), screen)
        screen.say(f"Results: {path}; as git bisect log: {path / LOG}")
    return {"none": 1, "undecided": UNDECIDED}.get(result.answer.kind, 0)


def _request(options: argparse.Namespace) -> Request:
    if options.good is None or options.bad is None:
        raise UsageError("name two commits, GOOD and BAD, the older one first; or a directory with --resume")
    if not options.command:
        raise UsageError("nothing to run: give the command to measure behind --")
    command = _words(options.command[0]) if len(options.command) == 1 else options.command
    if options.build is None:
        raise UsageError("--build: expected a line that builds a source tree, such as --build 'make -j2'")
    return Request(
        str(Path(options.repository).resolve()),
        options.good,
        options.bad,
        options.build,
        tuple(command),
        metric=options.metric.name,
        pattern=options.metric.regex,
        unit=options.metric.unit,
        at_least=options.at_least,
        confidence=options.confidence,
        ancestry=options.ancestry,
        seed=random.SystemRandom().randrange(2**32) if options.seed is None else options.seed,
        budget_s=options.budget,
        build_limit_s=options.build_timeout,
        timeout_s=options.timeout,
        cache_bytes=options.cache,
        builds=str(Path(options.builds).resolve()) if options.builds else "",
    )


def _words(line: str) -> list[str]:
    """The words of a command that is given as one."""
    if found := shell_syntax(line):
        named = "a line break" if found == "\n" else found
        raise UsageError(
            f"command {line!r}: {named} is shell syntax: run it by a shell, as sh -c {shlex.quote(line)}"
        )
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"command {line!r}: {error}; quote it as a shell would need it") from None


def _check_resume(options: argparse.Namespace) -> None:
    if others := verb_parsers.others_given(options, RESUMED):
        raise UsageError(
            f"--resume takes its settings from the results directory: leave out {', '.join(others)}"
        )


class _Display:
    """Progress on standard error: a line for each build and each choice."""

    def __init__(self, quiet: bool) -> None:
        self._screen = None if quiet else Terminal(sys.stderr, progress=True)
        self._trials = 0

    def observe(self, notice: Notice, result: BisectResult) -> None:
        """Show what happens."""
        if self._screen is None:
            return
        line = notice_line(notice, result)
        if notice.what == "build" and result.state.posterior is not None:
            self._screen.say(state_line(result))
        if line is not None:
            self._screen.say(line)
            self._screen.flush()

    def close(self) -> None:
        """End the display."""
        if self._screen is not None:
            self._screen.flush()
