"""Bounds of a claim: ranges in which named results must lie, such as `ratio(elapsed, B/A) <= 1.3`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from etude.units.parsing import QuantityError, quantity, share

Of = Literal["ratio", "mean", "equivalent", "trend", "peak", "best", "expect"]

STEADY = 0.05
"""Change over a series, as a share of its median, up to which `trend(…) == none` holds."""
FORMS = (
    "ratio(METRIC, B/A) <= 1.3",
    "mean(METRIC, A) <= 5 ms",
    "equivalent(A, B, 2 %)",
    "trend(METRIC, A) == none",
    "peak >= 20000",
    "best >= 500",
    "expect",
)
"""One example of each form."""

MAX_TEXT = 1000
_CALL = re.compile(r"\s*([a-z]+)\s*(?:\((.*)\))?\s*(?:(<=|>=|==|<|>)\s*(.*?))?\s*", re.S)
_ARGUMENT = re.compile(r"""(?:"[^"]*"|[^,"])+|(?<=,)(?=,|$)|^(?=,)""")
_OVER = re.compile(r"""\s*(?:"([^"]+)"|([^/"]+?))\s*/\s*(?:"([^"]+)"|([^/"]+?))\s*""")


class BoundError(ValueError):
    """The text is no bound; the message says what was expected."""


@dataclass(frozen=True)
class Bound:
    """A range in which a named result must lie."""

    text: str
    of: Of
    metric: str
    """Empty: the experiment's primary metric; unused by `peak` and `best`."""
    tests: tuple[str, ...]
    """The test; of a ratio and an equivalence (baseline, other); empty for `peak` and `best`, and for `expect` and
    `trend` of all, or of the only one."""
    low: float = -math.inf
    high: float = math.inf
    unit: str | None = None
    """Unit of the ends; None for a ratio, a share, and a number without a unit."""

    @property
    def is_ratio(self) -> bool:
        """True if two tests are compared."""
        return self.of in ("ratio", "equivalent")


def parse_bound(text: str) -> Bound:
    """Read a bound.

    Raises:
        BoundError: it is none.
    """
    if len(text) > MAX_TEXT or text.count('"') % 2:
        wrong = "has an open quote" if text.count('"') % 2 else f"has more than {MAX_TEXT} characters"
        raise BoundError(f"{text[:40]!r} {wrong}: expected a bound such as {FORMS[0]}")
    found = _CALL.fullmatch(text)
    if found is None or found[1] not in _READERS:
        raise BoundError(f"{text!r} is no bound: expected one such as {', '.join(FORMS)}")
    name, arguments, sign, value = found[1], found[2], found[3], found[4]
    return _READERS[name](text, name, _arguments(arguments), sign, value)


def _arguments(text: str | None) -> list[str]:
    """The arguments in brackets, as written; names in double quotes may hold commas."""
    if not text or not text.strip():
        return []
    return [each[0].strip() for each in _ARGUMENT.finditer(text)]


def _name(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _ratio(text: str, name: str, arguments: list[str], sign: str, value: str) -> Bound:
    over = _OVER.fullmatch(arguments[-1]) if 1 <= len(arguments) <= 2 else None
    if over is None:
        raise BoundError(f"{text!r}: expected the tests of a ratio as OTHER/BASELINE: {FORMS[0]}")
    other, base = over[1] or over[2], over[3] or over[4]
    if other == base:
        raise BoundError(f"{text!r}: is the ratio of {base} to itself; name two tests")
    low, high, unit = _ends(text, sign, value, FORMS[0])
    if unit == "%":
        low, high, unit = low / 100.0, high / 100.0, None
    if unit is not None or not (low > 0.0 or 0.0 < high < math.inf):
        raise BoundError(f"{text!r}: a ratio is compared with a number above 0, such as 1.3")
    metric = _name(arguments[0]) if len(arguments) == 2 else ""
    return Bound(text, "ratio", metric, (base, other), max(low, 0.0), high)


def _mean(text: str, name: str, arguments: list[str], sign: str, value: str) -> Bound:
    if len(arguments) != 2 or not all(arguments):
        raise BoundError(f"{text!r}: expected a metric and a test: {FORMS[1]}")
    low, high, unit = _ends(text, sign, value, FORMS[1])
    return Bound(text, "mean", _name(arguments[0]), (_name(arguments[1]),), low, high, unit)


def _equivalent(text: str, name: str, arguments: list[str], sign: str, value: str) -> Bound:
    if sign or len(arguments) not in (3, 4) or not all(arguments):
        raise BoundError(f"{text!r}: expected two tests and a margin: {FORMS[2]}")
    *metric, base, other, margin = map(_name, arguments)
    try:
        within = share(margin)
    except QuantityError:
        within = 0.0
    if not 0.0 < within < 1.0:
        raise BoundError(f"{text!r}: {margin} is no margin: expected a share such as 2 %")
    if base == other:
        raise BoundError(f"{text!r}: compares {base} with itself; name two tests")
    ends = 1.0 / (1.0 + within), 1.0 + within
    return Bound(text, "equivalent", metric[0] if metric else "", (base, other), *ends)


def _trend(text: str, name: str, arguments: list[str], sign: str, value: str) -> Bound:
    if sign != "==" or value != "none" or len(arguments) not in (1, 2) or not all(arguments):
        raise BoundError(f"{text!r}: expected a metric, a test, and == none: {FORMS[3]}")
    return Bound(text, "trend", _name(arguments[0]), tuple(map(_name, arguments[1:])), -STEADY, STEADY)


def _capacity(text: str, name: str, arguments: list[str], sign: str, value: str) -> Bound:
    form = FORMS[4] if name == "peak" else FORMS[5]
    if arguments:
        raise BoundError(f"{text!r}: {name} has no arguments: {form}")
    low, high, unit = _ends(text, sign, value, form)
    return Bound(text, "peak" if name == "peak" else "best", "", (), low, high, unit)


def _expect(text: str, name: str, arguments: list[str], sign: str, value: str) -> Bound:
    if sign or len(arguments) > 1:
        raise BoundError(f"{text!r}: expected {FORMS[6]}, or expect(TEST), for what a script EXPECTs")
    return Bound(text, "expect", "", tuple(map(_name, arguments)))


_READERS = {
    "expect": _expect,
    "ratio": _ratio,
    "mean": _mean,
    "equivalent": _equivalent,
    "trend": _trend,
    "peak": _capacity,
    "best": _capacity,
}


def _ends(text: str, sign: str | None, value: str | None, form: str) -> tuple[float, float, str | None]:
    """The range that `<= 5 ms` leaves, and its unit. The end belongs to it: an interval never decides on one value."""
    found = quantity(value or "")
    if sign not in ("<", "<=", ">", ">=") or found is None or not math.isfinite(found[0]):
        raise BoundError(f"{text!r}: expected <= or >= and a quantity: {form}")
    end, unit = found[0], None if found[1] == "1" else found[1]
    return (-math.inf, end, unit) if sign.startswith("<") else (end, math.inf, unit)


def contradiction(bounds: list[Bound]) -> tuple[Bound, Bound] | None:
    """Two bounds that no value, or only a single one, meets; None if there are none."""
    for place, one in enumerate(bounds):
        for other in bounds[:place]:
            (of, low, high), (also, least, most) = _range(one), _range(other)
            if of == also and max(low, least) >= min(high, most):
                return other, one
    return None


def _range(bound: Bound) -> tuple[object, float, float]:
    """The bounded quantity and its range; a ratio as that of the tests in the order of their names."""
    if not bound.is_ratio:
        return (bound.of, bound.metric, bound.tests), bound.low, bound.high
    of, upside_down = ("ratio", bound.metric, tuple(sorted(bound.tests))), bound.tests[0] > bound.tests[1]
    low = 1.0 / bound.high if upside_down else bound.low
    return of, low, (1.0 / bound.low if bound.low > 0.0 else math.inf) if upside_down else bound.high
