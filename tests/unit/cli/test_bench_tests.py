"""Which commands the arguments of `etude bench` come to."""

from __future__ import annotations

import argparse

import pytest

from etude.cli.measure.bench_tests import tests_of as made_from
from etude.cli.measure.options import bench_options


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
    bench_options(parser)
    options = parser.parse_args([*arguments, "--prepare", "rm {x}", "--", "ls {x}"])
    options.command_line = arguments
    found = made_from(options)
    assert [test.command for test in found] == commands
    assert found[0].prepare == prepare
    assert found[0].name == ("ls a b" if arguments == ["-P", "x=a b"] else "x=a b")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--shell", "-P", "x=1,2", "--", "ls {x} | wc"], ["x=1", "x=2"]),
        (["-P", "x=1,2", "--", "ls {x} " + 40 * "a"], ["x=1", "x=2"]),
        (["-P", "x=1,2", "--", "ls {x}"], ["ls 1", "ls 2"]),
        (["--shell", "-n", "it", "-P", "x=1,2", "--", "ls {x}"], ["it (x=1)", "it (x=2)"]),
        (["--shell", "-P", "x=1", "--", "ls {x}", "wc {x}"], ["ls 1", "wc 1"]),
        (["--shell", "--", "ls | wc"], ["ls | wc"]),
    ],
    ids=["shell", "long", "short", "named", "several", "no sweep"],
)
def test_a_sweep_of_one_line_of_a_shell_is_named_by_its_values(
    arguments: list[str], names: list[str]
) -> None:
    parser = argparse.ArgumentParser()
    bench_options(parser)
    options = parser.parse_args(arguments)
    options.command_line = arguments
    assert [test.name for test in made_from(options)] == names
