"""`etude why`: the causes of the difference between two tests."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from etude.api.call import plain
from etude.api.why import why
from etude.experiment.run import ignore_events
from etude.osutil.processes import ending_by_signals
from etude.present.page.content import write
from etude.present.progress.bench import Display
from etude.present.section import FilePath
from etude.present.sections.why import why_document
from etude.present.terminal import show
from etude.present.to_json import print_json
from etude.why.stack_export import exporter_of


def run(options: argparse.Namespace) -> int:
    """Measure further pairs, show the causes."""
    if options.export:
        exporter_of(options.export)
    with closing(Display(sys.stderr)) as display, ending_by_signals():
        found = plain(why)(
            options.directory,
            options.tests,
            output=options.output,
            pairs=options.pairs,
            budget_s=options.time,
            observe=ignore_events if options.quiet else display.observe,
        )
    if options.page:
        write(Path(options.page), found.page())
    if options.export:
        found.export(options.export)
    if options.json:
        print_json(why_document(found.measured, found.plain, found.split, found.counts))
    else:
        files = {"Pairs": str(found.directory), "Page": options.page, "Export": options.export}
        paths = [FilePath(what, path, "aside") for what, path in files.items() if path]
        show([*found.section().blocks, *paths])
    return 0
