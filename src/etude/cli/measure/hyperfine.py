"""hyperfine's spellings of the options of `etude bench`; for each that has no meaning here, what to type instead."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Sequence

from etude.errors import UsageError
from etude.experiment.sweep import Sweep, parse_list, parse_parameter

INSTEAD = {
    "--style": "set NO_COLOR=1 for no colours, or send standard error to a file for no live line",
    "--sort": "tests are listed in the order of the command line; put the baseline first",
    "--time-unit": "each figure has the unit that fits it; --json and --export csv are in seconds",
    "-u": "each figure has the unit that fits it; --json and --export csv are in seconds",
    "--export-asciidoc": "type --export markdown=FILE",
    "--export-orgmode": "type --export markdown=FILE",
    "--min-benchmarking-time": "type --min-trials N; --time SECONDS is the most that is measured",
    "--debug-mode": "type --trials 1 for a single look",
}
"""Options of hyperfine that are not taken."""
SHELLS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "csh", "tcsh", "none", "default"))
OUTPUTS = {
    "null": "programs write to /dev/null except in warm-up runs: leave it out",
    "pipe": "type --check-output each, by which programs write to a pipe in each trial",
    "inherit": "type --show-output",
}
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def add_sweeps(group: argparse._ArgumentGroup) -> None:
    """Further ways to write `-P`; all are collected in the order in which they are given."""
    group.add_argument(
        "-L",
        "--parameter-list",
        dest="parameter",
        nargs=2,
        action="append",
        metavar=("NAME", "VALUES"),
        help="the same as -P NAME=A,B,C; a comma in a value is written \\,",
    )
    group.add_argument(
        "--parameter-scan",
        dest="parameter",
        nargs=3,
        action="append",
        metavar=("NAME", "MIN", "MAX"),
        help="the same as -P NAME=MIN..MAX",
    )
    group.add_argument(
        "-D",
        "--parameter-step-size",
        dest="step",
        metavar="STEP",
        help="the step of --parameter-scan (default 1)",
    )


def add_exports(group: argparse._ArgumentGroup) -> None:
    """`--export-FORMAT FILE` for `--export FORMAT=FILE`."""
    for option, form in (("json", "hyperfine"), ("csv", "hyperfine-csv"), ("markdown", "markdown")):
        group.add_argument(
            f"--export-{option}",
            dest="export",
            type=f"{form}={{}}".format,
            action="append",
            metavar="FILE",
            help=f"the same as --export {form}=FILE",
        )


def sweeps_of(options: argparse.Namespace) -> list[Sweep]:
    """All parameters with their values, in the order in which they were given.

    Raises:
        UsageError: one is no list and no range, or -D has none to belong to.
    """
    scans = [given for given in options.parameter if len(given) == 3 and not isinstance(given, str)]
    if options.step is not None and not scans:
        raise UsageError(f"-D {options.step}: is the step of --parameter-scan NAME MIN MAX; give both")
    found = []
    for given in options.parameter:
        if isinstance(given, str):
            found.append(parse_parameter(given))
        elif len(given) == 2:
            found.append(parse_list(*given))
        else:
            name, low, high = given
            found.append(parse_parameter(f"{name}={low}..{high}+{options.step or 1}"))
    return found


def translated(words: Sequence[str]) -> list[str]:
    """The arguments with hyperfine's forms of `--shell`, `-P` and `--ignore-failure` in ours.

    Raises:
        UsageError: a form that means something else here; it names what to type.
    """
    found: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return [*found, *words[place:]]
        name, equals, value = word.partition("=")
        after = words[place + 1 : place + 4]
        if name == "--shell" and equals:
            found += {"none": ["-N"], "default": ["--shell"]}.get(value, ["-S", value])
        elif word == "--shell" and after and _is_shell(after[0]):
            raise UsageError(
                f"--shell {after[0]}: --shell takes no value, and {after[0]} would be a command; "
                f"type {shlex.join([f'--shell={after[0]}'])}"
            )
        elif name == "--ignore-failure" and equals:
            if value != "all-non-zero":
                raise UsageError(
                    f"{word}: exit statuses cannot be chosen; type --ignore-failure for all of them"
                )
            found.append(name)
        elif word == "-P" and _is_scan(after):
            found.append("--parameter-scan")
        else:
            found.append(word)
    return found


def check_output_option(output: str | None) -> None:
    """Raise UsageError where `--output` is one of hyperfine's places for what programs print."""
    if output in OUTPUTS:
        raise UsageError(
            f"--output {output}: names the results directory here; {OUTPUTS[output]} "
            f"(for a directory of that name, -o ./{output})"
        )


def _is_shell(word: str) -> bool:
    first = word.split(maxsplit=1)[:1]
    return bool(first) and os.path.basename(first[0]) in SHELLS


def _is_scan(words: Sequence[str]) -> bool:
    """`NAME MIN MAX`; ours has a `=`."""
    return len(words) == 3 and "=" not in words[0] and all(map(_NUMBER.fullmatch, words[1:]))
