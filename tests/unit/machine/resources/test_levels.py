"""Levels as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.machine.resources import levels
from etude.machine.tree import cpu_ranges

PARSERS = [levels.size, levels.count, levels.share_of_cpus, levels.cpus, levels.bits_per_s, levels.tc_time]


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.__name__)
@given(text=st.text(max_size=20) | st.text("0123456789.,-KMGTkmgbits ", max_size=12))
def test_any_text_is_a_level_or_one_line_of_error(parser, text: str) -> None:
    said = ""
    try:
        parser(text)
    except InputError as error:
        said = str(error)
    assert "\n" not in said


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_list_of_cpus_is_read_back(chosen: set[int]) -> None:
    assert levels.cpus(cpu_ranges(sorted(chosen)) + ",") == sorted(chosen)


@given(st.integers(1, 1 << 20), st.sampled_from("KMGT"))
def test_sizes_have_powers_of_1024(number: int, letter: str) -> None:
    assert levels.size(f"{number}{letter}") == number * 1024 ** (" KMGT".index(letter))
    assert levels.size(f"{number}{letter.lower()}iB") == levels.size(f"{number}{letter}")


def test_sizes_may_have_a_decimal_point() -> None:
    assert levels.size("1.5K") == 1536
    assert levels.size("4096") == 4096


def test_a_number_of_cpus_takes_the_first_that_are_allowed() -> None:
    assert levels.cpus("2", [1, 2, 5]) == [1, 2]
    assert levels.cpus("2,", [1, 2, 5]) == [2]
    assert levels.cpus("1-2,5", [1, 2, 5]) == [1, 2, 5]


@pytest.mark.parametrize("text", ["4", "0", "3,", "1-5", "5-1"])
def test_cpus_that_are_not_there_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        levels.cpus(text, [1, 2, 5])


@pytest.mark.parametrize(
    ("text", "bits"), [("10mbit", 1e7), ("1.5Gbit", 1.5e9), ("64kbit", 64e3), ("800bit", 800)]
)
def test_rates_have_powers_of_1000(text: str, bits: float) -> None:
    assert levels.bits_per_s(text) == bits


@pytest.mark.parametrize("text", ["10", "10mb", "10 ms", "-1mbit", "0mbit", ""])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected"):
        levels.bits_per_s(text)
