"""Rules: read from a file, and what they object to."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.errors import InputError
from etude.history.backtest import KEYS, Rule, alerts_of, read_rules
from etude.history.metric_history import course_of
from etude.present.sentences.history import change_line
from etude.stats.changes import Step
from etude.stats.intervals import Interval
from etude.store.entry import Machine, Mark
from support.golden import Golden
from support.made_histories import commit, history, on_another

RULE = Rule("slower")
UPGRADED = Machine("host-a", "d2")


def write(path: Path, text: str) -> Path:
    file = path / "rules.toml"
    file.write_text(text)
    return file


def test_rules_are_read_with_shares_and_counts(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        '[rule.slower]\ntest = "fs-*"\nat_least = "3 %"\np = 0.001\npersist = 5\nsees = "8 %"\nwithin = 30\n'
        '[rule.any]\nmetric = "user"\ndirection = "either"\n',
    )
    slower, either = read_rules(file)
    assert slower == Rule("slower", "fs-*", "elapsed", "worse", 0.03, 0.001, 5, 0.08, 30)
    assert either == Rule("any", metric="user", direction="either")
    assert slower.digest != either.digest


def test_a_rule_sees_steps_of_twice_what_it_objects_to_unless_it_says_so(tmp_path: Path) -> None:
    (rule,) = read_rules(write(tmp_path, '[rule.large]\nat_least = "10 %"\n'))
    assert (rule.at_least, rule.sees) == (0.1, 0.2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no rule"),
        ("[rule]\n", "has no rule"),
        ("[rules.a]\n", r":1: rules .*\brule\?"),
        ("[rule.a]\npersists = 3\n", r":2: .rule.a. persists .*\bpersist\?"),
        ("[rule.a]\npersist = 0\n", ":2: .rule.a. persist is 0"),
        ('[rule.a]\np = "all"\n', ":2: .rule.a. p is 'all'"),
        ('[rule.a]\nat_least = "5 %"\nsees = "4 %"\n', ":3: .rule.a. sees: .*at_least"),
        ('[rule.a]\ndirection = "up"\n', ":2: .rule.a. direction is 'up'"),
        ("[rule.a]\nx = [\n", "is no TOML"),
    ],
)
def test_a_wrong_rule_is_one_line_that_names_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_rules(write(tmp_path, text))


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from((*KEYS, "other")), VALUES.filter(lambda v: v is not None), max_size=4))
def test_any_table_is_a_rule_or_refused_as_input(tmp_path: Path, table: dict[str, object]) -> None:
    lines = [f"{k} = {_toml(v)}" for k, v in table.items()]
    text = "[rule.a]\n" + "\n".join(lines) + "\n"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    file = write(tmp_path, text)
    try:
        (rule,) = read_rules(file)
    except InputError:
        return
    assert rule.sees > rule.at_least
    assert rule.persist >= 1


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return '"' + value.replace("\\", "").replace('"', "") + '"' if isinstance(value, str) else repr(value)


def test_a_step_for_the_worse_is_an_alert_with_its_commit() -> None:
    (alert,) = alerts_of([RULE], course_of(history(100, {60: 1.05})))
    assert alert.change.first.commit == commit(60)


def test_small_and_fresh_steps_and_those_for_the_better_are_none() -> None:
    assert not alerts_of([RULE], course_of(history(100, {60: 0.9})))
    assert not alerts_of([Rule("large", at_least=0.1)], course_of(history(100, {60: 1.05})))
    assert not alerts_of([Rule("lasting", persist=50)], course_of(history(100, {60: 1.05})))
    assert not alerts_of([Rule("sure", p=1e-300)], course_of(history(100, {60: 1.05})))


def test_a_step_at_each_bound_of_its_rule_is_an_alert_and_one_below_it_is_none() -> None:
    rule = Rule("slower", at_least=0.02, p=0.01, persist=4)
    step = Step(60, 60, 60, 0.02, Interval(0.01, 0.03), 0.01)
    assert rule.objects_to(step, 0.02, True, 64)
    assert not rule.objects_to(step, 0.019, True, 64)
    assert not rule.objects_to(step, 0.02, False, 64)
    assert not rule.objects_to(replace(step, p=0.011), 0.02, True, 64)
    assert not rule.objects_to(step, 0.02, True, 63)


def test_a_step_whose_size_may_be_none_has_no_direction_and_raises_no_alert() -> None:
    step = Step(60, 58, 61, 0.05, Interval(-0.01, 0.11), 1e-6)
    assert not step.shown
    assert not RULE.objects_to(step, 0.05, None, 100)
    assert not Rule("any", direction="either").objects_to(step, 0.05, None, 100)


@pytest.mark.parametrize("seed", range(1, 5))
def test_outliers_do_not_hide_a_step(seed: int) -> None:
    made = history(40, {20: 1.05}, seed=seed)
    wild = [
        replace(e, values=tuple(v * (0.6 if k in {3, 12, 27} else 1.0) for v in e.values))
        for k, e in enumerate(made)
    ]
    (alert,) = alerts_of([RULE], course_of(wild))
    assert alert.change.worse
    assert 0.0 < alert.change.low <= 0.05 <= alert.change.high
    assert alert.change.high - alert.change.low < 0.04


def test_a_step_whose_size_may_be_none_is_told_without_a_direction(golden: Golden) -> None:
    course = course_of(history(40, {20: 1.05}))
    (change,) = course.changes
    step = replace(change.step, interval=Interval(-0.01, 0.11))
    golden(change_line(course, replace(change, step=step, low=-0.01, high=0.12, worse=None)))


def test_a_marked_step_and_one_of_the_machine_raise_none() -> None:
    made = history(100, {60: 1.05})
    mark = Mark("sort", None, commit(60), "checksums", made[0].measured)
    assert not alerts_of([RULE], course_of(made, [mark]))
    assert not alerts_of([RULE], course_of(on_another(made, UPGRADED, 60)))
    assert alerts_of([RULE], course_of(on_another(made, UPGRADED, 80)))


def test_a_drift_raises_none() -> None:
    made = history(100)
    drifting = [replace(e, values=tuple(v * 1.1 ** (k / 99) for v in e.values)) for k, e in enumerate(made)]
    assert not alerts_of([RULE], course_of(drifting))


def test_a_rule_is_about_its_metric_and_tests_alone() -> None:
    course = course_of(history(20))
    assert RULE.is_about(course)
    assert Rule("a", test="so*").is_about(course)
    assert not Rule("a", test="copy").is_about(course)
    assert not Rule("a", metric="user").is_about(course)
