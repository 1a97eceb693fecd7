"""Each verb's parser, with its examples and advice."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection
from importlib import import_module
from typing import Any

from etude.cli.examples import example_lines
from etude.cli.parser import OneLineParser
from etude.cli.verbs import EXIT_CODES, SUMMARIES, VERBS, overview
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
    parser.instead = getattr(verb_module(verb), "INSTEAD", {})
    parser.otherwise = getattr(verb_module(verb), "OTHERWISE", "")
    verb_module(verb).add_arguments(parser)
    return parser


def _description(verb: str) -> str:
    return (verb_module(verb).__doc__ or "").strip()


def verb_module(verb: str) -> Any:
    """The module of a verb: it has `add_arguments` and `run`."""
    return import_module(f"etude.cli.{re.sub('[ -]', '_', verb)}")


def others_given(options: argparse.Namespace, verb: str, keep: Collection[str]) -> list[str]:
    """Options and words of a verb that were given, as --help names them; `keep`: destinations that may be."""
    parser = verb_parser(verb)
    usual = vars(parser.parse_args([]))
    found: dict[str, str] = {}
    for action in parser._actions:
        name = next((option for option in action.option_strings if option.startswith("--")), None)
        name = name or next(iter(action.option_strings), str(action.metavar))
        may_be = action.dest in keep or action.dest not in usual
        if not may_be and getattr(options, action.dest) != usual[action.dest]:
            found.setdefault(action.dest, name)
    return list(found.values())
