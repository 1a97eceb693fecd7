"""Options that the verbs of `etude io` share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection

from etude.errors import UsageError

FORMATS = ("pdf", "eps", "svg", "png")


def size_list(text: str) -> tuple[int, ...]:
    """`16M`, `4K,64K` or `8..16M`."""
    from etude.io.sizes import sizes  # with all of etude.io, and so NumPy

    try:
        return sizes(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_place(parser: argparse.ArgumentParser) -> None:
    """Where the data lie, and what else a sweep's trials have in common."""
    add = parser.add_argument
    add(
        "where",
        nargs="?",
        default=".",
        metavar="PLACE",
        help="a directory, in which the data are made and removed again (default: this one); or a file to read",
    )
    add("--trials", type=int, metavar="N", help="kept trials of each size (default 10; over totals 20)")
    add("--cpu", type=int, metavar="N", help="run on this CPU alone")
    add("--seed", type=int, metavar="N", help="of the random order (default: random, recorded)")


def add_figures(parser: argparse.ArgumentParser) -> None:
    """In which form figures are written."""
    parser.add_argument("--format", choices=FORMATS, default="pdf", help="of the figures (default pdf)")


def check_resume(
    options: argparse.Namespace,
    add_arguments: Callable[[argparse.ArgumentParser], None],
    allowed: Collection[str],
) -> None:
    """Raises UsageError where another option than these differs from what it is when it is left out."""
    usual = argparse.ArgumentParser()
    add_arguments(usual)
    for name, value in vars(usual.parse_args([])).items():
        if name not in allowed and getattr(options, name) != value:
            known = " and ".join(f"--{each}" for each in allowed if each != "resume")
            raise UsageError(
                f"--resume takes what to do from the results directory: leave out all else but {known}"
            )
