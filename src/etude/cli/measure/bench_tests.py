"""The tests of `etude bench`, from its commands and options."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from etude.cli.measure.hyperfine import sweeps_of
from etude.errors import UsageError
from etude.experiment.sweep import check_used, combinations, substitute
from etude.experiment.test import Test, make_test, shell_syntax
from etude.masking import Mask

_NUMBER = re.compile(r"-?\d+(\.\d+)?[smhd]?")
LONGEST_NAME = 40
"""Characters of a command that is the name of a test in a sweep."""
HOOKS = ("setup", "prepare", "conclude", "cleanup")


def tests_of(options: argparse.Namespace) -> list[Test]:
    """Each command with each combination of the parameters.

    Raises:
        UsageError: there is none, or it cannot be run as it stands.
    """
    names, commands = _named(options)
    shell = shell_of(options)
    hooks = _hooks(options, len(commands))
    sweeps = combinations(sweeps_of(options))
    ours = {given.partition("=")[0] for given in options.parameter if isinstance(given, str)}
    words = ours if options.shell else frozenset()
    lines = [line for each in hooks for line in each.values() if line]
    check_used(sweeps, [*commands, *options.data, *lines, options.input or ""])
    _check_quoted(options.commands)
    if shell is None:
        _check_plain([substitute(c, v) for c in commands for v in sweeps], options.command_line)
    by_values = _named_by_values(options, commands, sweeps, shell)
    return [
        make_test(
            substitute(command, values, words),
            name=_values(values) if by_values else _name(name, values),
            shell=shell,
            workers=options.workers,
            cpus=options.cpu,
            timeout_s=options.timeout,
            inner=options.inner,
            metrics=tuple(options.metric),
            parameters=values,
            cool=options.cool,
            data=tuple(substitute(path, values) for path in options.data),
            stdin=_input_file(options.input, values),
            **{point: line and substitute(line, values, words) for point, line in around.items()},
        )
        for name, command, around in zip(names, commands, hooks, strict=True)
        for values in sweeps
    ]


def _named(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    mask = Mask(options.mask)
    names, commands = list(map(mask.text, options.name or options.commands)), options.commands
    if not commands:
        raise UsageError("nothing to run: give at least one command, quoted as one argument")
    if len(names) != len(commands):
        raise UsageError(f"{len(names)} names (-n) for {len(commands)} commands; give one each or none")
    if options.reference is None:
        return names, commands
    return [mask.text(options.reference_name or options.reference), *names], [options.reference, *commands]


def _hooks(options: argparse.Namespace, commands: int) -> list[dict[str, str | None]]:
    found = []
    for point in HOOKS:
        given = getattr(options, point)
        lines = given if isinstance(given, list) else [given]
        if len(lines) not in (0, 1, commands):
            raise UsageError(
                f"--{point}: given {len(lines)} times for {commands} commands; give it once for all, or for each"
            )
        found.append(lines * commands if len(lines) == 1 else lines or [None] * commands)
    return [dict(zip(HOOKS, each, strict=True)) for each in zip(*found, strict=True)]


def _input_file(file: str | None, values: dict[str, str]) -> str | None:
    if file in (None, "null"):
        return None
    path = Path(substitute(file, values))
    if not path.is_file():
        why = "is no regular file" if path.exists() else "no such file"
        raise UsageError(f"--input {path}: {why}; expected one that can be read")
    return str(path.absolute())  # a resumed run, or a job of a pool, may be elsewhere


def _name(name: str, values: dict[str, str]) -> str:
    """A test's name: with its parameters' values, in place of their braces or behind it."""
    replaced = substitute(name, values)
    if replaced != name or not values:
        return replaced
    return f"{name} ({_values(values)})"


def _values(values: dict[str, str]) -> str:
    """`level=1, size=4K`."""
    return ", ".join(f"{k}={v}" for k, v in values.items())


def _named_by_values(
    options: argparse.Namespace, commands: Sequence[str], sweeps: Sequence[dict[str, str]], shell: str | None
) -> bool:
    """True if the parameters' values alone are the names: for one command without a name that is a line of a shell, or
    long."""
    if options.name or len(commands) != 1 or not sweeps[0]:
        return False
    return shell is not None or max(len(substitute(commands[0], values)) for values in sweeps) > LONGEST_NAME


def shell_of(options: argparse.Namespace) -> str | None:
    """The command line of the shell that runs the commands, if one does."""
    if options.S not in (None, "none", "default"):
        return str(options.S)
    if options.S == "none" or not (options.S or options.shell):
        return None
    return shlex.quote(options.shell_program or "/bin/sh")


def _check_quoted(commands: Sequence[str]) -> None:
    """Raise UsageError where a command is an argument of the one before it: a number, or a directory."""
    for before, command in pairwise(commands):
        if _NUMBER.fullmatch(command) or (os.path.isdir(command) and not shutil.which(command)):
            line = shlex.join(["etude", "bench", shlex.join([*shlex.split(before), command])])
            raise UsageError(f"{command!r}: is no command; quote a command and its arguments as one: {line}")


def _check_plain(commands: Sequence[str], command_line: Sequence[str]) -> None:
    """Raise UsageError for shell syntax where there is no shell; it names the line to type."""
    for command in commands:
        if (found := shell_syntax(command)) == "\n":
            raise UsageError(
                f"{command!r}: a line break is shell syntax, and no shell runs it; add --shell, or write one line"
            )
        if found:
            words = [word for word in command_line[1:] if word != "-N"]
            instead = f"quote the {found} within the command"
            if found.endswith("="):
                instead = f"begin the command with env: env {found}…"
            raise UsageError(
                f"{command!r}: {found} is shell syntax, and no shell runs it; type: "
                f"{shlex.join(['etude', 'bench', '--shell', *words])} (or {instead})"
            )
