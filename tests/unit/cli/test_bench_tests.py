"""Which commands the arguments of `etude bench` come to."""

from __future__ import annotations

import argparse

import pytest

from etude.cli import bench
from etude.cli.bench_tests import tests_of as made_from


@pytest.mark.parametrize(
    ("arguments", "commands", "prepare"),
    [
        (
            ["--shell", "-P", "x=a b,c"],
            [("/bin/sh", "-c", "ls 'a b'"), ("/bin/sh", "-c", "ls c")],
            "rm 'a b'",
        ),
        (["-P", "x=a b"], [("ls", "a", "b")], "rm a b"),
        (["-S", "sh", "-P", "x=a b"], [("sh", "-c", "ls a b")], "rm a b"),
        (["--shell", "-L", "x", "a b"], [("/bin/sh", "-c", "ls a b")], "rm a b"),
    ],
    ids=["shell", "none", "another shell", "hyperfine's list"],
)
def test_values_of_our_parameters_are_words_to_our_shell(
    arguments: list[str], commands: list[tuple[str, ...]], prepare: str
) -> None:
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    options = parser.parse_args([*arguments, "--prepare", "rm {x}", "--", "ls {x}"])
    options.command_line = arguments
    found = made_from(options)
    assert [test.command for test in found] == commands
    assert found[0].prepare == prepare
    assert found[0].name == "ls a b"
