"""Counts of instructions: read from files of Cachegrind, and compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.why.instructions import instruction_differences, instructions_in

FILE = """desc: I1 cache: 32768 B
cmd: /bin/p -x
events: Ir
fl=p.c
fn=main
1 10
2 5
fn=f
7 100
fl=q.c
fn=main
3 1
summary: 116
"""


def test_lines_of_a_function_are_added_up_over_its_files() -> None:
    assert dict(instructions_in(FILE.splitlines(), "x")) == {("p", "main"): 16, ("p", "f"): 100}


@pytest.mark.parametrize(
    ("text", "named"), [(FILE.replace("summary", "sum"), "x: "), (FILE.replace("2 5", "2"), "x:7: ")]
)
def test_a_file_that_is_cut_short_is_refused(text: str, named: str) -> None:
    with pytest.raises(InputError) as refused:
        instructions_in(text.splitlines(), "x")
    assert str(refused.value).startswith(named)


@given(st.lists(st.one_of(st.text(max_size=9), st.sampled_from(FILE.splitlines()))))
def test_any_text_is_counts_or_is_refused(lines: list[str]) -> None:
    try:
        found = instructions_in(lines, "x")
    except InputError:
        return
    assert all(count >= 0 for count in found.values())


def test_functions_whose_counts_overlap_are_not_listed() -> None:
    a = [{("p", "f"): 10, ("p", "g"): 5, ("p", "h"): 1}, {("p", "f"): 10, ("p", "g"): 7, ("p", "h"): 1}]
    b = [{("p", "f"): 30, ("p", "g"): 6}, {("p", "f"): 30, ("p", "g"): 8}]
    found = instruction_differences(a, b)
    assert [(each.function, each.a, each.b) for each in found.listed] == [("f", 10, 30), ("h", 1, 0)]
    assert (found.whole.a, found.whole.b, found.exact) == (18, 38, False)
