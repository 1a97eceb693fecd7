"""A backtest: how often a rule is wrong on a history, and whether what is stored still speaks of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from etude.history.backtest import Rate, Rule, backtest, borne_out, is_current, keep
from etude.history.metric_history import course_of
from etude.stats.ratio import paired_ratio
from etude.store.entry import Mark
from support.made_histories import commit, history

RULE = Rule("slower")


class Notes(dict[str, str]):
    def remember(self, name: str, text: str) -> None:
        self[name] = text

    def recall(self, name: str) -> str | None:
        return self.get(name)


def test_a_good_rule_on_a_quiet_history_is_seldom_wrong() -> None:
    found = backtest(RULE, course_of(history(100, {60: 1.08})), histories=20)
    assert found.false.count <= 1
    assert found.missed.count <= 1
    (alert,) = found.alerts
    assert alert.change.first.commit == commit(60)
    assert RULE.persist <= alert.after <= RULE.within
    assert alert.stays
    assert found.unseen == 0


def test_a_hasty_rule_on_a_noisy_history_is_seen_to_be_wrong() -> None:
    hasty = Rule("hasty", at_least=0.01, p=0.9, persist=1, sees=0.03)
    found = backtest(hasty, course_of(history(100, noise=0.05)), histories=20)
    assert found.missed.share > 0.5


@pytest.mark.more
def test_a_rule_without_patience_raises_more_false_alarms() -> None:
    random = np.random.default_rng(5)
    drift = np.cumsum(random.standard_normal(120)) * 0.004
    made = [replace(e, values=tuple(v * np.exp(d) for v in e.values))
            for e, d in zip(history(120, noise=0.002), drift, strict=True)]  # fmt: skip
    course = course_of(made)
    hasty = backtest(Rule("hasty", at_least=0.001, p=0.9, persist=1, sees=0.01), course, histories=20)
    calm = backtest(Rule("calm", at_least=0.02, p=0.01, persist=10, sees=0.05), course, histories=20)
    assert hasty.false.count > calm.false.count


def test_a_marked_step_is_not_among_the_alerts_of_the_history() -> None:
    made = history(100, {60: 1.08})
    mark = Mark("sort", None, commit(60), "checksums", made[0].measured)
    found = backtest(RULE, course_of(made, [mark]), histories=2)
    assert (found.alerts, found.unseen) == ((), 0)


def test_a_backtest_is_the_same_each_time() -> None:
    course = course_of(history(60, noise=0.03))
    one, other = backtest(RULE, course, histories=10), backtest(RULE, course, histories=10)
    assert (one.false, one.missed) == (other.false, other.missed)


def test_a_short_history_cannot_be_replayed() -> None:
    with pytest.raises(ValueError, match="20 results"):
        backtest(RULE, course_of(history(19)))


def test_a_rate_has_the_exact_interval() -> None:
    assert Rate(0, 100).interval.high == pytest.approx(0.0362, abs=1e-4)
    assert (Rate(5, 100).interval.low, Rate(5, 100).interval.high) == pytest.approx(
        (0.0164, 0.1128), abs=1e-4
    )
    assert Rate(3, 3).interval.high == 1.0


def test_a_stored_backtest_holds_until_the_rule_or_the_history_is_another() -> None:
    notes, made = Notes(), history(60)
    course = course_of(made[:40])
    assert "no backtest" in str(is_current(notes, RULE, course))
    keep(notes, backtest(RULE, course, histories=2), course)
    known = is_current(notes, RULE, course)
    assert not isinstance(known, str)
    assert (known.results, known.false.of) == (40, 2)
    assert not isinstance(is_current(notes, RULE, course_of(made[:60])), str)
    assert "no backtest" in str(is_current(notes, replace(RULE, persist=7), course))
    others = [*history(40, seed=9)[:1], *made[1:40]]
    assert "other results" in str(is_current(notes, RULE, course_of(others)))
    assert "60 now" in str(is_current(notes, RULE, course_of(made + history(61)[60:]))).replace(
        "61 now", "60 now"
    )


def test_a_fresh_comparison_bears_a_step_out_only_on_its_side_and_of_its_size() -> None:
    change = course_of(history(100, {60: 1.05})).changes[0]
    rule = Rule("slower", at_least=0.02)
    base = [1.0, 1.01, 0.99, 1.0]
    for factor, word in ((1.05, "confirmed"), (1.0, "refuted"), (0.95, "refuted"), (1.005, "refuted")):
        ratio = paired_ratio(base, [factor * v * (1 + 0.0001 * i) for i, v in enumerate(base)])
        assert borne_out(change, ratio, rule) == word, factor
    wide = paired_ratio(base, [1.01 * v * (0.97 if i % 2 else 1.04) for i, v in enumerate(base)])
    assert wide.low < 1.0 < wide.high - rule.at_least
    assert borne_out(change, wide, rule) == "open", "noise withdraws no alert"
