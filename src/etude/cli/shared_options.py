"""Options that several verbs have, and the values of such."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

from etude.cli import parser as kinds
from etude.cli.verb_parsers import others_given
from etude.errors import UsageError
from etude.peak import LONGEST_BUDGET_S
from etude.units.parsing import number_in

if TYPE_CHECKING:
    from etude.cluster.pool.job import PoolSpec

Value = TypeVar("Value")
Found = TypeVar("Found")
UNDECIDED = 8
"""Exit code of a bound that the interval holds, with --undecided fail."""


def add_pool(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The option."""
    parser.add_argument(
        "--pool",
        metavar="POOL",
        help="where to measure: 'local' is this machine, one job at a time; 'slurm' is a cluster, each job on nodes of"
        " its own, with keys as in 'slurm,partition=bench,time=30m'; or a file FILE.toml that has them in [pool]",
    )


def pool_of(options: argparse.Namespace) -> PoolSpec | None:
    """The pool that `--pool` names; None where it is not given. Raises UsageError and InputError."""
    from etude.cluster.pool.spec import read_pool

    return None if options.pool is None else read_pool(options.pool)


def add_undecided(parser: argparse._ActionsContainer) -> None:
    """Declare --undecided, which belongs to --fail-if."""
    parser.add_argument(
        "--undecided",
        choices=("pass", "fail"),
        default="pass",
        help="what a bound of --fail-if does that is undecided (the interval holds it, or there are fewer than 10 "
        f"trials): pass ends with 0, fail with {UNDECIDED} (default pass)",
    )


def add_output(add: Callable[..., object], metavar: str, help: str) -> None:
    """Declare --output."""
    add("-o", "--output", type=kinds.place, metavar=metavar, help=help)


def add_confidence(add: Callable[..., object]) -> None:
    """Declare --confidence, of intervals."""
    add(
        "--confidence",
        type=kinds.percent_between,
        default=0.95,
        metavar="PERCENT",
        help="confidence level of all intervals (default 95)",
    )


def add_same_within(add: Callable[..., object]) -> None:
    """Declare --same-within."""
    add(
        "--same-within",
        type=kinds.share,
        metavar="SHARE",
        help="also test equivalence within this margin, such as 2%%",
    )


def add_budget(add: Callable[..., object]) -> None:
    """Declare --budget."""
    add(
        "--budget",
        type=kinds.time_to(LONGEST_BUDGET_S),
        metavar="TIME",
        help="limit of the benchmarking time, such as 2h; then end with the best result so far",
    )


def add_like(group: argparse._ArgumentGroup) -> None:
    """Declare --like, of a rehearsal."""
    group.add_argument(
        "--like",
        metavar="DIR",
        help="with --rehearse: trials cost and vary as in this search or calibration",
    )


class RenamedOption(argparse.Action):
    """The old name of an option: taken for one release, with a note."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Store the value under the new name."""
        print(f"Note: {option_string} is called --{self.dest.replace('_', '-')} now.", file=sys.stderr)
        setattr(namespace, self.dest, values)


def add_between_sessions(
    group: argparse._ActionsContainer, convert: Callable[[str], float], help: str
) -> None:
    """Declare --between-sessions, which was called --between-sittings."""
    group.add_argument("--between-sessions", type=convert, metavar="PERCENT", help=help)
    group.add_argument(
        "--between-sittings",
        dest="between_sessions",
        type=convert,
        action=RenamedOption,
        help=argparse.SUPPRESS,
    )


def only_with_rehearse(options: argparse.Namespace, *names: str) -> None:
    """Raises UsageError for an option of --rehearse without it."""
    given = [name for name in names if getattr(options, name) is not None]
    if given and not options.rehearse:
        raise UsageError(f"--{given[0].replace('_', '-')} is for --rehearse")


FORMATS = ("pdf", "eps", "svg", "png")


def add_figures(parser: argparse.ArgumentParser) -> None:
    """The forms in which figures are written."""
    parser.add_argument(
        "--format", choices=FORMATS, default="pdf", help="format of the figures (default pdf)"
    )


def add_sweep_place(parser: argparse.ArgumentParser) -> None:
    """Declare the options that all sweeps share, such as the place of the data."""
    add = parser.add_argument
    add(
        "where",
        nargs="?",
        default=".",
        metavar="PLACE",
        help="a directory in which data files are created and removed (default: the current one), or a file to read",
    )
    add(
        "--trials",
        type=kinds.whole,
        metavar="N",
        help="included trials of each size (default 10; over totals 20)",
    )
    add("--cpu", type=kinds.whole, metavar="N", help="run on this CPU only")
    add("--seed", type=kinds.whole, metavar="N", help="seed of the random order (default: random, recorded)")


def size_list(text: str) -> tuple[int, ...]:
    """`16M`, `4K,64K` or `8..16M`."""
    from etude.iolab.sweeps import sizes  # with all of etude.io, and so NumPy

    try:
        return sizes(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def check_alone(options: argparse.Namespace, option: str, allowed: Collection[str]) -> None:
    """Raises UsageError where another option was given than this one and those allowed."""
    if others_given(options, (option, *allowed)):
        but = f" but {' and '.join(f'--{each}' for each in allowed)}" if allowed else ""
        source = "the results directory" if option == "resume" else "its file"
        raise UsageError(f"--{option} takes its settings from {source}: leave out all else{but}")


def key_place(text: str) -> str:
    """Place of a key."""
    from etude.figures.plot_options import key_place as checked

    return _checked(checked, text)


def _checked(check: Callable[[Value], Found], value: Value) -> Found:
    try:
        return check(value)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def number(text: str) -> float:
    """Any finite number."""
    value = number_in(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return value


def font_size(text: str) -> float:
    """Points from 3 to 72."""
    from etude.figures.style import check_font

    return _checked(check_font, number(text.removesuffix("pt")))


def picture_size(text: str) -> tuple[float, float]:
    """`5x3.5`: inches."""
    from etude.figures.style import check_side

    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)x([0-9]+(?:\.[0-9]+)?)", text)
    try:
        width, height = map(float, match.groups() if match else ("0", "0"))
        return check_side(width), check_side(height)
    except UsageError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected width and height in inches, 1 to 40, such as 3.3x2.4"
        ) from None


def check_named_once(paths: Sequence[str]) -> None:
    """Raises UsageError for a file that is named twice."""
    seen: set[str] = set()
    for path in paths:
        if (real := os.path.realpath(path)) in seen:
            raise UsageError(f"{path}: is named twice; name each result once")
        seen.add(real)
