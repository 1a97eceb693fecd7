"""Load-picking policies by name: one module each (interface: `Policy` of `peak/search.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import cast

from etude.errors import UsageError
from etude.peak.search import Policy

DEFAULT = "posterior"


def policy(name: str) -> Policy:
    """A policy by its name, or as MODULE:NAME of a callable without arguments. Raises UsageError."""
    if name in POLICIES:
        return POLICIES[name]()
    module, colon, attribute = name.partition(":")
    if not colon:
        raise UsageError(f"no policy is named {name!r}; they are {', '.join(POLICIES)}, or MODULE:NAME")
    try:
        return _made(module, attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(f"the policy {name} is not there: {error}") from None


def _made(module: str, attribute: str) -> Policy:
    """Import lazily: the fitted ones take time."""
    return cast(Policy, getattr(import_module(module), attribute)())


def _ours(module: str, attribute: str) -> Callable[[], Policy]:
    return partial(_made, f"etude.peak.policies.{module}", attribute)


POLICIES: Mapping[str, Callable[[], Policy]] = {
    "strawman": _ours("paper", "Strawman"),
    "linear": _ours("paper", "linear"),
    "binsearch": _ours("paper", "binsearch"),
    "model": _ours("paper", "model"),
    "polynomial": _ours("paper", "polynomial"),
    "bracket": _ours("bracket", "Bracket"),
    "posterior": _ours("posterior", "Posterior"),
}
