"""RANGE: two ends, or a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.commits.commit_range import Endpoints, parse_range
from etude.errors import UsageError

NAMES = st.text(st.characters(exclude_categories=("Z", "Cc"), exclude_characters=","), min_size=1).filter(
    lambda name: ".." not in name and name.strip(".") == name and not any(map(str.isspace, name))
)
BLANKS = st.sampled_from([" ", ",", ", ", "\n", " , \t"])


@given(NAMES, NAMES)
def test_two_dots_are_between_two_ends(good: str, bad: str) -> None:
    assert parse_range(f"{good}..{bad}") == Endpoints(good, bad)
    assert parse_range(f"{good}..") == Endpoints(good, "HEAD")


@given(st.lists(NAMES, min_size=1, max_size=6), BLANKS)
def test_a_list_is_its_names_once_each(names: list[str], between: str) -> None:
    assert parse_range(between.join(names)) == tuple(dict.fromkeys(names))


@given(NAMES, NAMES, NAMES)
def test_what_is_neither_is_refused(one: str, two: str, three: str) -> None:
    for text in (
        f"{one}...{two}",
        f"..{one}",
        "..",
        f"{one}..{two}..{three}",
        f"{one}..{two} {three}",
        f"{three},{one}..{two}",
        f"{one} ..{two}",
        " ,",
        "",
    ):
        with pytest.raises(UsageError) as error:
            parse_range(text)
        assert str(error.value).isprintable()


@given(st.text(st.sampled_from("ab.-,^~ \n\x1b:")))
def test_any_text_is_names_or_refused(text: str) -> None:
    try:
        found = parse_range(text)
    except UsageError:
        return
    names = (found.good, found.bad) if isinstance(found, Endpoints) else found
    assert all(names)
    assert not any(".." in name or "," in name or any(map(str.isspace, name)) for name in names)
