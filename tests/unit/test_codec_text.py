"""Texts that no file can hold are refused in one line."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from etude.codec import decoded
from etude.errors import InputError


@dataclass(frozen=True)
class OfAName:
    name: str = ""


@pytest.mark.parametrize("told", [{"na\ud800me": 1}, {"\udfff": 1}], ids=["within", "alone"])
def test_half_of_a_surrogate_pair_in_a_member_is_one_line(told: dict[str, object]) -> None:
    with pytest.raises(InputError) as error:
        decoded(OfAName, told, "f.json")
    assert "\n" not in str(error.value)
