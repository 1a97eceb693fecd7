"""Ranges of factors: where one has an effect, reaches a target, limits the response, or changes what is better."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from etude.surface.factors import (
    Configuration,
    Factor,
    magnitude,
    row_of,
    setting_text,
    settings_of,
    with_level,
)
from etude.surface.surface_result import Filled, z_of

LITTLE = 0.05
"""Relative change below which a response counts as unchanged."""


@dataclass(frozen=True)
class Range:
    """Range of levels of one factor over which the response changes ("the bounds of the effective range")."""

    factor: str
    setting: str
    """Setting of the other factors; empty: over all of them."""
    low: int
    """Lower bound: up to this level the response does not change; 0: it changes from the lowest one on."""
    high: int
    """Upper bound: from this level on the response does not change."""
    levels: tuple[str, ...]
    little: float
    could_be: float
    """Maximum relative change beyond `high` that the intervals allow; inf if there is no level beyond."""
    shown: int
    """Level from which on no change is significant; at most `high`."""
    turn: int | None = None
    """Level between `low` and `high` with the highest or lowest response, by `little` or more beyond those of both;
    None: there is none, or it is over all settings."""
    rises: bool = True
    """True if the response rises up to `turn`, and falls from there on."""

    @property
    def none(self) -> bool:
        """True if the factor has no effect."""
        return self.low >= self.high

    @property
    def open(self) -> bool:
        """True if the response still changes at the highest level."""
        return not self.none and self.high == len(self.levels) - 1


@dataclass(frozen=True)
class BreakEven:
    """The smallest level at which the response reaches a target."""

    factor: str
    setting: str
    target: float
    level: str | None
    """The level by the values; None if no level reaches the target."""
    earliest: str | None
    """The level by the better ends of the intervals: no lower level reaches the target."""
    surely: str | None
    """The level by the worse ends: it certainly reaches the target."""


def effective_ranges(filled: Filled, little: float = LITTLE) -> tuple[tuple[Range, tuple[Range, ...]], ...]:
    """Ranges of each factor with ordered levels: over all settings of the others, and for each of them."""
    found = []
    for at, factor in enumerate(filled.space.factors):
        if factor.scale == "categorical" or len(factor.levels) < 2:
            continue
        configurations = settings_of(filled.space, [at])
        each = [
            r
            for configuration in configurations
            if (r := _range(filled, at, factor, configuration, little)) is not None
        ]
        if each:
            found.append((_overall(each, factor), tuple(each)))
    return tuple(found)


def break_evens(filled: Filled, factor: str, target: float, better: str = "higher") -> tuple[BreakEven, ...]:
    """Break-even levels for each setting of the others. Raises KeyError for an unknown factor."""
    names = [each.name for each in filled.space.factors]
    if factor not in names:
        raise KeyError(factor)
    at = names.index(factor)
    return tuple(
        _break_even(filled, at, configuration, target, better)
        for configuration in settings_of(filled.space, [at])
    )


def _range(
    filled: Filled, at: int, factor: Factor, configuration: Configuration, little: float
) -> Range | None:
    row = [each for each in row_of(configuration, at, len(factor.levels)) if filled.known[each]]
    if len(row) < 2:
        return None
    numbers = [each[at] for each in row]
    logs = [float(filled.log[each]) for each in row]
    most = math.log1p(little) + 1e-12
    last = len(row) - 1
    low = max(n for n in range(len(row)) if all(abs(y - logs[n]) < most for y in logs[:n]))
    high = min(n for n in range(len(row)) if all(abs(y - logs[n]) < most for y in logs[n:]))
    low = low if low < high else 0  # small steps everywhere
    could = [_at_most(filled, row[high], each) for each in row[high + 1 :]]
    bound = max(could, default=0.0) if high < last else math.inf
    levels = tuple(map(factor.text, range(len(factor.levels))))
    shown = min(n for n in range(len(row)) if not any(_differ(filled, row[n], e) for e in row[n:]))
    setting = setting_text(filled.space.factors, configuration, [at])
    ends, turn = (numbers[low], numbers[high]), _turn(logs, low, high, most)
    return Range(
        factor.name, setting, *ends, levels, little, bound, numbers[min(shown, high)],
        None if turn is None else numbers[turn], turn is None or logs[turn] > logs[low],
    )  # fmt: skip


def _turn(logs: Sequence[float], low: int, high: int, most: float) -> int | None:
    """Index between two others of which both differ from it by `most` or more in the same direction; the farthest."""
    found = [
        (min(abs(logs[n] - logs[low]), abs(logs[n] - logs[high])), n)
        for n in range(low + 1, high)
        if (logs[n] - logs[low]) * (logs[n] - logs[high]) > 0
    ]
    away, turn = max(found, default=(0.0, 0))
    return turn if away >= most else None


def _differ(filled: Filled, one: Configuration, other: Configuration) -> bool:
    apart, sd = filled.apart(one, other)
    return abs(apart) > z_of(filled.confidence) * sd


def _at_most(filled: Filled, one: Configuration, other: Configuration) -> float:
    """Largest relative change between two configurations that their intervals allow."""
    apart, sd = filled.apart(one, other)
    return math.expm1(abs(apart) + z_of(filled.confidence) * sd)


def _overall(each: Sequence[Range], factor: Factor) -> Range:
    """Range from the lowest to the highest bound over the settings in which the factor has an effect."""
    working = [r for r in each if not r.none] or each
    low, high = min(r.low for r in working), max(r.high for r in working)
    could = max((r.could_be for r in working if r.high == high), default=math.inf)
    shown = max(r.shown for r in working)
    return Range(factor.name, "", low, high, each[0].levels, each[0].little, could, shown)


def _break_even(
    filled: Filled, at: int, configuration: Configuration, target: float, better: str
) -> BreakEven:
    factor, sign = filled.space.factors[at], 1.0 if better == "higher" else -1.0
    row = [each for each in row_of(configuration, at, len(factor.levels)) if filled.known[each]]
    z, aim = z_of(filled.confidence), sign * math.log(target) - 1e-12

    def first(away: float) -> str | None:
        """The lowest level at which log + away * sd reaches the target."""
        reached = (e[at] for e in row if sign * filled.log[e] + away * filled.sd[e] >= aim)
        level = next(reached, None)
        return None if level is None else factor.text(level)

    setting = setting_text(filled.space.factors, configuration, [at])
    return BreakEven(factor.name, setting, target, first(0.0), first(z), first(-z))


NOTHING = "nothing that was varied"


@dataclass(frozen=True)
class Limit:
    """The limiting factor at one configuration."""

    cell: Configuration
    name: str
    """Name of the configuration."""
    factor: str | None
    """None: the next level of no factor has an effect."""
    elasticity: float
    """d log response / d log level of that factor, positive for an improvement; 1: proportional."""
    gain: float
    """Relative improvement of the response by its next level (for a cost, the reduction)."""
    sure: bool
    """True if the interval of the gain excludes 0."""
    beyond: bool
    """True if the factor is at its highest level: the gain is then that of the previous step."""


def limits(filled: Filled, better: str = "higher", little: float = LITTLE) -> tuple[Limit, ...]:
    """Limits of all known configurations, in the order of the space.

    Only factors with ordered levels can limit: the one with the largest elasticity of those whose next level improves
    the response by `little` or more. A step of an ordered factor counts as a doubling. Configurations of which none is
    known to limit, and a step is unknown, are left out.
    """
    sign = 1.0 if better == "higher" else -1.0
    known = (configuration for configuration in filled.space if filled.known[configuration])
    found = (_limit(filled, configuration, sign, little) for configuration in known)
    return tuple(limit for limit in found if limit is not None)


def _limit(filled: Filled, configuration: Configuration, sign: float, little: float) -> Limit | None:
    name = filled.space.name(configuration)
    found = [
        limit
        for at in range(len(configuration))
        if (limit := _step(filled, configuration, at, sign)) is not None and limit.gain > little
    ]
    if not found:
        if any(ends and not all(filled.known[end] for end in ends) for ends in _steps(filled, configuration)):
            return None
        return Limit(configuration, name, None, 0.0, 0.0, sure=False, beyond=False)
    return max(found, key=lambda each: each.elasticity)


def _steps(filled: Filled, configuration: Configuration) -> Iterator[tuple[Configuration, ...]]:
    """Both ends of the step of each factor to its next level, from its highest level of the last step; none of a factor
    without ordered levels, or with one level."""
    for at, factor in enumerate(filled.space.factors):
        below = min(configuration[at], len(factor.levels) - 2)
        levels = () if factor.scale == "categorical" or below < 0 else (below, below + 1)
        yield tuple(with_level(configuration, at, level) for level in levels)


def _step(filled: Filled, configuration: Configuration, at: int, sign: float) -> Limit | None:
    """Effect of the next level of one factor; at its highest level, that of the last step."""
    factor = filled.space.factors[at]
    ends = list(_steps(filled, configuration))[at]
    if not ends or not all(filled.known[end] for end in ends):
        return None
    low, high = ends
    below, beyond = low[at], configuration[at] == len(factor.levels) - 1
    rise, sd = filled.apart(high, low)
    gain = sign * rise
    sure = gain - z_of(filled.confidence) * sd > 0
    share = math.expm1(gain) if sign > 0 else -math.expm1(-gain)
    return Limit(
        configuration,
        filled.space.name(configuration),
        factor.name,
        gain / _log_step(factor, below),
        share,
        sure,
        beyond,
    )


def _log_step(factor: Factor, level: int) -> float:
    """Log ratio of a level and the next one; that of a doubling if they are not numbers."""
    if factor.numeric and magnitude(factor.levels[level]) > 0:
        return math.log(magnitude(factor.levels[level + 1]) / magnitude(factor.levels[level]))
    return math.log(2)


@dataclass(frozen=True)
class Crossover:
    """A crossover: above it level `over` is better, below it `under`."""

    factor: str
    over: str
    under: str
    along: str
    setting: str
    at: float
    """Value of `along`, linearly interpolated in its coded level between the two levels around it."""
    low: float | None
    high: float | None
    """Interval of `at`; None if it may extend beyond the measured levels."""


def crossovers(filled: Filled, better: str = "higher") -> tuple[Crossover, ...]:
    """Crossovers of all pairs of levels of each categorical factor along each numeric one, per setting of the
    others."""
    found: list[Crossover] = []
    factors = filled.space.factors
    for at, factor in enumerate(factors):
        if factor.scale == "categorical":
            for along, other in enumerate(factors):
                if other.numeric and len(other.levels) > 1:
                    for a, b in itertools.combinations(range(len(factor.levels)), 2):
                        found += level_crossovers(filled, at, (a, b), along, better)
    return tuple(found)


def level_crossovers(
    filled: Filled, factor: int, levels: tuple[int, int], along: int, better: str = "higher"
) -> list[Crossover]:
    """Crossovers of two levels of one factor (by its index) along a numeric one."""
    found = []
    which, other = filled.space.factors[factor], filled.space.factors[along]
    for configuration in settings_of(filled.space, [factor, along]):
        setting = setting_text(filled.space.factors, configuration, [factor, along])
        for x, low, high, rising in _sign_changes(filled, configuration, (factor, *levels), along):
            over, under = levels if rising == (better == "higher") else levels[::-1]
            found.append(
                Crossover(
                    which.name,
                    which.text(over),
                    which.text(under),
                    other.name,
                    setting,
                    _decoded(other, x),
                    None if low is None else _decoded(other, low),
                    None if high is None else _decoded(other, high),
                )
            )
    return found


def _sign_changes(
    filled: Filled, configuration: Configuration, pair: tuple[int, int, int], along: int
) -> list[tuple[float, float | None, float | None, bool]]:
    """Sign changes of log(first) - log(second): coded level, its interval, and True if the difference rises there."""
    factor, a, b = pair
    codes = filled.space.factors[along].coded()
    nodes: list[tuple[float, float, float]] = []
    for level, code in enumerate(codes):
        at = with_level(configuration, along, level)
        one, other = (with_level(at, factor, each) for each in (a, b))
        if filled.known[one] and filled.known[other]:
            nodes.append((float(code), *filled.apart(one, other)))
    found = []
    clear = [n for n, node in enumerate(nodes) if abs(node[1]) > 1e-12]
    for i, j in itertools.pairwise(clear):
        (x0, d0, s0), (x1, d1, s1) = nodes[i], nodes[j]
        if d0 * d1 > 0:
            continue
        share = d0 / (d0 - d1) if j == i + 1 else 0.5  # a tie at the levels between: their middle
        x, sd = x0 + share * (x1 - x0), s0 + share * (s1 - s0)
        z = z_of(filled.confidence)
        left = _told_apart([(x, 0.0, sd), *nodes[i::-1]], z)
        right = _told_apart([(x, 0.0, sd), *nodes[j:]], z)
        found.append((x, left, right, d1 > d0))
    return found


def _told_apart(path: Sequence[tuple[float, float, float]], z: float) -> float | None:
    """Coded level, outwards from the crossing, at which the difference first exceeds z sd; None if it never does."""
    for (x0, d0, s0), (x1, d1, s1) in itertools.pairwise(path):
        near, far = abs(d0) - z * s0, abs(d1) - z * s1
        if far > 0:
            return x0 + (x1 - x0) * (-near / (far - near)) if near < 0 else x0
    return None


def _decoded(factor: Factor, code: float) -> float:
    ends = np.array([float(factor.levels[0]), float(factor.levels[-1])])
    low, high = np.log(ends) if factor.scale == "log" else ends
    value = low + (code + 1) / 2 * (high - low)
    return float(np.exp(value) if factor.scale == "log" else value)
