"""`etude completion`: completions for bash, zsh or fish."""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from etude.cli.verbs import ENGINE, GROUPS, SUMMARIES
from etude.program import engine_path


@dataclass(frozen=True)
class Option:
    """One option of a verb: all its spellings, and its values where there are only some."""

    names: tuple[str, ...]
    help: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verb:
    """A verb: what may stand directly behind it, and its options."""

    words: tuple[str, ...]
    options: tuple[Option, ...]


def _summary(verb: str) -> str:
    """The line of a verb; of the first of two words its group's name."""
    of_group = (
        group.lower() for group, verbs in GROUPS.items() if any(v.startswith(f"{verb} ") for v in verbs)
    )
    return SUMMARIES.get(verb) or next(of_group, verb)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    verbs = {verb: _verb(verb) for verb in SUMMARIES}
    writer = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell]
    print(writer(verbs), end="")
    return 0


def _verb(verb: str) -> Verb:
    below = tuple(name.split()[1] for name in SUMMARIES if name.startswith(f"{verb} "))
    if verb in ENGINE:
        return Verb(below, _options_of_engine(verb))
    from etude.cli.verb_parsers import verb_parser

    actions = [action for action in verb_parser(verb)._actions if action.help != argparse.SUPPRESS]
    first = next((action for action in actions if not action.option_strings), None)
    words = tuple(map(str, first.choices or ())) if first is not None else ()
    return Verb(
        (*below, *words),
        tuple(
            Option(
                tuple(a.option_strings), (a.help or "").replace("%%", "%"), tuple(map(str, a.choices or ()))
            )
            for a in actions
            if a.option_strings
        ),
    )


def _options_of_engine(verb: str) -> tuple[Option, ...]:
    said = subprocess.run([engine_path(), verb, "--help"], capture_output=True, text=True, check=True).stdout
    return tuple(Option((name,)) for name in dict.fromkeys(re.findall(r"--[a-z][a-z-]+", said)))


def bash(verbs: dict[str, Verb]) -> str:
    """A function for `complete -F`."""
    first = " ".join([*dict.fromkeys(verb.split()[0] for verb in verbs), "help"])
    values = [
        (f"{verb} {name}", option.values)
        for verb, found in verbs.items()
        for option in found.options
        for name in option.names
        if option.values
    ]
    options = {
        verb: [name for option in found.options for name in option.names] for verb, found in verbs.items()
    }
    return f"""\
_etude() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD - 1]}}" verb="${{COMP_WORDS[1]}}" words=""
  case "$verb ${{COMP_WORDS[2]}}" in
    {" | ".join(f'"{verb}"' for verb in verbs if " " in verb)}) verb="$verb ${{COMP_WORDS[2]}}" ;;
  esac
  if ((COMP_CWORD == 1)); then
    words="{first}"
  elif [[ $word == -* ]]; then
    case "$verb" in
{_cases(options.items())}    esac
  elif ((COMP_CWORD == 2)); then
    case "${{COMP_WORDS[1]}}" in
{_cases([*((verb, found.words) for verb, found in verbs.items()), ("help", first.split())])}    esac
  else
    case "$verb $before" in
{_cases(values)}    esac
  fi
  # shellcheck disable=SC2207
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _etude etude
"""


def _cases(choices: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Branches of a `case`: a pattern, and the words that it offers."""
    return "".join(
        f'      "{pattern}") words="{" ".join(words)}" ;;\n' for pattern, words in choices if words
    )


def zsh(verbs: dict[str, Verb]) -> str:
    """The completion of bash, which zsh understands where its own completions are set up."""
    return f"""\
(( $+functions[compdef] )) || {{ autoload -U compinit && compinit -i }}
autoload -U +X bashcompinit && bashcompinit
{bash(verbs)}"""


def fish(verbs: dict[str, Verb]) -> str:
    """A line for each verb and option."""
    lines = [
        "function __etude_verb",
        "    string match -q -- \"$argv *\" (string join -- ' ' (commandline -opc)[2..] '')",
        "end",
    ]
    start = "complete -c etude"
    for verb in dict.fromkeys(verb.split()[0] for verb in verbs):
        lines.append(f"{start} -n __fish_use_subcommand -f -a {verb} -d {_quoted(_summary(verb))}")
    for verb, found in verbs.items():
        here = f"{start} -n '__etude_verb {verb}'"
        if found.words:
            lines.append(f"{here} -a '{' '.join(found.words)}'")
        for option in found.options:
            spelt = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
            text = f" -d {_quoted(option.help)}" if option.help else ""
            chosen = f" -x -a '{' '.join(option.values)}'" if option.values else ""
            lines.append(f"{here} {' '.join(spelt)}{text}{chosen}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
