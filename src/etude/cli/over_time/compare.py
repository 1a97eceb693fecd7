"""`etude compare`: compare two commits, tags, dates or machines."""

from __future__ import annotations

import argparse

from etude.history.comparison import compare_stored
from etude.present.sections.history import comparison_blocks, comparison_document
from etude.present.terminal import show
from etude.present.to_json import print_json


def run(options: argparse.Namespace) -> int:
    """Choose, compare, show."""
    metric = None if options.metric == "all" else options.metric
    found = compare_stored(options.base, options.other, options.store, test=options.test, metric=metric)
    if options.json:
        print_json([comparison_document(each) for each in found])
    else:
        show(comparison_blocks(options.base, options.other, found))
    return 0
