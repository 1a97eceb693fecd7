"""peak/policies/__init__.py: policies by name."""

import pytest

from etude.errors import UsageError
from etude.peak.policies import DEFAULT, POLICIES, policy


@pytest.mark.parametrize("name", POLICIES)
def test_each_name_makes_a_policy(name):
    made = policy(name)
    assert made.name == name
    assert policy(name) is not made


def test_the_default_is_one_of_them():
    assert DEFAULT in POLICIES


def test_ones_own_is_named_by_its_module():
    assert policy("etude.peak.policies.paper:Strawman").name == "strawman"


@pytest.mark.parametrize(
    "name",
    [
        "fastest",
        "no.such.module:Mine",
        "etude.peak.search:Mine",
        "etude.peak.search:MOST_TRIALS",
        ":",
    ],
)
def test_one_that_is_not_there_is_named_in_one_line(name):
    with pytest.raises(UsageError, match=name) as failed:
        policy(name)
    assert "\n" not in str(failed.value)
