"""Lists and ranges of sizes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import UsageError
from etude.iolab.sweeps import sizes


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


@given(st.text(max_size=12))
def test_any_text_is_sizes_or_one_line(text: str) -> None:
    with suppress(UsageError):
        assert min(sizes(text)) > 0
