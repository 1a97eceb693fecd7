"""Whatever a message advises can be typed: its verb, and its options, are known to the real parsers."""

from __future__ import annotations

import ast
import itertools
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from etude.analysis.getstats.options import USAGE as GETSTATS_HELP
from etude.cli.main import ENGINE_VERBS, VERBS
from etude.cli.verb_parsers import verb_parser
from etude.present.sentences.extension import Extension
from support.places import ROOT

SOURCES, ENGINE = ROOT / "src" / "etude", ROOT / "engine"
VALUE = "VALUE"
"""Stands for what a message fills in."""
OTHERS = {
    *("--benchmark-json", "--benchmark-save", "--benchmark-save-data"),  # pytest-benchmark
    *("--adapter", "--record-samples", "--max-tries", "--parents"),  # bencher, asv, pgbench, cp
    "--output-format",  # fio
    *("--user", "--scope"),  # systemd-run
    *("--unshallow", "--refetch", "--no-filter", "--first-parent"),  # git fetch, git bisect
    *("--bind", "--rbind"),  # mount
}
"""Options of other programs that messages name."""


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a module that is no documentation of its code: the line, and the text."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(p.value) if isinstance(p, ast.Constant) else VALUE for p in node.values),
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation | inside
        ):
            yield node.lineno, node.value


RUST_TEXT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^\\'])'|r(?P<marks>\#*)"(?P<raw>.*?)"(?P=marks)|"(?P<text>(?:\\.|[^"\\])*)\"""",
    re.DOTALL,
)
"""A comment, a character, or a text in Rust; a text is in one of two groups."""


def engine_messages(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a file in Rust but those of its tests: the line, and the text."""
    source = re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", path.read_text(encoding="utf-8"))[0]
    for match in RUST_TEXT.finditer(source):
        text = match["raw"] if match["raw"] is not None else match["text"]
        if text is not None:
            said = re.sub(r"\\\n\s*", "", text).replace("\\n", "\n").replace('\\"', '"')
            yield source.count("\n", 0, match.start()) + 1, re.sub(r"\{[\w:.?]*\}", VALUE, said)


@cache
def everything() -> list[tuple[str, str]]:
    """Every message of both languages with where it stands."""
    engine = [path for path in ENGINE.glob("**/src/**/*.rs") if not path.stem.endswith("tests")]
    return [
        (f"{path.relative_to(ROOT)}:{line}", text)
        for paths, read in ((SOURCES.rglob("*.py"), messages), (engine, engine_messages))
        for path in sorted(paths)
        for line, text in read(path)
    ]


def test_messages_of_both_languages_are_found() -> None:
    files = Counter(where.partition("/")[0] for where, _ in everything())
    assert min(files["src"], files["engine"]) > 1000
    named = Counter(where.partition("/")[0] for where, _, _ in mentions())
    assert min(named["src"], named["engine"]) > 25


QUOTES = str.maketrans("", "", "'`")
MENTION = re.compile(r"(?<![\w/.-])etude ([a-z][a-z-]*(?![:a-z-])(?: [^\s;,()]+)*)")
"""A command line, or the beginning of a sentence about one, up to the next sign. `etude VERB: ` begins an error."""
OPTION = re.compile(r"(?<![\w=-])(--[a-z][a-z-]+[a-z])(?![\w-])")


@cache
def mentions() -> list[tuple[str, str, tuple[str, ...]]]:
    """Each command that a message names: where, its verb, and the words behind it."""
    found = []
    for where, text in everything():
        for match in MENTION.finditer(text):
            words = re.split(r":(?= |$)", match[1])[0].translate(QUOTES).split()
            verb = next(
                (v for n in (2, 1) if (v := " ".join(words[:n])) in VERBS or v in ENGINE_VERBS), words[0]
            )
            found.append((where, verb, tuple(words[len(verb.split()) :])))
    return found


@cache
def options_of(verb: str) -> frozenset[str]:
    return frozenset(verb_parser(verb)._option_string_actions)


def parses(verb: str, words: tuple[str, ...]) -> bool:
    """Whether the words, up to the first one of plain prose, and as many values as are needed are a command line."""
    first = next((action for action in verb_parser(verb)._get_positional_actions() if action.choices), None)
    if first is not None and words and words[0].islower() and words[0] not in (first.choices or ()):
        return False
    line = list(words)
    while line:
        for value, values in itertools.product((VALUE, "7"), range(4)):
            filled = [word.replace(VALUE, value) for word in line] + [value] * values
            try:
                verb_parser(verb).parse_intermixed_args(filled)
            except SystemExit as ended:
                if ended.code:
                    continue
            return True
        if line[-1].startswith("-"):
            return False
        line.pop()
    return True


def test_every_verb_that_a_message_names_is_there() -> None:
    verbs = {*VERBS, *ENGINE_VERBS}
    assert len(mentions()) > 50
    assert [(where, verb) for where, verb, _ in mentions() if verb not in verbs and verb != VALUE] == []


def test_every_command_that_a_message_names_can_be_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for where, verb, words in mentions():
        if verb in VERBS and not parses(verb, words):
            wrong.append((where, verb, words))
    capsys.readouterr()
    assert wrong == []


def test_every_option_that_a_message_names_is_one_of_some_verb() -> None:
    helps = [path.read_text() for path in (ROOT / "tests" / "golden" / "verbs").glob("*/*help.txt")]
    known = {option for verb in VERBS for option in options_of(verb)} | OTHERS
    known |= {option for text in (GETSTATS_HELP, *helps) for option in OPTION.findall(text)}
    sentences = [(where, text) for where, text in everything() if " " in text]  # a single word is an argument
    unknown = [(where, o) for where, text in sentences for o in OPTION.findall(text) if o not in known]
    assert unknown == []


@pytest.mark.parametrize("verb", ["bench", "run", "io sweep", "bisect"])
def test_an_interrupted_experiment_can_be_resumed_as_its_last_line_says(verb: str) -> None:
    """The line is put together where an experiment ends: `etude VERB --resume DIR`."""
    assert verb_parser(verb).parse_intermixed_args(["--resume", "r"]).resume == "r"


@pytest.mark.parametrize(
    "extension",
    [Extension("r", max_trials=90, time_s=60), Extension("a b", trials=9), Extension("r", precision=0.002)],
    ids=["limits", "trials", "precision"],
)
def test_the_command_that_extends_an_experiment_is_one(extension: Extension) -> None:
    program, verb, *words = shlex.split(extension.command)
    options = verb_parser(verb).parse_intermixed_args(words)
    assert program == "etude"
    assert options.resume == extension.directory
    limits = (options.trials, options.max_trials, options.time, options.precision)
    assert limits == (extension.trials, extension.max_trials, extension.time_s, extension.precision)
