"""Calls of the Python interface: arguments are checked by their annotations, and errors name the function."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from inspect import signature, unwrap
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from etude.codec import Positive, decoded, short
from etude.errors import EtudeError, InputError, Interrupted, UsageError
from etude.osutil.files import path_text

P = ParamSpec("P")
R = TypeVar("R")
KEYWORDS = {
    "-o": ("directory", "output"),
    "--time": ("budget_s",),
    "--budget": ("budget_s",),
    "--min-time": ("least_s",),
    "--factor": ("factors",),
    "--in": ("place",),
    "-n": ("commands",),
}
"""Options of the command line whose keyword has another name."""
OPTION = re.compile(r"(?<![\w-])(-[no]|--[a-z][a-z-]+)(?:(?: |=)(\S+?)(?=[:,;]| |$))?")
NUMBER_OR_VALUE = re.compile(r"[\d'\"/.+-]")


def public(function: Callable[P, R]) -> Callable[P, R]:
    """A function of the Python interface: its errors begin with its name, and name its keywords.

    Raises:
        UsageError: an argument is of another type than its annotation, or out of bounds; KeyboardInterrupt: Ctrl-C.
    """

    known = signature(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = known.bind(*args, **kwargs)
        try:
            check_arguments(function, bound.arguments)
            return function(*bound.args, **bound.kwargs)
        except EtudeError as error:
            text = f"etude.{function.__qualname__}: {in_python(str(error), tuple(known.parameters))}"
            if isinstance(error, Interrupted) and error.exit_code == 130:
                raise KeyboardInterrupt(text) from None
            error.args = (text,)
            raise

    return called


def plain(function: Callable[P, R]) -> Callable[P, R]:
    """A public function without its checks, for callers whose errors do not name it."""
    return cast("Callable[P, R]", unwrap(function))


def in_python(text: str, keywords: Sequence[str]) -> str:
    """A message that names options of the command line, with keywords of a function in their place."""

    def named(option: re.Match[str]) -> str:
        others = KEYWORDS.get(option[1], (option[1].lstrip("-").replace("-", "_"),))
        keyword = next((each for each in others if each in keywords), None)
        if keyword is None:
            return option[0]
        value, after = option[2] or "", option.string[option.end() : option.end() + 1]
        if option[1] == "-n":
            return "etude.Test"
        if option[1] == "-o" and value == "names":
            return "directory names"
        if option[1] == "-o" or (value and (after == ":" or NUMBER_OR_VALUE.match(value))):
            return f"{keyword}={value}"
        return f"{keyword} {value}".rstrip()

    text = re.sub(r"; see etude (\w+) --help$", r"; see help(etude.\1)", text)
    return OPTION.sub(named, text.replace("the same command with", "the same call with"))


def check_arguments(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Check arguments of a function or members of a dataclass whose annotation is plain or a path, and put Python's own
    numbers in place of NumPy's.

    Raises:
        UsageError: an argument is of another type than its annotation, or out of bounds.
    """
    for name, hint in _known_hints(function).items():
        if name not in arguments:
            continue
        value = arguments[name]
        if not _is_plain(hint):
            _check_path(name, value, get_args(hint))
            continue
        arguments[name] = value = value.item() if getattr(value, "ndim", 1) == 0 else value
        choices = [
            each for part in (hint, *get_args(hint)) if get_origin(part) is Literal for each in get_args(part)
        ]
        if choices and value is not None and value not in choices:
            shown = [each if each != "" else "''" for each in choices]
            raise UsageError(f"{name} {short(value)}: expected {', '.join(shown[:-1])} or {shown[-1]}")
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise UsageError(f"{name} {value}: expected a whole number below 2^63")
        try:
            decoded(hint, value, "", name)
        except InputError as error:
            wrong = str(error).partition("; was it edited")[0].removeprefix(": ")
            raise UsageError(wrong.replace(" or null", "")) from None


def _check_path(name: str, value: object, kinds: Sequence[Any]) -> None:
    others = tuple(each for each in kinds if get_origin(each) is None and each is not str)
    if not isinstance(value, others):
        path_text(value, name)


@lru_cache
def _known_hints(function: Callable[..., Any]) -> dict[str, Any]:
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    return {n: hint for n, hint in hints.items() if _is_plain(hint) or os.PathLike[str] in get_args(hint)}


def _is_plain(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, UnionType, Sequence, Mapping, tuple):
        return all(map(_is_plain, get_args(hint)))
    return (
        origin in (Literal, Annotated)
        or hint in (int, str, bool, NoneType, ...)
        or isinstance(hint, type(Positive))
    )
