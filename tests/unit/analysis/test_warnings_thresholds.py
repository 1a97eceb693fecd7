"""Thresholds on a command line."""

import contextlib
import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.warnings import Thresholds
from etude.errors import UsageError


def test_none_given_is_the_default():
    assert Thresholds.parse([]) == Thresholds()


@pytest.mark.parametrize(
    ("item", "name", "value"),
    [
        ("drift=5%", "drift", 0.05),
        ("drift=0.05", "drift", 0.05),
        ("warm-up=300%", "warm_up", 3.0),
        ("outliers=0.01", "outliers", 0.01),
        ("outliers = 1% ", "outliers", 0.01),
        ("few=3", "few", 3),
        ("few=0", "few", 0),
        ("ticks=1e3", "ticks", 1000.0),
        ("leak=1MiB", "leak", 2**20),
        ("leak=1.5 GiB", "leak", 1.5 * 2**30),
        ("leak=300kB", "leak", 3e5),
        ("leak=0", "leak", 0.0),
        ("drift-by=least-squares", "drift_by", "least-squares"),
    ],
)
def test_a_value_is_read_in_the_notation_of_its_kind(item, name, value):
    assert Thresholds.parse([item]) == dataclasses.replace(Thresholds(), **{name: value})


def test_the_last_of_one_name_counts_and_others_stay():
    assert Thresholds.parse(["drift=5%", "few=3", "drift=6%"]) == Thresholds(drift=0.06, few=3)


@pytest.mark.parametrize("item", ["drift", "=5%", "", "drif=5%", "drift_by=theil-sen", "Drift=5%"])
def test_an_unknown_name_is_answered_with_the_known_ones(item):
    with pytest.raises(UsageError, match="trend, drift, drift-by, leak, "):
        Thresholds.parse([item])


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("drift=", "fraction .*5%"),
        ("drift=-1%", "fraction"),
        ("drift=nan", "fraction"),
        ("drift=inf", "fraction"),
        ("outliers=100%", "0 and 1"),
        ("outliers=0", "0 and 1"),
        ("few=2.5", "whole number"),
        ("few=-1", "whole number"),
        ("few=" + "9" * 5000, "whole number"),
        ("leak=1XB", "1MiB"),
        ("leak=MiB", "1MiB"),
        ("leak=-1", "1MiB"),
        ("ticks=0", "above 0"),
        ("drift-by=ols", "theil-sen or least-squares"),
    ],
)
def test_a_value_that_cannot_be_meant_is_answered_with_what_can(item, expected):
    with pytest.raises(UsageError, match=f"{re.escape(item.partition('=')[0])}=.*{expected}"):
        Thresholds.parse([item])


def test_what_is_listed_for_help_can_be_given():
    listed = Thresholds.described()
    assert len(listed) == len(dataclasses.fields(Thresholds))
    assert Thresholds.parse(f"{name}={default}" for name, default, _ in listed) == Thresholds()
    assert all(meaning for _, _, meaning in listed)


@given(
    st.lists(
        st.text()
        | st.builds("{}={}".format, st.sampled_from([t[0] for t in Thresholds.described()]), st.text())
    )
)
def test_any_text_is_read_or_refused_in_one_line(items):
    with contextlib.suppress(UsageError):
        assert isinstance(Thresholds.parse(items), Thresholds)
