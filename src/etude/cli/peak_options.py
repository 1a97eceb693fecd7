"""Options that searches and maps share."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from etude.cli import parser as kinds
from etude.workbench.most import LONGEST_BUDGET_S


def add_budget(add: Callable[..., object]) -> None:
    """Declare --budget."""
    add(
        "--budget",
        type=kinds.time_to(LONGEST_BUDGET_S),
        metavar="TIME",
        help="bench time, such as 2h; then the best so far",
    )


def add_like(group: argparse._ArgumentGroup) -> None:
    """Declare --like, of a rehearsal."""
    group.add_argument(
        "--like",
        metavar="DIR",
        help="of --rehearse: trials cost and vary as those of this search or calibration did",
    )


def only_with_rehearse(options: argparse.Namespace, *names: str) -> None:
    """Raises UsageError for an option of --rehearse without it."""
    from etude.errors import UsageError

    given = [name for name in names if getattr(options, name) is not None]
    if given and not options.rehearse:
        raise UsageError(f"--{given[0].replace('_', '-')} is for --rehearse")
