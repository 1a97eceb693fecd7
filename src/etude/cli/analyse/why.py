"""`etude why`: the causes of the difference between two tests."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing

from etude.api.call import plain
from etude.api.why import why
from etude.experiment.run import ignore_events
from etude.osutil.processes import ending_by_signals
from etude.present.progress.bench import Display
from etude.present.section import FilePath
from etude.present.sections.why import why_document
from etude.present.terminal import show
from etude.present.to_json import print_json


def run(options: argparse.Namespace) -> int:
    """Measure further pairs, show the causes."""
    with closing(Display(sys.stderr)) as display, ending_by_signals():
        found = plain(why)(
            options.directory,
            options.tests,
            output=options.output,
            pairs=options.pairs,
            budget_s=options.time,
            observe=ignore_events if options.quiet else display.observe,
        )
    if options.json:
        print_json(why_document(found.measured, found.plain, found.split, found.counts))
    else:
        show([*found.section().blocks, FilePath("Pairs", str(found.directory), "aside")])
    return 0
