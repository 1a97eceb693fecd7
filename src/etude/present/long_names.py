"""Long names of tests in sentences: a label in place of each; the table of tests has them whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from etude.figures.data import labels
from etude.present.section import Command, FilePath

LONGEST_NAME = 80
"""Characters of a name that stands whole in sentences."""

T = TypeVar("T")


def shortened(value: T, names: Iterable[str]) -> T:
    """Data of any kind: in each of its texts, but in commands and paths that can be copied, labels in place of those
    names that are long."""
    shown = labels(names, LONGEST_NAME)
    long = sorted((name for name in shown if len(name) > LONGEST_NAME), key=len, reverse=True)
    return _replaced(value, {name: shown[name] for name in long}) if long else value


def _replaced(value: T, shorter: Mapping[str, str]) -> T:
    found: object = value
    if isinstance(value, str):
        for name, text in shorter.items():
            found = str(found).replace(name, text)
    elif isinstance(value, list | tuple):
        found = type(value)(_replaced(each, shorter) for each in value)
    elif is_dataclass(value) and not isinstance(value, type | Command | FilePath):
        parts = {each.name: _replaced(getattr(value, each.name), shorter) for each in fields(value)}
        found = replace(value, **parts)
    return found  # type: ignore[return-value]
