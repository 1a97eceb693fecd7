"""What a side of a comparison means."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import EtudeError, InputError, UsageError
from etude.history.comparison import KINDS, select_results
from etude.store.entry import Machine
from support.made_histories import commit, history, on_another

OTHER = Machine("host-b", "d2")


def stored() -> list:
    made = on_another(history(20), OTHER, 10)
    made[5] = replace(made[5], tags=("v1",))
    made[15] = replace(made[15], tags=("v2", "host-a"))
    return made


STORED = stored()


def results(text: str) -> list[int]:
    return [e.result for e in select_results(text, STORED).entries]


def test_a_side_is_chosen_by_commit_tag_date_and_machine() -> None:
    assert results(f"commit:{commit(3)[:6]}") == [4]
    assert results("tag:v1") == [6]
    assert results("date:2026-01-03") == [3]
    assert results("machine:host-b") == list(range(11, 21))
    assert results("machine:d2") == list(range(11, 21))


def test_a_date_means_the_newest_of_each_machine_up_to_the_end_of_that_day() -> None:
    assert results("date:2026-01-15") == [10, 15]


def test_parts_between_commas_hold_together() -> None:
    assert results("machine:host-b,date:2026-01-15") == [15]


def test_a_word_is_looked_up_as_each_kind() -> None:
    assert results("v1") == [6]
    assert results("2026-01-03") == [3]
    assert results("host-b") == list(range(11, 21))
    assert results(commit(7)[:8]) == [8]


def test_a_word_of_two_meanings_is_refused_with_both() -> None:
    with pytest.raises(InputError, match="tag:host-a or machine:host-a"):
        results("host-a")


def test_the_beginning_of_two_commits_is_refused() -> None:
    with pytest.raises(InputError, match="16 commits begin so"):
        results("commit:000")


@pytest.mark.parametrize(
    "text", ["nothing", "tag:v9", "commit:ffff", "date:2025-01-01", "tag:v1,machine:host-b"]
)
def test_what_is_not_there_is_an_error_of_input(text: str) -> None:
    with pytest.raises(InputError, match="store has no"):
        results(text)


@pytest.mark.parametrize("text", ["branch:main", "tag:", "date:tomorrow"])
def test_what_cannot_be_looked_up_is_an_error_of_usage(text: str) -> None:
    with pytest.raises(UsageError):
        results(text)


@given(st.text(max_size=30) | st.builds("{}:{}".format, st.sampled_from(KINDS), st.text(max_size=12)))
def test_any_text_means_results_or_is_refused_as_ours(text: str) -> None:
    try:
        found = select_results(text, STORED)
    except EtudeError:
        return
    assert found.entries
