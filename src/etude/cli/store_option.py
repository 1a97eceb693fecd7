"""`--store`, as all verbs that read the store have it."""

from __future__ import annotations

import argparse


def add_store(parser: argparse.ArgumentParser) -> None:
    """Declare it."""
    parser.add_argument(
        "--store",
        metavar="URL",
        help="the store: a file or postgresql://… (default: $ETUDE_STORE, or etude-store.sqlite here)",
    )
