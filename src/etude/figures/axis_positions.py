"""Positions of tests on the x axis: a parameter of a sweep, or the part of names that varies; the rest names the
curve."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from etude.errors import UsageError
from etude.figures.labels import label
from etude.figures.sources import Sample
from etude.units.parsing import quantity

_PART = re.compile(r"\d+(?:\.\d+)?(?:[kKMGT](?:i?B)?(?![A-Za-z]))?")
_OPTION = re.compile(r"(?<!\S)-[^\s=]*")
"""A word that begins with a dash, up to its value: `-5` of `gzip -5` chooses a way, not an amount."""


@dataclass(frozen=True, eq=False)
class AxisPosition:
    """A test on its curve."""

    curve: str
    x: float
    sample: Sample


@dataclass(frozen=True, eq=False)
class Places:
    """All of them, in order of curve and x."""

    placed: tuple[AxisPosition, ...]
    x_label: str
    ticks: tuple[tuple[float, str], ...] | None = None
    """Names along the axis where x is no number."""
    unit: str | None = None
    """Base unit of x, where it has one."""

    def curves(self) -> dict[str, list[AxisPosition]]:
        """Positions by the name of the curve, each in order of x."""
        found: dict[str, list[AxisPosition]] = {}
        for each in self.placed:
            found.setdefault(each.curve, []).append(each)
        return {name: sorted(places, key=lambda p: p.x) for name, places in found.items()}


def place(samples: Sequence[Sample], parameter: str | None = None) -> Places:
    """Position of each test.

    Raises:
        UsageError: no test has the parameter.
    """
    varying = _varying(samples)
    if parameter is not None:
        return _by_parameter(samples, parameter)
    numeric = [name for name in varying if all(_number(s.parameters.get(name)) for s in samples)]
    if numeric:
        return _by_parameter(samples, numeric[-1])
    return by_names(samples, [sample.name for sample in samples])


def _varying(samples: Sequence[Sample]) -> list[str]:
    names = dict.fromkeys(name for sample in samples for name in sample.parameters)
    return [name for name in names if len({sample.parameters.get(name) for sample in samples}) > 1]


def _number(text: str | None) -> tuple[float, str | None] | None:
    return quantity(text) if text is not None else None


def _by_parameter(samples: Sequence[Sample], parameter: str) -> Places:
    having = [sample for sample in samples if parameter in sample.parameters]
    if not having:
        known = dict.fromkeys(name for sample in samples for name in sample.parameters)
        raise UsageError(
            f"--x {parameter}: no test has that parameter; they have {', '.join(known) or 'none'}"
        )
    others = [name for name in _varying(having) if name != parameter]
    curves = [_rest(sample, parameter, others) for sample in having]
    return _places(having, curves, [sample.parameters[parameter] for sample in having], label(parameter))


def _rest(sample: Sample, parameter: str, others: Sequence[str]) -> str:
    """Name of the curve: the other parameters that vary, else the test's name without the value of x."""
    if len(others) == 1 and _number(sample.parameters.get(others[0], "0")) is None:
        return sample.parameters[others[0]]  # a word says what it is
    if others:
        return ", ".join(f"{name}={sample.parameters.get(name, '–')}" for name in others)
    value = sample.parameters[parameter]
    name = sample.name.replace(f"{parameter}={value}", "")
    for part in list(_PART.finditer(name))[::-1]:
        if part[0] == value:
            name = name[: part.start()] + name[part.end() :]
            break
    return re.sub(r"\(\s*,?\s*\)", "", name).strip(" ,:-_/") or parameter


def by_names(samples: Sequence[Sample], names: Sequence[str]) -> Places:
    """x is the last number in the names that varies among names which are alike but for their numbers.

    `ext4:1`, `ext4:2` and `xfs:1` are two curves over 1 and 2; digits of an option are no number.
    Without such a number the names themselves stand along the axis, of one curve.
    """
    parts = [_numbers(name) for name in names]
    common = min((len(found) for found in parts), default=0)
    for back in range(1, common + 1):
        rests = [
            name[: p[-back].start()] + "\0" + name[p[-back].end() :]
            for name, p in zip(names, parts, strict=True)
        ]
        varying: Mapping[str, set[str]] = {rest: set() for rest in rests}
        for rest, found in zip(rests, parts, strict=True):
            varying[rest].add(found[-back][0])
        if any(len(values) > 1 for values in varying.values()):
            curves = [rest.replace("\0", "").strip(" ,:-_/=()") for rest in rests]
            return _places(samples, curves, [found[-back][0] for found in parts], "")
    places = tuple(AxisPosition("", float(n), sample) for n, sample in enumerate(samples))
    return Places(places, "", tuple((float(n), label(name, 24)) for n, name in enumerate(names)))


def _numbers(name: str) -> list[re.Match[str]]:
    options = [match.span() for match in _OPTION.finditer(name)]
    found = _PART.finditer(name)
    return [part for part in found if not any(start <= part.start() < end for start, end in options)]


def _places(samples: Sequence[Sample], curves: Sequence[str], texts: Sequence[str], x_label: str) -> Places:
    numbers = [quantity(text) for text in texts]
    known = [found for found in numbers if found is not None]
    if len(known) < len(numbers):
        order = list(dict.fromkeys(texts))
        placed = tuple(
            AxisPosition(curve, float(order.index(text)), sample)
            for curve, text, sample in zip(curves, texts, samples, strict=True)
        )
        return Places(placed, x_label, tuple((float(n), label(text, 24)) for n, text in enumerate(order)))
    units = {unit for _, unit in known}
    placed = tuple(
        AxisPosition(curve, x, sample) for curve, (x, _), sample in zip(curves, known, samples, strict=True)
    )
    return Places(placed, x_label, unit=units.pop() if len(units) == 1 else None)
