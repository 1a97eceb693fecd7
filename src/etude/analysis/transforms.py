"""Transforms of rows as the command line names them: one declaration for `getstats` and `etude stats`.

Reading them loads no numerical library; docs/howto/getstats.md describes each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from etude.errors import UsageError
from etude.stats.expression import ExpressionError, compile_expression


@dataclass(frozen=True)
class Transform:
    """One step: its name in `TRANSFORMS`, and its arguments as they were given."""

    name: str
    arguments: tuple[str, ...] = ()
    shifted: bool = False
    """True if it runs before the commands and workers of a trial are joined."""
    if_exists: str = ""
    """Column that must exist for the transform to run; empty: none."""


@dataclass(frozen=True)
class Declaration:
    """Arguments of a transform, and its line of help."""

    metavars: tuple[str, ...]
    help: str


TRANSFORMS: Mapping[str, Declaration] = {
    "select": Declaration(("EXPR",), "keep the rows for which EXPR holds"),
    "project": Declaration(("A,B",), "keep these columns"),
    "rename": Declaration(("OLD=NEW",), "give columns other names; several with commas"),
    "update": Declaration(("NAME=EXPR",), "compute a column, or replace one; NAME:UNIT=EXPR sets its unit"),
    "group": Declaration(("A",), "a table of its own for each value of a column"),
    "aggregate": Declaration(
        ("[BY:]A=F,…",), "one row for all, or for each value of BY: columns A, each by its function F"
    ),
    "aggthreads": Declaration((), "join the threads of each epoch, command by command"),
    "unifycommand": Declaration((), "join the commands of each thread, then the threads"),
    "waitcpu": Declaration((), "derive wait and cpu from elapsed, user and system"),
    "warnrow": Declaration(("EXPR", "TEXT"), "warn of each row for which EXPR holds"),
    "warncol": Declaration(("EXPR", "TEXT"), "warn of each column whose figures make EXPR hold"),
    "warnval": Declaration(("EXPR", "TEXT"), "warn of each value that makes EXPR hold"),
    "exitfail": Declaration((), "warn of commands that failed"),
    "negio": Declaration((), "warn of rows whose waiting time is below zero"),
    "warnz": Declaration((), "warn of values far from their column's mean"),
    "warnregress": Declaration((), "warn of times and free memory that move with the epochs"),
    "die": Declaration(("EXPR", "TEXT"), "end with an error where EXPR holds for a row"),
    "echo": Declaration(("TEXT",), "print TEXT"),
    "eval": Declaration(("EXPR",), "print the value of EXPR, of variables"),
    "describe": Declaration((), "print what each column holds"),
    "csv": Declaration((), "print the rows as CSV"),
    "dump": Declaration((), "print the rows"),
}

FUNCTIONS = ("sum", "mean", "median", "min", "max", "first", "last", "count", "deviation")
"""Functions of `--aggregate`."""


def variable(text: str, option: str = "set") -> tuple[str, float | str]:
    """`NAME=VALUE` of `--set`; a value that reads as a number is one. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not equals or re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII) is None:
        raise UsageError(f"--{option} {text}: expected NAME=VALUE, such as limit=5")
    try:
        return name, float(value)
    except ValueError:
        return name, value


def with_variable(option: str, text: str, variables: Mapping[str, float | str]) -> dict[str, float | str]:
    """The variables after `--set`, `--setexpr` or `--unset`. Raises UsageError."""
    if option == "unset":
        if text not in variables:
            raise UsageError(f"--unset {text}: no variable of that name was set before")
        return {name: value for name, value in variables.items() if name != text}
    name, value = variable(text) if option == "set" else computed(text, variables)
    return {**variables, name: value}


def computed(text: str, known: Mapping[str, float | str]) -> tuple[str, float | str]:
    """`NAME=EXPR` of `--setexpr`: a variable and its value, computed from known ones. Raises UsageError."""
    name, _ = variable(text, "setexpr")
    expression = text.partition("=")[2]
    try:
        value = compile_expression(expression).evaluate(known)
    except ExpressionError as error:
        raise usage_of("setexpr", error) from None
    return name, value if isinstance(value, str) else float(value)


def checked(transform: Transform) -> Transform:
    """The transform itself. Raises UsageError for invalid arguments."""
    check = _CHECKS.get(transform.name)
    if check is not None:
        check(*transform.arguments)
    return transform


def names_in(option: str, text: str) -> list[str]:
    """`A,B` as names. Raises UsageError."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"--{option} {text!r}: expected names with commas in between, such as elapsed,user")
    return names


def pairs_in(option: str, text: str) -> dict[str, str]:
    """`A=B,C=D` as pairs. Raises UsageError."""
    pairs = [part.partition("=") for part in names_in(option, text)]
    if not all(left.strip() and right.strip() for left, _, right in pairs):
        raise UsageError(f"--{option} {text!r}: expected pairs A=B with commas in between")
    return {left.strip(): right.strip() for left, _, right in pairs}


def column_in(text: str) -> tuple[str, str | None, str]:
    """`NAME=EXPR` or `NAME:UNIT=EXPR` of `--update`: name, unit, expression. Raises UsageError."""
    match = re.fullmatch(r"([^\s=:]+)(?::([^=]+))?=(.+)", text, re.DOTALL)
    if match is None:
        raise UsageError(f"--update {text!r}: expected NAME=EXPR or NAME:UNIT=EXPR")
    return match[1], match[2], match[3]


def aggregate_in(text: str) -> tuple[list[str], dict[str, str]]:
    """`[BY:]A=F,…` of `--aggregate`: the columns of groups, and each column's function. Raises UsageError."""
    by, colon, rest = text.rpartition(":")
    functions = pairs_in("aggregate", rest)
    for function in functions.values():
        if function not in FUNCTIONS:
            raise UsageError(
                f"--aggregate {text!r}: there is no function {function}; there are {', '.join(FUNCTIONS)}"
            )
    return names_in("aggregate", by) if colon else [], functions


def usage_of(option: str, error: ExpressionError) -> UsageError:
    """UsageError for an error in an option's expression."""
    return UsageError(f"--{option}, column {error.column}: {error.message}")


def _check_expression(option: str) -> Callable[..., object]:
    def check(text: str, *_: str) -> None:
        try:
            compile_expression(text)
        except ExpressionError as error:
            raise usage_of(option, error) from None

    return check


_CHECKS: Mapping[str, Callable[..., object]] = {
    "project": lambda text: names_in("project", text),
    "rename": lambda text: pairs_in("rename", text),
    "update": lambda text: _check_expression("update")(column_in(text)[2]),
    "aggregate": aggregate_in,
    **{name: _check_expression(name) for name in ("select", "warnrow", "warncol", "warnval", "die", "eval")},
}


def usage_lines(names: Sequence[str]) -> str:
    """Help text of these transforms, a line each."""
    lines = []
    for name in names:
        option = " ".join([f"--{name}", *TRANSFORMS[name].metavars])
        lines.append(f"  {option:<22} {TRANSFORMS[name].help}\n")
    return "".join(lines)
