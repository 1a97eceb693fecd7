"""Transforms as command-line options of `etude stats`, collected in the order given."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from etude.analysis.transforms import TRANSFORMS, Transform, checked, with_variable
from etude.errors import UsageError


def add_transform_options(parser: argparse.ArgumentParser, leave_out: Collection[str] = ()) -> None:
    """Declare the transforms: collected in the order given in `options.transforms`.

    `--set NAME=VALUE` goes to `options.variables`; `--shift` applies to the transform behind it.
    leave_out: transforms whose names the parser uses for other options.
    """
    group = parser.add_argument_group(
        "transforms", "of the rows, before anything is computed, in the order given (docs/howto/getstats.md)"
    )
    parser.set_defaults(transforms=(), variables={}, shift=False, if_exists="")
    group.add_argument(
        "--shift",
        action="store_true",
        default=argparse.SUPPRESS,
        help="do the next transform before commands and workers are joined",
    )
    group.add_argument(
        "--ifexist",
        dest="if_exists",
        metavar="COLUMN",
        default=argparse.SUPPRESS,
        help="do the next transform only where there is such a column",
    )
    for option, metavar, text in (
        ("--set", "NAME=VALUE", "set a variable of expressions"),
        ("--setexpr", "NAME=EXPR", "set it to the value of an expression, of variables set before"),
        ("--unset", "NAME", "remove a variable"),
    ):
        group.add_argument(
            option,
            action=_SetVariable,
            dest="variables",
            metavar=metavar,
            default=argparse.SUPPRESS,
            help=text,
        )
    for name, declaration in TRANSFORMS.items():
        if name not in leave_out:
            group.add_argument(
                f"--{name}",
                action=_AddTransform,
                dest="transforms",
                nargs=len(declaration.metavars),
                metavar=declaration.metavars or None,
                default=argparse.SUPPRESS,
                help=declaration.help.replace("%", "%%"),
            )


class _AddTransform(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: Any = None
    ) -> None:
        try:
            name = str(option).removeprefix("--")
            made = checked(Transform(name, tuple(values), namespace.shift, namespace.if_exists))
        except UsageError as error:
            parser.error(str(error))
        namespace.transforms = (*namespace.transforms, made)
        namespace.shift, namespace.if_exists = False, ""


class _SetVariable(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: Any = None
    ) -> None:
        try:
            namespace.variables = with_variable(str(option).removeprefix("--"), values, namespace.variables)
        except UsageError as error:
            parser.error(str(error))
