"""The transforms as options of an argparse parser: those of `etude stats`."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from etude.errors import UsageError
from etude.report.pipeline.transforms import TRANSFORMS, Transform, checked, variable


def add_options(parser: argparse.ArgumentParser, leave_out: Collection[str] = ()) -> None:
    """Declare the transforms: collected in the order given in `options.transforms`.

    `--set NAME=VALUE` goes to `options.variables`; `--shift` applies to the transform behind it.
    leave_out: transforms whose names the parser has for something else.
    """
    group = parser.add_argument_group(
        "transforms", "of the rows, before anything is computed, in the order given (docs/getstats.md)"
    )
    parser.set_defaults(transforms=(), variables={}, shift=False)
    group.add_argument(
        "--shift",
        action="store_true",
        default=argparse.SUPPRESS,
        help="do the next transform before commands and workers are joined",
    )
    group.add_argument(
        "--set",
        action=_SetVariable,
        dest="variables",
        metavar="NAME=VALUE",
        default=argparse.SUPPRESS,
        help="set a variable of expressions",
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
            made = checked(Transform(str(option).removeprefix("--"), tuple(values), namespace.shift))
        except UsageError as error:
            parser.error(str(error))
        namespace.transforms, namespace.shift = (*namespace.transforms, made), False


class _SetVariable(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: Any = None
    ) -> None:
        try:
            name, value = variable(values)
        except UsageError as error:
            parser.error(str(error))
        namespace.variables = {**namespace.variables, name: value}
