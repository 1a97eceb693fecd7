"""Sizes as they are written."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import UsageError
from etude.figures.wish import number_with_unit
from etude.io.sizes import shown, size, sizes


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("8B", 8),
        ("16K", 16384),
        ("16k", 16384),
        ("16KiB", 16384),
        ("1M", 1 << 20),
        ("2GiB", 2 << 30),
    ],
)
def test_a_size_is_bytes_or_a_power_of_1024(text: str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1.5K", "K", "16KB", "8 B", "1e3", "0x10", "9" * 20, "9E", "8388608T"]
)
def test_what_is_no_size_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        size(text)


def test_a_range_is_the_powers_of_two_between() -> None:
    assert sizes("8..64") == (8, 16, 32, 64)
    assert sizes("3..20") == (3, 6, 12)
    assert sizes("4K") == (4096,)
    assert sizes("64,8,64") == (8, 64)
    assert len(sizes("8..16M")) == 22


@pytest.mark.parametrize("text", ["64..8", "8..", "..8", "8...64", "8,", "8..16..32", "1,2..4"])
def test_a_range_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        sizes(text)


@given(st.integers(1, 2**62))
def test_a_shown_size_is_read_back_the_same(value: int) -> None:
    assert size(shown(value)) == value
    assert number_with_unit(shown(value)) == (float(value), "B")


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_one_line(text: str) -> None:
    with suppress(UsageError):
        assert size(text) > 0
