"""Commands on one line: what a shell would take, and always what was meant."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.results.shell_words import escaped, from_one_line, join_words, one_line, split_words

words = st.lists(st.text(max_size=12) | st.text("a'\"\\$ \t\n\r=[]", max_size=6), max_size=5)


@given(words)
def test_words_survive_their_line(command: list[str]) -> None:
    line = join_words(command)
    assert "\n" not in line
    assert "\r" not in line
    assert split_words(line) == command


@given(st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8), max_size=4))
def test_a_printable_line_is_what_a_shell_reads(command: list[str]) -> None:
    assert shlex.split(join_words(command)) == command


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("", []),
        ("  tar  xf  a.tar ", ["tar", "xf", "a.tar"]),
        ('sh -c \'a b\' "c \\" d" e\\ f', ["sh", "-c", "a b", 'c " d', "e f"]),
        ("a'b'\"c\"d ''", ["abcd", ""]),
        (r'"a\b\$\\"', [r"a\b$\\"[:-1]]),
        (r"$'a\nb\'\\\u0001\x41\101\q'", ["a\nb'\\\x01AA\\q"]),
        (r"$'\ud800'", ["\ufffd"]),
        ("find . | wc -l # x; y", ["find", ".", "|", "wc", "-l", "#", "x;", "y"]),
        ("echo $HOME a$", ["echo", "$HOME", "a$"]),
    ],
)
def test_a_line_has_these_words(line: str, command: list[str]) -> None:
    assert split_words(line) == command


@pytest.mark.parametrize("line", ["'", '"', "a 'b", 'a "b\\"', "$'a", "a\\", "$'\\'"])
def test_an_open_quote_makes_no_words(line: str) -> None:
    assert split_words(line) is None


@given(st.text())
def test_any_line_has_words_or_none(line: str) -> None:
    found = split_words(line)
    assert found is None or all(isinstance(word, str) for word in found)


@given(st.text() | st.text("a $'\\\n\r =", max_size=6))
@example("$'a'")
@example("a = b")
def test_any_text_survives_one_line(text: str) -> None:
    for line in (one_line(text), escaped(text)):
        assert from_one_line(line) == text
        assert not set(line) & set("\n\r\x85")
    assert not set(escaped(text)) & set(" =\t")


def test_a_plain_text_stays_readable() -> None:
    text = "no such file: 'x'"
    assert one_line(text) == text


@pytest.mark.needs_program("bash")
def test_bash_reads_control_characters_as_they_were() -> None:
    command = ["a\nb", "\x01'\\", "tab\t", "it's", "ü$x"]
    script = f"printf '%s\\0' {join_words(command)}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    assert done.stdout.decode().split("\0")[:-1] == command
