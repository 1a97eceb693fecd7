"""`etude why`: the causes of the difference between two tests."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from etude.api.call import plain
from etude.api.result import PathText
from etude.api.why import Why, why, why_outliers
from etude.errors import UsageError
from etude.experiment.run import ignore_events
from etude.osutil.processes import ending_by_signals
from etude.present.page.content import write
from etude.present.progress.bench import Display
from etude.present.section import FilePath
from etude.present.terminal import show
from etude.present.to_json import print_json
from etude.why.stack_export import exporter_of


def run(options: argparse.Namespace) -> int:
    """Measure further pairs, or trials of one test; show the causes."""
    if options.outliers:
        return _outliers(options)
    if options.trials is not None:
        raise UsageError("--trials is for --outliers; give --pairs")
    _check_files(options)
    found = explained(
        options.directory,
        options.tests,
        quiet=options.quiet,
        output=options.output,
        pairs=options.pairs,
        budget_s=options.time,
        instructions=options.instructions,
    )
    if options.page:
        write(Path(options.page), found.page())
    if options.export:
        found.export(options.export)
    if options.json:
        print_json(found.document())
    else:
        files = {"Pairs": str(found.directory), "Page": options.page, "Export": options.export}
        paths = [FilePath(what, path, "aside") for what, path in files.items() if path]
        show([*found.section().blocks, *paths])
    return 0


def _check_files(options: argparse.Namespace) -> None:
    """Raise UsageError if a file to be written is of no format, or would replace measurements or the other one."""
    if options.export is not None:
        exporter_of(options.export)
    page, export = (path and Path(path).resolve() for path in (options.page, options.export))
    if options.page == "":
        raise UsageError("--page: the name of the file is empty")
    if page and page == export:
        raise UsageError(f"--page and --export: {options.page}: expected two files")
    if page and page.suffix in (".json", ".jsonl", ".gz"):
        raise UsageError(f"--page {options.page}: expected a name of a page, such as why.html")


def _outliers(options: argparse.Namespace) -> int:
    if options.pairs is not None:
        raise UsageError("--pairs: --outliers is about one test; give --trials")
    if given := next((name for name in ("page", "export", "instructions") if getattr(options, name)), None):
        raise UsageError(f"--{given}: is of the causes of a difference; leave out --outliers")
    if len(options.tests) > 1:
        raise UsageError(f"--outliers: {len(options.tests)} tests: expected one")
    with closing(Display(sys.stderr)) as display, ending_by_signals():
        found = plain(why_outliers)(
            options.directory,
            *options.tests,
            output=options.output,
            trials=options.trials,
            budget_s=options.time,
            observe=ignore_events if options.quiet else display.observe,
        )
    if options.json:
        print_json(found.document())
    else:
        show([*found.section().blocks, FilePath("Trials", str(found.directory), "aside")])
    return 0


def explained(directory: PathText, tests: Sequence[str] = (), *, quiet: bool = False, **options: Any) -> Why:
    """The causes, with the progress of the pairs on standard error. Raises EtudeError: same as `etude.why`."""
    with closing(Display(sys.stderr)) as display, ending_by_signals():
        return plain(why)(directory, tests, observe=ignore_events if quiet else display.observe, **options)
