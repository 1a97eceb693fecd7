"""When a line needs a shell."""

from __future__ import annotations

import pytest

from etude.script.directive_words import command_words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("postmark.sh", ("postmark.sh",)),
        ("sort  -n  /etc/services", ("sort", "-n", "/etc/services")),
        ("echo 'two words' \"and more\"", ("echo", "two words", "and more")),
        ("grep -r x .", ("grep", "-r", "x", ".")),
    ],
)
def test_a_plain_line_is_started_without_one(line: str, words: tuple[str, ...]) -> None:
    assert command_words(line) == words


@pytest.mark.parametrize(
    "line",
    [
        "a | b",
        "a > b",
        "a && b",
        "ls *",
        "echo $HOME",
        "LC_ALL=C sort x",
        "cd /",
        ": nothing",
        "exit 3",
        "it's open",
        "",
    ],
)
def test_what_is_for_a_shell_is_left_to_it(line: str) -> None:
    assert command_words(line) == ("/bin/sh", "-c", line)
