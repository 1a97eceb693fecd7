"""How values are kept in columns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.store.column_encoding import (
    clean,
    from_us,
    key,
    pack,
    run_length_decode,
    run_length_encode,
    to_us,
    unpack,
)


@given(st.lists(st.floats(allow_nan=False)))
def test_values_come_back_exactly(values: list[float]) -> None:
    assert unpack(pack(values)) == tuple(values)


@given(st.lists(st.integers(1, 4)))
def test_sittings_come_back(numbers: list[int]) -> None:
    assert run_length_decode(run_length_encode(numbers), len(numbers)) == tuple(numbers)


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)))
def test_times_come_back_to_the_microsecond(time: datetime) -> None:
    assert from_us(to_us(time)) == time.replace(tzinfo=UTC)


@given(st.text(st.characters()))
def test_a_clean_text_can_be_stored_anywhere_and_stays_what_it_is(text: str) -> None:
    cleaned = clean(text)
    assert "\0" not in cleaned.encode().decode()
    assert clean(cleaned) == cleaned


def test_a_key_tells_words_from_their_concatenation() -> None:
    assert key("ab", "c") != key("a", "bc")
    assert key("a", None) != key("a", "None")


def test_values_cut_short_are_refused() -> None:
    with pytest.raises(ValueError, match="9 bytes"):
        unpack(b"123456789")
