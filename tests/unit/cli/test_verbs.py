"""The verbs: their groups, their examples, and help for each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection
from typing import Any

import pytest

from etude.cli.examples import EXAMPLES, example_lines
from etude.cli.getstats import main as getstats
from etude.cli.graphit import main as graphit
from etude.cli.verb_parsers import of_verb, verb_parser
from etude.cli.verbs import ENGINE, EXIT_CODES, SUMMARIES, VERBS, group_lines
from etude.errors import EtudeError
from etude.peak.harnesses.readers import TOOLS
from etude.peak.policies import POLICIES
from support.places import entry_points_of

TAKEN = [
    ("peak", "--policy", POLICIES),
    ("peak", "--read", TOOLS),
    ("run", "--probe", entry_points_of("etude.probes")),
]

Etude = Callable[..., int]
Captured = pytest.CaptureFixture[str]


def test_each_verb_has_a_line_of_at_most_70_characters() -> None:
    lines = group_lines().splitlines()
    assert max(map(len, lines)) <= 70
    for verb in SUMMARIES:
        assert sum(line.startswith(f"  {verb}  ") for line in lines) == 1


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb_begins_with_two_examples_and_repeats_no_exit_codes(
    etude: Etude, capsys: Captured, verb: str
) -> None:
    assert etude("help", *verb.split()) == 0
    said = capsys.readouterr().out
    assert etude(*verb.split(), "--help") == 0
    assert capsys.readouterr().out == said
    assert said.startswith("examples:\n")
    for line, _ in EXAMPLES[verb]:
        assert f"  {line}\n" in said.partition("usage:")[0]
    assert EXIT_CODES not in said


@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("program", [getstats, graphit, "", *VERBS, *sorted(ENGINE)])
def test_help_is_no_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, etude: Etude, program: Any, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert (etude(*program.split(), "--help") if isinstance(program, str) else program(["--help"])) == 0
    said = capsys.readouterr().out
    examples = example_lines(program) if program and isinstance(program, str) else ""
    wide = [line for line in said.removeprefix(examples).splitlines() if len(line) > width]
    # A list of choices is one word.
    assert [line for line in wide if len(line.split()) > 2 or len(line) > 80] == []


def test_each_verb_has_examples() -> None:
    assert list(EXAMPLES) == list(SUMMARIES)


CALLS = [(verb, line) for verb, lines in EXAMPLES.items() for line, _ in lines]


@pytest.mark.parametrize(("verb", "line"), CALLS, ids=[line for _, line in CALLS])
def test_the_options_of_an_example_are_those_of_its_verb(verb: str, line: str) -> None:
    words = shlex.split(line.removeprefix('eval "$(').removesuffix(')"').partition(" > ")[0])
    assert words[:1] + words[1 : 1 + len(verb.split())] == ["etude", *verb.split()]
    if verb not in ENGINE:
        verb_parser(verb).parse_intermixed_args(words[1 + len(verb.split()) :])


def test_help_of_what_is_no_verb_is_an_error(etude: Etude) -> None:
    assert etude("help", "nosuch") == 2


def test_every_option_that_is_refused_with_advice_is_none_of_its_verb() -> None:
    for verb in VERBS:
        options = verb_parser(verb)._option_string_actions
        assert not set(of_verb(verb, "INSTEAD", {})) & set(options)
    assert of_verb("bench", "INSTEAD")


def test_the_table_of_exit_codes_has_each_class_of_errors() -> None:
    codes = {error.exit_code for error in EtudeError.__subclasses__() if isinstance(error.exit_code, int)}
    listed = {int(line.split()[0]) for line in EXIT_CODES.splitlines()[1:] if line.split()[0].isdigit()}
    assert codes <= listed


@pytest.mark.parametrize(("verb", "option", "names"), TAKEN, ids=[option for _, option, _ in TAKEN])
def test_the_help_of_an_option_names_all_that_it_takes(
    verb: str, option: str, names: Collection[str]
) -> None:
    text = next(a.help or "" for a in verb_parser(verb)._actions if option in a.option_strings)
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []
