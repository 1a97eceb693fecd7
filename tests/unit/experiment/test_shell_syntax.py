"""Which command lines only a shell understands."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.experiment.test import shell_syntax


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("a | b", "|"),
        ("a|b", "|"),
        ("a || b", "||"),
        ("a && b", "&&"),
        ("a &", "&"),
        ("a > b", ">"),
        ("a 2>&1", ">"),
        ("a >> b", ">>"),
        ("a < b", "<"),
        ("a; b", ";"),
        ("ls *.c", "*"),
        ("ls {a,b}", "{a,b}"),
        ("seq x{1..9}", "{1..9}"),
        ("ls # c", "#"),
        ("ls /et?", "?"),
        ("ls /[ae]tc", "["),
        ("echo $HOME", "$HOME"),
        ('echo "$HOME"', "$HOME"),
        ("echo ${x}", "${"),
        ("echo $(date)", "$("),
        ("echo `date`", "`"),
        ('echo "`date`"', "`"),
        ("echo $1", "$1"),
        ("echo $'x'", "$'"),
        ("ls ~", "~"),
        ("ls ~/x", "~"),
        ("~/bin/x", "~"),
        ("X=1 a", "X="),
        ("  X_2='a b' a", "X_2="),
        ("f() { a; }; f", ";"),
        (r"a \\| b", "|"),
        ("a\nb", "\n"),
        ("a \\\n b", "\n"),
    ],
)
def test_what_a_shell_would_understand_is_named(command: str, found: str) -> None:
    assert shell_syntax(command) == found


@pytest.mark.parametrize(
    "command",
    [
        "",
        "\na\n",
        "a 'b\nc'",
        "a b --c=d",
        "find . -exec ls {} +",
        "curl http://h/?a=1#top",
        "grep [a-z]nosuch? f",
        'a \'{"x":1,"y":2}\' {z} x#y',
        "env X=1 a",
        "a '|' \"|\" \\|",
        "awk '{print $1}' f",
        "python3 -c 'a; b > c'",
        "grep 'x.*y' f",
        "grep x$ f",
        "grep \\$HOME f",
        'grep "x$" f',
        'grep "\\$HOME" f',
        "a~ b~1 HEAD~1",
        "git show HEAD~1",
        "dd if=/dev/zero of=/dev/null",
        "make -j {n}",
        "a 'b",
        "a\\",
        '"it\'s $"',
    ],
)
def test_what_is_the_same_without_a_shell_is_left_alone(command: str) -> None:
    assert shell_syntax(command) is None


@given(st.text(alphabet="ab |&;<>*~$`'\"\\=X1", max_size=12))
def test_a_quoted_text_has_no_shell_syntax(text: str) -> None:
    assert shell_syntax(f"printf {shlex.quote(text)}") is None


@pytest.mark.parametrize("command", ["printf %s a~ b=~ 'c d' \\$x", 'printf %s "a$" "b c" x$ {d}'])
def test_a_shell_gives_such_a_line_the_words_that_it_has_here(command: str) -> None:
    assert shell_syntax(command) is None
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "".join(shlex.split(command)[2:])
