"""A stop program's predicate, `getstats --predicate`, evaluated on samples in memory; alternatives and their operands.

There is no correction for repeated looks or for dependence: these are the papers' own figures.
docs/explanation/calibration.md gives the resulting coverage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etude.stats.columns import display_name, metric_name
from etude.stats.expression import Expression, ExpressionError, compile_expression, truth
from etude.stats.intervals import t_quantile
from etude.stats.samples import check_confidence, finite_sample

NAMES = (
    "name",
    "column",
    "count",
    "mean",
    "median",
    "delta",
    "stddev",
    "sdev",
    "hw",
    "min",
    "max",
    "slope",
    "confidencelevel",
)
"""Variables of a predicate."""


@dataclass(frozen=True)
class Figures:
    """Getstats' figures of one sample, in the unit of its values.

    Below two values `delta`, `stddev` and `slope` are infinite, so that one value never satisfies a predicate.
    """

    count: int
    mean: float
    median: float
    delta: float
    """Margin of error of the mean, Student's: t·s/√n with n-1 degrees of freedom."""
    stddev: float
    """Standard deviation with n-1."""
    minimum: float
    maximum: float
    slope: float
    """Least-squares slope per trial."""

    @property
    def sdev(self) -> float:
        """Standard deviation in percent of the mean."""
        return self._percent(self.stddev)

    @property
    def hw(self) -> float:
        """Margin of error in percent of the mean."""
        return self._percent(self.delta)

    def _percent(self, value: float) -> float:
        if value == 0.0:
            return 0.0
        return 100.0 * value / abs(self.mean) if self.mean else math.inf


def figures(x: ArrayLike, confidence: float = 0.95) -> Figures:
    """Figures of `x`, shape (n,), in the order in which the trials ran.

    Raises ValueError for an empty or non-finite sample.
    Source: Auto-pilot paper, figure 2, whose numbers these formulae reproduce.
    """
    check_confidence(confidence)
    values = finite_sample(x)
    n = values.size
    if n == 0:
        raise ValueError("a sample without values has no figures")
    ordered = np.sort(values)
    mean = float(values.sum()) / n
    centred = values - mean
    spread = half = slope = math.inf
    if n > 1:
        equal = ordered[0] == ordered[-1]
        spread = 0.0 if equal else math.sqrt(float(centred @ centred) / (n - 1))
        half = t_quantile(confidence, n - 1) * spread / math.sqrt(n)
        slope = 12.0 * float(_places(n) @ centred) / (n * (n * n - 1.0))
    return Figures(
        count=n,
        mean=mean,
        median=float(ordered[(n - 1) // 2] + ordered[n // 2]) / 2.0,
        delta=half,
        stddev=spread,
        minimum=float(ordered[0]),
        maximum=float(ordered[-1]),
        slope=slope,
    )


@lru_cache(maxsize=256)
def _places(n: int) -> NDArray[np.float64]:
    return np.arange(n, dtype=np.float64) - (n - 1) / 2.0


@dataclass(frozen=True)
class Judgement:
    """Result of a predicate on several samples."""

    holds: bool
    """True if it holds for all samples."""
    failed: tuple[str, ...]
    """Metrics for which it does not hold."""
    why: str
    """Short clause: precision of those metrics so far."""
    limit: str = ""
    """Set if some metric's trials end only by a condition that counts trials: that condition, and the metrics'
    precision."""


COUNTED = frozenset(("name", "column", "count", "confidencelevel"))
"""Variables that do not depend on the precision of a metric."""


class Predicate:
    """A predicate evaluated for each metric."""

    def __init__(self, expression_text: str, confidence: float = 0.95) -> None:
        """Compile the expression; `confidence` is that of `$delta`, a fraction.

        Raises:
            ExpressionError: it cannot be parsed, or has a variable outside `NAMES`; ValueError: not a fraction.
        """
        check_confidence(confidence)
        self.expression = compile_expression(expression_text)
        self.expression.require(NAMES)
        self.confidence = confidence
        self._alternatives = alternatives(expression_text)

    def judge(self, samples: Mapping[str, Sequence[float]]) -> Judgement:
        """Judgement of all samples; it never holds without samples, or with an empty one.

        Raises:
            ExpressionError: it cannot be evaluated, such as a division by zero; ValueError: a value is not finite.
        """
        failed = {name: clause for name, x in samples.items() if (clause := self._objection(name, x))}
        if failed:
            why = ", ".join(f"{name}: {clause}" for name, clause in failed.items())
        else:
            why = f"holds for {', '.join(samples)}" if samples else "there is no metric to judge"
        holds = bool(samples) and not failed
        return Judgement(holds, tuple(failed), why, self._limit(samples) if holds else "")

    def _limit(self, samples: Mapping[str, Sequence[float]]) -> str:
        """The condition that alone ends the trials of some metrics, if it only counts trials; else empty."""
        if len(self._alternatives) < 2:
            return ""
        limited = {}
        for name, x in samples.items():
            found = figures(x, self.confidence)
            variables = bindings(name, found, self.confidence)
            held = [part for part in self._alternatives if _holds(part, variables)]
            if held and all(COUNTED.issuperset(part.names) for part in held):
                limited[f"{name} ± {_digits(found.hw)} %"] = held[0].text
        by = " and ".join(dict.fromkeys(limited.values()))
        aims = " or ".join(part.text for part in self._alternatives if not COUNTED.issuperset(part.names))
        return f"{by}, not by {aims}: {', '.join(limited)} of $mean" if limited else ""

    def _objection(self, name: str, x: Sequence[float]) -> str:
        """Empty if the expression holds, else the precision of the mean."""
        if len(x) == 0:
            return "no value"
        found = figures(x, self.confidence)
        if truth(self.expression.evaluate(bindings(name, found, self.confidence))):
            return ""
        if found.count == 1:
            return "one value"
        return f"± {_digits(found.hw)} % of $mean"


def _holds(part: Expression, variables: Mapping[str, float | str]) -> bool:
    try:
        return truth(part.evaluate(variables))
    except ExpressionError:  # an earlier part may have prevented its evaluation
        return False


def bindings(name: str, found: Figures, confidence: float) -> dict[str, float | str]:
    """The variables of `NAMES` for one metric, given by any of its names."""
    return {
        "name": display_name(name),
        "column": metric_name(name),
        "count": float(found.count),
        "mean": found.mean,
        "median": found.median,
        "delta": found.delta,
        "stddev": found.stddev,
        "sdev": found.sdev,
        "hw": found.hw,
        "min": found.minimum,
        "max": found.maximum,
        "slope": found.slope,
        "confidencelevel": round(100.0 * confidence, 10),
    }


def _digits(percent: float) -> str:
    return f"{percent:.2g}" if percent < 99.5 else f"{percent:.0f}"


_WORD = re.compile(
    r"""(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<word>\$?\w+)|(?P<or>\|\|)|(?P<other>.)""", re.S
)


def alternatives(text: str) -> tuple[Expression, ...]:
    """Alternatives of a predicate in order, each as written, without outer parentheses; empty if they cannot be
    separated."""
    try:
        parts = _split(_bare(text))
        return tuple(compile_expression(_bare(part)) for part in parts)
    except ExpressionError:
        return ()


def _split(text: str) -> list[str]:
    """Parts between `or`; without word operators, which all bind less tightly, between `||`."""
    words, signs = _operands_and_signs(text)
    if any(word != "or" for _, _, word in words):
        return _cut(text, [place for place in words if place[2] == "or"])
    return _cut(text, words or signs)


def _cut(text: str, places: list[tuple[int, int, str]]) -> list[str]:
    ends = [*(begin for begin, _, _ in places), len(text)]
    begins = [0, *(end for _, end, _ in places)]
    return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _operands_and_signs(text: str) -> tuple[list[tuple[int, int, str]], list[tuple[int, int, str]]]:
    """Positions (begin, end, text) of `or`, `and`, `not`, and of `||`, outside of parentheses."""
    words, signs, depth = [], [], 0
    for found in _WORD.finditer(text):
        place = (found.start(), found.end(), found.group())
        depth += (place[2] == "(") - (place[2] == ")")
        if depth == 0 and place[2] in ("or", "and", "not"):
            words.append(place)
        elif depth == 0 and place[2] == "||":
            signs.append(place)
    return words, signs


def _bare(text: str) -> str:
    text = " ".join(text.split())
    while text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1].strip()
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for found in _WORD.finditer(text):
        depth += (found.group() == "(") - (found.group() == ")")
        if depth == 0:
            return found.end() == len(text)
    return False
