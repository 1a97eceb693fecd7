"""Whether operations that were seen follow what a workload's knobs say.

Each check refuses a right generator by chance with a probability below `LEVEL`, so that all checks of all presets
together do so less than once in ten thousand runs. What each would notice is shown by test_distributions.py, which
alters data that were made to be right by stated amounts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

LEVEL = 1e-6
Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Check:
    """One comparison: what was seen beside what the knobs say, both in words."""

    name: str
    observed: str
    expected: str
    statistic: str
    p: float

    @property
    def holds(self) -> bool:
        return self.p >= LEVEL


def mix(counts: Mapping[str, int], shares: Mapping[str, float], name: str = "mix of operations") -> Check:
    """Chi-square of the kinds of operations; shares need not sum to 1. A kind that has no share must not be seen.

    Kinds of which fewer than five are expected are taken together (Cochran 1954), as the approximation asks for.
    """
    total, whole = sum(counts.values()), sum(shares.values())
    kinds = sorted(set(shares) | set(counts))
    expected = {kind: total * shares.get(kind, 0.0) / whole for kind in kinds}
    worst = max(
        kinds, key=lambda kind: abs(counts.get(kind, 0) - expected[kind]) / math.sqrt(expected[kind] or 1e-9)
    )
    seen = f"{worst} {_percent(counts.get(worst, 0) / total)} (the farthest off), of {total:,}"
    told = f"{worst} {_percent(expected[worst] / total)}"
    if any(counts.get(kind, 0) for kind in kinds if expected[kind] == 0):
        return Check(name, seen, told, "a kind that is in no table", 0.0)
    rare = [kind for kind in kinds if 0 < expected[kind] < 5]
    cells = [[kind] for kind in kinds if expected[kind] >= 5] + ([rare] if rare else [])
    got = np.array([sum(counts.get(kind, 0) for kind in cell) for cell in cells], dtype=float)
    due = np.array([sum(expected[kind] for kind in cell) for cell in cells])
    square = float(((got - due) ** 2 / due).sum())
    p = float(stats.chi2.sf(square, len(cells) - 1)) if len(cells) > 1 else 1.0
    return Check(name, seen, told, f"χ²({len(cells) - 1}) = {square:.1f}", p)


def share(name: str, those: int, of: int, expected: float) -> Check:
    """Whether so many of so many are a share, exactly (Clopper-Pearson's test); of 0 and 1 nothing else will do."""
    if of == 0:
        return Check(name, "none seen", _percent(expected), "nothing to judge", 0.0)
    p = float(stats.binomtest(those, of, expected).pvalue)
    return Check(name, f"{_percent(those / of)} of {of:,}", _percent(expected), "binomial", p)


def ratio(name: str, first: int, second: int, expected: float) -> Check:
    """Of two counts, as first : second."""
    known = share(name, first, first + second, expected / (1 + expected))
    return Check(name, f"{first / max(second, 1):.3f} : 1", f"{expected:g} : 1", known.statistic, known.p)


def from_law(
    name: str, values: Sequence[float] | Numbers, law: Callable[[Numbers], Numbers], told: str
) -> Check:
    """Kolmogorov-Smirnov of values against a continuous law, given by its distribution function."""
    array = np.asarray(values, dtype=float)
    if array.size < 20:
        return Check(name, f"{array.size} values", told, "too few to judge", 0.0)
    done = stats.kstest(array, law)
    seen = f"median {np.median(array):,.0f}, mean {array.mean():,.0f}, of {array.size:,}"
    return Check(name, seen, told, f"D = {done.statistic:.4f}", float(done.pvalue))


def whole_numbers(name: str, values: Counts, law: Callable[[Numbers], Numbers], told: str) -> Check:
    """The same of a law whose values were rounded up to whole numbers: each is spread evenly over what it stands
    for, which is exact where the law is even within it. The spread is always the same."""
    spread = np.random.default_rng(1).random(len(values))
    found = from_law(name, values - spread, law, told)
    return found if len(values) < 20 else Check(name, _middle(values), told, found.statistic, found.p)


def _middle(values: Counts) -> str:
    return f"median {np.median(values):,.0f}, mean {values.mean():,.0f}, of {len(values):,}"


def fixed(name: str, values: Counts, allowed: Mapping[int, float]) -> Check:
    """Of a law with a few values: chi-square, and no other value at all."""
    numbers, counts = np.unique(values, return_counts=True)
    seen = {str(int(number)): int(count) for number, count in zip(numbers, counts, strict=True)}
    return mix(seen, {str(key): part for key, part in allowed.items()}, name)


# --- popularity --------------------------------------------------------------------------------------


FAMOUS = 20
"""Ranks that are not judged where things are left out: if the first of them all is, every rank is off by one, which
moves the exponent by tenths; if one of the twentieth's neighbours is, by little. More would leave too few choices."""


def zipf_exponent(ordered: Counts, first: int = 1) -> float:
    """The exponent that makes counts by rank, of ranks from `first` on, likeliest (also of those never seen)."""
    ordered = ordered[first - 1 :]
    ranks = np.log(np.arange(first, first + len(ordered)))
    total = ordered.sum()
    if total == 0:
        return 0.0
    mean = float((ordered * ranks).sum() / total)

    def slope(exponent: float) -> float:
        weights = np.exp(-exponent * ranks)
        return float((weights * ranks).sum() / weights.sum()) - mean

    if slope(0.0) <= 0:
        return 0.0
    return float(optimize.brentq(slope, 0.0, 12.0, xtol=1e-7)) if slope(12.0) < 0 else 12.0


def zipf(
    name: str, counts: Counts, exponent: float, of: int | None = None, rounds: int = 100, seed: int = 1
) -> Check:
    """Zipf's exponent by maximum likelihood, where ranks are not known but by how often each was seen.

    `counts` is of all that were looked at, zeros too; of `of` things in all, where some could not be: then the first
    ranks are passed over. Ranks by count flatter the exponent (the luckiest of the tail come first), and what is left
    out leaves gaps; so the same is done to `rounds` draws under the exponent that is expected, with as many left out by
    chance, and the observed one is compared with those, by Student's law of a new draw from the same. The interval is
    that of 95 %, put right by the same.
    """
    generator = np.random.default_rng(seed)
    total = int(counts.sum())
    if total < 100:
        return Check(name, f"{total} choices", f"α = {exponent:g}", "too few to judge", 0.0)
    made = np.empty(rounds)
    first = FAMOUS + 1 if (of or 0) > len(counts) > 2 * FAMOUS else 1
    for each in range(rounds):
        ranks = generator.choice(of or len(counts), len(counts), replace=False) + 1.0
        weights = ranks**-exponent
        made[each] = zipf_exponent(
            np.sort(generator.multinomial(total, weights / weights.sum()))[::-1], first
        )
    found = zipf_exponent(np.sort(counts)[::-1], first)
    off, deviation = found - float(made.mean()), float(made.std(ddof=1))
    t = off / (deviation * math.sqrt(1 + 1 / rounds))
    half = float(stats.t.ppf(0.975, rounds - 1)) * deviation
    seen = f"α = {exponent + off:.3f} ± {half:.3f}, of {total:,} choices"
    return Check(name, seen, f"α = {exponent:g}", f"t = {t:.1f}", float(2 * stats.t.sf(abs(t), rounds - 1)))


def evenly(name: str, counts: Counts) -> Check:
    """Whether all were chosen equally often, but for chance: the index of dispersion, against χ²."""
    mean = counts.mean()
    if mean == 0:
        return Check(name, "none seen", "even", "nothing to judge", 0.0)
    square = float(((counts - mean) ** 2).sum() / mean)
    p = _both_sides(square, len(counts) - 1)
    return Check(name, f"variance / mean {square / (len(counts) - 1):.3f}", "1", f"χ²({len(counts) - 1})", p)


def occupied(name: str, distinct: int, chosen: int, of: int, part: float, left_out: float = 0.0) -> Check:
    """How many different ones `chosen` even draws from a part of `of` have met, against what is usual.

    The number of boxes that n balls leave empty of m: mean and variance are exact (Johnson and Kotz 1977), the law
    normal but in small sets; there the exact bounds 1 and m hold as well.
    """
    m = max(round(part * of), 1)
    told = f"{_percent(part)} of {of:,}"
    among = part * of * left_out  # variance of how many of the part were looked at, for so many that were not
    if distinct > m + 7 * math.sqrt(among):
        return Check(name, f"{distinct:,} different ones", told, "more than there should be", 0.0)
    p0, p00 = (1 - 1 / m) ** chosen, (1 - 2 / m) ** chosen if m > 1 else 0.0
    mean = m * (1 - p0)
    variance = max(m * p0 + m * (m - 1) * p00 - (m * p0) ** 2, 0.0) + among * (1 - p0) ** 2
    z = (
        (distinct - mean) / math.sqrt(variance)
        if variance > 0.25
        else 0.0
        if round(mean) == distinct
        else 99.0
    )
    seen = f"{distinct:,} different ones ({_percent(distinct / of)}) in {chosen:,} choices"
    return Check(name, seen, told, f"z = {z:.1f}", float(2 * stats.norm.sf(abs(z))))


# --- arrivals ----------------------------------------------------------------------------------------


def dispersion(name: str, at_ns: Counts, per_window: float, allowance: float) -> Check:
    """Index of dispersion of counts in windows of so many arrivals on average: 1 of a Poisson process, 0 of a clock.

    A busy machine delivers late what was due, in clumps; above 1 + `allowance` it is refused, and below 1 by chance
    alone.
    """
    span = at_ns[-1] - at_ns[0]
    windows = max(int(len(at_ns) / per_window), 2)
    counts = np.histogram(at_ns, bins=windows, range=(at_ns[0], at_ns[0] + span))[0]
    square = float(((counts - counts.mean()) ** 2).sum() / counts.mean())
    index = square / (windows - 1)
    lower, upper = stats.chi2.cdf(square, windows - 1), stats.chi2.sf(square / (1 + allowance), windows - 1)
    seen = f"{index:.3f} in {windows:,} windows"
    return Check(
        name,
        seen,
        f"1, at most {1 + allowance:g} here",
        f"χ²({windows - 1}) = {square:.0f}",
        2 * min(lower, upper),
    )


def rate(name: str, at_ns: Counts, asked: float, *, poisson: bool) -> Check:
    """How many came a second. Of a Poisson process the time of n gaps is a gamma variate (here by Poisson's law of
    counts); of a clock it is n gaps, of which the ends may be a gap off."""
    span_s = float(at_ns[-1] - at_ns[0]) / 1e9
    n, due = len(at_ns) - 1, asked * span_s
    if poisson:
        p = min(2 * float(min(stats.poisson.cdf(n, due), stats.poisson.sf(n - 1, due))), 1.0)
    else:
        p = 1.0 if abs(n - due) <= 2 + n / 1000 else 0.0
    return Check(
        name, f"{n / span_s:.1f} /s in {span_s:.1f} s", f"{asked:g} /s", "Poisson" if poisson else "clock", p
    )


def gaps(name: str, at_ns: Counts, asked: float, *, poisson: bool, moved: float, late_ns: float) -> Check:
    """Kolmogorov-Smirnov of the gaps between arrivals, where machines may be late: of their shape, not of how many.

    A gap may be off by `late_ns` (in both directions), and a share `moved` of all by anything: what is left of the
    distance between the distribution functions is compared with the bound of Dvoretzky, Kiefer, Wolfowitz and
    Massart (1990), 2 exp(-2nD²). With both 0 it is the plain test.
    """
    found = np.sort(np.diff(np.sort(at_ns))).astype(float)
    mean_ns = 1e9 / asked

    def law(values: Numbers) -> Numbers:
        if poisson:
            return np.asarray(-np.expm1(-np.maximum(values, 0.0) / mean_ns))
        return np.asarray(values >= mean_ns, dtype=float)

    n = len(found)
    steps = np.arange(1, n + 1) / n
    above = (steps - law(found + late_ns)).max()
    below = (law(np.nextafter(found - late_ns, -np.inf)) - (steps - 1 / n)).max()
    distance = max(float(max(above, below)) - moved, 0.0)
    p = min(2 * math.exp(-2 * n * distance**2), 1.0)
    seen = f"mean {found.mean() / 1e6:.3f} ms, variation {found.std() / found.mean():.3f}, of {n:,}"
    told = f"{'exponential' if poisson else 'constant'}, mean {mean_ns / 1e6:.3f} ms"
    return Check(name, seen, told, f"D = {distance:.4f} beyond {_percent(moved)}, {late_ns / 1e3:.0f} µs", p)


def _both_sides(square: float, degrees: int) -> float:
    return 2 * float(min(stats.chi2.sf(square, degrees), stats.chi2.cdf(square, degrees)))


def _percent(part: float) -> str:
    return f"{100 * part:.2f} %"
