"""Covering arrays: few cases in which every pair of values of any two factors occurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import combinations

Pair = frozenset[tuple[str, object]]


def pairs_of(case: Mapping[str, object]) -> set[Pair]:
    """All pairs of values that a case has."""
    return {frozenset(pair) for pair in combinations(case.items(), 2)}


def all_pairs(factors: Mapping[str, Sequence[object]]) -> set[Pair]:
    """All pairs of values of any two factors."""
    return {
        frozenset(((first, a), (second, b)))
        for first, second in combinations(factors, 2)
        for a in factors[first]
        for b in factors[second]
    }


def pairwise(factors: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Cases with every pair of values at least once: each begins with a pair that is left, and takes for every other
    factor the value that brings in most of what is left. The same cases for the same factors."""
    order = sorted(all_pairs(factors), key=lambda pair: sorted(map(repr, pair)))
    left, cases = set(order), []
    for pair in order:
        if pair not in left:
            continue
        begun = dict(pair)
        for name, values in factors.items():
            if name not in begun:
                begun[name] = max(values, key=lambda value: _gained(begun, name, value, left))
        case = {name: begun[name] for name in factors}
        left -= pairs_of(case)
        cases.append(case)
    return cases


def _gained(begun: Mapping[str, object], name: str, value: object, left: Set[Pair]) -> int:
    """How many of the pairs that are left a further value brings in."""
    return sum(frozenset((item, (name, value))) in left for item in begun.items())
