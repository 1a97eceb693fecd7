"""The formulas of docs/decisions/0030-steps-by-ranks.md, computed anew from what `etude history --json` prints."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from etude.history.metric_history import course_of
from etude.present.sentences.history import to_document
from etude.store.entry import Entry
from support.made_histories import history

Floats = NDArray[np.float64]


def ranked(x: Floats) -> Floats:
    found: Floats = stats.norm.ppf((stats.rankdata(x) - 0.5) / x.size)
    return found


def parts(x: Floats, starts: list[int]) -> list[Floats]:
    return np.split(x, starts[1:])


def around(x: Floats, starts: list[int]) -> Floats:
    return np.concatenate([part - part.mean() for part in parts(x, starts)])


def noise(x: Floats, starts: list[int]) -> tuple[float, float]:
    """v / κ and r of docs/decisions/0030-steps-by-ranks.md: of scores around the levels that begin at `starts`."""
    n, m, rest = x.size, len(starts), around(x, starts)
    neighbours = [rest[k] * rest[k - 1] for k in range(1, n) if k not in starts]
    seen = np.mean(neighbours) / np.mean(rest**2)
    r = float(np.clip((n * seen + m) / (n - 3 * m), 0.0, 0.9))
    free = max(n - m * (1 + r) / (1 - r), n / 2)
    return float(np.sum(rest**2)) / free, r


def drifting(entries: list[Entry], by: float) -> list[Entry]:
    return [
        replace(e, values=tuple(v * np.exp(by * place) for v in e.values)) for place, e in enumerate(entries)
    ]


def several_a_day(entries: list[Entry], each: int, offset: float) -> list[Entry]:
    """With so many results on each day, and an offset of it in all of them."""
    random = np.random.default_rng(5)
    off = offset * random.standard_normal(len(entries))
    begin = entries[0].measured
    return [
        replace(
            e,
            values=tuple(v * np.exp(off[place // each]) for v in e.values),
            measured=begin + timedelta(days=place // each, minutes=place % each),
        )
        for place, e in enumerate(entries)
    ]


CASES = {
    "a step": history(60, {30: 1.1}),
    "two steps": history(80, {30: 1.1, 60: 0.95}),
    "a drift": drifting(history(60), 0.002),
    "a step and a drift": drifting(history(60, {25: 1.12}), 0.002),
    "days": several_a_day(history(120, {60: 1.2}), 5, 0.02),
}


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_of_a_history_follow_from_its_values_as_written(name: str) -> None:
    found: dict[str, Any] = to_document(course_of(CASES[name]))
    x = np.log([result["level"] for result in found["results"]])
    n, starts = x.size, [0, *(step["at"] for step in found["steps"])]
    assert len(starts) - 1 == name.count("step") + ("two" in name) + (name == "days")
    assert (found["drift"] is not None) is ("drift" in name)
    time = np.arange(n) - (n - 1) / 2
    slope = 0.0 if found["drift"] is None else float(np.log1p(found["drift"]["size"])) / (n - 1)
    m = len(starts) + (slope != 0.0)

    # r and κ
    z = ranked(x - slope * time)
    r = found["noise"]["dependence"]
    variance, factor = 1.0, (1 + r) / (1 - r)
    if len(starts) > 1:
        variance, mine = noise(z, starts)
        assert mine == pytest.approx(r, abs=1e-9)
    days = np.array([datetime.fromisoformat(e["measured"]).toordinal() for e in found["results"]])
    sizes = np.unique(days, return_counts=True)[1]
    if 6 <= sizes.size < n:
        means = np.array([z[days == day].mean() for day in np.unique(days)])
        (edge,) = [k for k, day in enumerate(np.unique(days)) if day == days[starts[1]]]
        of_days, its = noise(means, [0, edge])
        factor = max(factor, np.sum(sizes**2) / n * of_days * (1 + its) / (1 - its) / variance)
        assert factor > (1 + r) / (1 - r)

    # s
    level = x - slope * time
    medians = np.concatenate([np.full(part.size, np.median(part)) for part in parts(level, starts)])
    w = 1.4826 * max(
        np.median(np.abs(level - medians)), np.median(np.abs(np.diff(level))) / np.sqrt(2 * (1 - r))
    )
    levels = [_huber(part, w) for part in parts(level, starts)]
    assert found["levels"] == pytest.approx(np.exp(levels), rel=1e-4)
    off = np.abs(level - np.repeat(levels, [part.size for part in parts(level, starts)])) / w
    q = np.mean(off <= 2)
    f = max(n - m * factor, n / 2)
    s = w * (1 + m / n * (1 - q) / q) / q * np.sqrt(np.sum(np.minimum(off, 2) ** 2) / f)
    assert found["noise"]["deviation"] == pytest.approx(s, rel=1e-3)

    # sizes, with intervals and p
    design = np.zeros((n, m))
    for k, (begin, end) in enumerate(zip(starts, [*starts[1:], n], strict=True)):
        design[begin:end, k] = 1.0
    if slope:
        design[:, -1] = time
    covariance = s**2 * factor * np.linalg.inv(design.T @ design)
    free = max(1.0, (n - m * factor) / factor)
    for k, step in enumerate(found["steps"], 1):
        d = levels[k] - levels[k - 1]
        error = np.sqrt(covariance[k, k] + covariance[k - 1, k - 1] - 2 * covariance[k, k - 1])
        if not slope:
            a, b = (len(part) for part in parts(level, starts)[k - 1 : k + 1])
            assert error == pytest.approx(s * np.sqrt(factor * (1 / a + 1 / b)))
        t = stats.t.ppf(0.975, free)
        ends = np.expm1([d, d - t * error, d + t * error])
        assert [step["size"], step["low"], step["high"]] == pytest.approx(ends, rel=2e-3)
        before, after = parts(z, starts)[k - 1 : k + 1]
        both = np.concatenate((before, after))
        g = np.sum((both - both.mean()) ** 2) - np.sum(around(both, [0, before.size]) ** 2)
        p = min(1.0, n * 2 * stats.norm.sf(np.sqrt(g / (factor * variance))))
        assert step["p"] == pytest.approx(p, rel=1e-3)
    if slope:
        error = np.sqrt(covariance[-1, -1])
        ends = np.expm1((n - 1) * (slope + stats.t.ppf(0.975, free) * error * np.array([-1, 1])))
        assert [found["drift"]["low"], found["drift"]["high"]] == pytest.approx(ends, rel=2e-3)
        assert found["drift"]["p"] == pytest.approx(2 * stats.t.sf(abs(slope) / error, free), rel=2e-2)


def _huber(x: Floats, w: float) -> float:
    """The level with weight 1 up to 2 w from it, and 2 w / distance beyond."""
    return float(
        optimize.brentq(lambda level: np.sum(np.clip((x - level) / w, -2, 2)), x.min(), x.max(), xtol=1e-14)
    )
