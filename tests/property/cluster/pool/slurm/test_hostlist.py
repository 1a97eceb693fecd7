from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cluster.pool.slurm.answers import expand


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ""),
        ("n1", "n1"),
        ("n[1-3,07],login", "n1 n2 n3 n07 login"),
        ("n[08-10]", "n08 n09 n10"),
        ("r[1-2]n[1-2]-ib", "r1n1-ib r1n2-ib r2n1-ib r2n2-ib"),
        ("a.example.org,b", "a.example.org b"),
    ],
)
def test_a_list_stands_for_its_nodes(text: str, names: str) -> None:
    assert expand(text) == tuple(names.split())


@pytest.mark.parametrize(
    "text", ["n[", "n[1-", "n[]", "n]", "n[3-1]", ",", "n1,", "n 1", "(null)", "n[1-99999999]"]
)
def test_what_is_no_list_is_none(text: str) -> None:
    assert expand(text) is None


@given(st.text(alphabet="n0123456789[]-,.", max_size=30) | st.text(max_size=20))
def test_any_text_is_a_list_or_none(text: str) -> None:
    names = expand(text)
    assert names is None or all(name and "," not in name and "[" not in name for name in names)


@given(st.lists(st.from_regex(r"[a-z][a-z0-9.-]{0,6}", fullmatch=True), max_size=6))
def test_names_joined_by_commas_come_back(names: list[str]) -> None:
    assert expand(",".join(names)) == tuple(names)


@given(st.integers(0, 5000), st.integers(0, 50), st.integers(1, 6))
def test_a_range_has_each_number_once_as_wide_as_its_first(first: int, more: int, width: int) -> None:
    last = first + more
    expected = tuple(f"n{number:0{max(width, len(str(first)))}}" for number in range(first, last + 1))
    assert expand(f"n[{first:0{width}}-{last:0{width}}]") == expected
