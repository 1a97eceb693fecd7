"""Each verb's parser, with its examples and advice."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection
from importlib import import_module
from types import ModuleType
from typing import Any

from etude.cli.examples import example_lines
from etude.cli.parser import OneLineParser
from etude.cli.verbs import EXIT_CODES, FOLDERS, SUMMARIES, VERBS, overview
from etude.version import __version__


def verb_parser(verb: str) -> argparse.ArgumentParser:
    """The parser of one verb."""
    return _filled(OneLineParser(prog=f"etude {verb}", description=_description(verb)), verb)


def build_parser() -> argparse.ArgumentParser:
    """One parser with every verb below it, for the manual pages and completions."""
    parser = OneLineParser(prog="etude", description=overview().split("\n", 1)[0], epilog=EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"etude {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, text in SUMMARIES.items():
        if verb in VERBS:
            _filled(verbs.add_parser(verb, help=text, description=_description(verb)), verb)
        else:
            verbs.add_parser(verb, help=text)
    return parser


def _filled(parser: OneLineParser, verb: str) -> OneLineParser:
    """The parser with the verb's options, examples, and what to type for options that it does not have."""
    parser.examples = example_lines(verb)
    parser.instead = of_verb(verb, "INSTEAD", {})
    parser.otherwise = of_verb(verb, "OTHERWISE", "")
    of_verb(verb, "options")(parser)
    return parser


def _description(verb: str) -> str:
    return str(getattr(_options_of(verb), identifier(verb).upper())).strip()


def identifier(verb: str) -> str:
    """The verb in names: `io_sweep`."""
    return re.sub("[ -]", "_", verb)


def verb_runner(verb: str) -> Callable[[argparse.Namespace], int]:
    """The function `run` of a verb; of `io sweep`, which has two words, `run_sweep` of `io`."""
    first, _, second = verb.partition(" ")
    module = import_module(f"etude.cli.{FOLDERS[verb]}.{identifier(first)}")
    runner: Callable[[argparse.Namespace], int] = getattr(module, f"run_{second}" if second else "run")
    return runner


def of_verb(verb: str, what: str, default: Any = None) -> Any:
    """The verb's member of that name in its options, such as `bench_options` or `BENCH_INSTEAD`."""
    name = identifier(verb).upper() if what.isupper() else identifier(verb)
    return getattr(_options_of(verb), f"{name}_{what}", default)


def _options_of(verb: str) -> ModuleType:
    return import_module(f"etude.cli.{FOLDERS[verb]}.options")


def others_given(options: argparse.Namespace, keep: Collection[str]) -> list[str]:
    """Options and words of a verb's command line, as --help names them, also those that give what is usual; `keep`:
    destinations that may be."""
    verb, *words = options.command_line
    verb = verb.removeprefix("etude ")
    parser = verb_parser(verb)
    for action in parser._actions:
        action.default = argparse.SUPPRESS  # so that what was not given is not there
    given = vars(parser.parse_intermixed_args(of_verb(verb, "translated", list)(words)))
    found: dict[str, str] = {}
    for action in parser._actions:
        name = next((option for option in action.option_strings if option.startswith("--")), None)
        name = name or next(iter(action.option_strings), str(action.metavar))
        if action.dest in given and action.dest not in keep:
            found.setdefault(action.dest, name)
    return list(found.values())
