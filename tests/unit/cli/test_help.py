"""Help that was written by hand fits any terminal, and loses no word."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from etude.cli.help import fitted

WORD = st.text(string.ascii_letters + "-=[]", min_size=1, max_size=12)
SAID = st.lists(WORD, min_size=1, max_size=30).map(" ".join)
ENTRY = st.tuples(WORD, SAID).map(lambda each: f"  --{each[0]:16} {each[1]}")
TEXT = st.lists(st.one_of(SAID, ENTRY, SAID.map("       etude {}".format), st.just("")), max_size=12)


@given(TEXT.map("\n".join), st.integers(50, 160))
def test_no_line_is_wider_than_asked_and_no_word_is_lost(text: str, width: int) -> None:
    told = fitted(text, width)
    assert max(map(len, told.splitlines()), default=0) <= width
    assert told.split() == text.split()
    assert fitted(text, None) == text


def test_what_is_said_of_an_option_stays_beside_it() -> None:
    beside = " " * 19
    text = f"usage: etude x\n\n  -q, --quiet      none of what is printed while it runs,\n{beside}but errors\n  -h\n"
    filled = f"usage: etude x\n\n  -q, --quiet      none of what is printed\n{beside}while it runs, but errors\n  -h\n"
    assert fitted(text, 44) == filled


def test_lines_that_fit_are_not_filled() -> None:
    text = "two short\nlines\n\n  0   done\n  1   not\n\n" + "word " * 20 + "\n"
    assert fitted(text, 60).startswith("two short\nlines\n\n  0   done\n  1   not\n\n")
