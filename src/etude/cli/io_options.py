"""Options that the verbs of `etude io` share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection

from etude.errors import UsageError

FORMATS = ("pdf", "eps", "svg", "png")


def size_list(text: str) -> tuple[int, ...]:
    """`16M`, `4K,64K` or `8..16M`."""
    from etude.iolab.sizes import sizes  # with all of etude.io, and so NumPy

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


def check_alone(
    options: argparse.Namespace,
    add_arguments: Callable[[argparse.ArgumentParser], None],
    option: str,
    allowed: Collection[str],
) -> None:
    """Raises UsageError where another option than this and those allowed differs from what it is when left out."""
    usual = argparse.ArgumentParser()
    add_arguments(usual)
    for name, value in vars(usual.parse_args([])).items():
        if name != option and name not in allowed and getattr(options, name) != value:
            but = f" but {' and '.join(f'--{each}' for each in allowed)}" if allowed else ""
            source = "the results directory" if option == "resume" else "its file"
            raise UsageError(f"--{option} takes what to do from {source}: leave out all else{but}")
