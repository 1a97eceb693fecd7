"""Text of others on its way to a terminal."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.escaping import EscapingStream, escaped, unescaped, write_document

STEERING = [
    "\x1b[2J",
    "\r",
    "\x07",
    "\x7f",
    "\x9b31m",
    "\u2028",
    "\u2029",
    "\u202e",
    "\u2066",
    "\U000e0041",
    "\udc9b",
]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("steering", STEERING, ids=ascii)
def test_what_would_steer_a_terminal_is_written_out(steering: str) -> None:
    screen = io.StringIO()
    EscapingStream(screen).write(f"x{steering}")
    assert screen.getvalue().isprintable()
    assert screen.getvalue().startswith("x\\")


@pytest.mark.parametrize("kept", ["two\nlines", "a\ttab", "naïve 漢字", "no\u00a0break", "😀"], ids=ascii)
def test_what_lays_out_a_text_is_kept(kept: str) -> None:
    assert escaped(kept) == kept


def test_what_is_to_be_one_line_is_one() -> None:
    assert escaped("two\nlines\t", lines=False) == "two\\nlines\\t"


@given(st.text())
def test_nothing_passes_but_what_is_seen_and_blanks(text: str) -> None:
    assert all(c.isprintable() or c.isspace() for c in escaped(text))
    assert escaped(text, lines=False).splitlines() in ([], [escaped(text, lines=False)])


@given(
    st.recursive(st.text() | st.integers(), lambda below: st.lists(below) | st.dictionaries(st.text(), below))
)
def test_a_document_of_json_stays_the_same_document(value: object) -> None:
    assert json.loads(escaped(json.dumps(value, ensure_ascii=False, indent=1))) == value


def test_what_etude_writes_itself_goes_around() -> None:
    screen = io.StringIO()
    stream = EscapingStream(screen)
    stream.writelines(["a\x07", "b"])
    unescaped(stream).write("\x1b[m")  # type: ignore[arg-type]
    assert screen.getvalue() == "a\\x07b\x1b[m"
    assert unescaped(screen) is screen


@pytest.mark.parametrize(("below", "written"), [(io.StringIO, "a\x9b\r\n"), (Screen, "a\\u009b\\r\n")])
def test_a_document_is_escaped_on_a_terminal_only(below: type[io.StringIO], written: str) -> None:
    stream = below()
    write_document(EscapingStream(stream), "a\x9b\r\n")  # type: ignore[arg-type]
    assert stream.getvalue() == written
