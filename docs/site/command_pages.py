"""Pages of the command line's reference, a verb each: its own help, so that they say what the program says."""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from etude.cli.examples import example_lines
from etude.cli.verb_parsers import build_parser
from etude.cli.verbs import ENGINE_VERBS, EXIT_CODES, GROUPS
from etude.program import engine_path

WIDTH = "88"


def write_command_pages(directory: Path) -> None:
    """Write index.md and a page per verb; a page that says the same already is left as it is."""
    directory.mkdir(exist_ok=True)
    os.environ["COLUMNS"] = WIDTH
    parsers = dict(_parsers(build_parser()))
    pages = {"index": _index()}
    for verbs in GROUPS.values():
        for verb, summary in verbs.items():
            text = _engine_help(verb) if verb in ENGINE_VERBS else parsers[f"etude {verb}"].format_help()
            pages[_name(verb)] = _page(verb, summary, text)
    for name, text in pages.items():
        path = directory / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in directory.glob("*.md"):
        if path.stem not in pages:
            path.unlink()


def _name(verb: str) -> str:
    return f"etude-{verb.replace(' ', '-')}"


def _index() -> str:
    lines = ["# Commands", "", "Each verb with all its options, as `etude VERB --help` prints them.", ""]
    for group, verbs in GROUPS.items():
        lines += [f"## {group}", "", "| verb | what it does |", "| --- | --- |"]
        lines += [f"| [etude {verb}]({_name(verb)}.md) | {summary} |" for verb, summary in verbs.items()]
        lines.append("")
    names = "\n".join(_name(verb) for verbs in GROUPS.values() for verb in verbs)
    return "\n".join([*lines, f"```text\n{EXIT_CODES}```", "", f"```{{toctree}}\n:hidden:\n{names}\n```", ""])


def _page(verb: str, summary: str, text: str) -> str:
    examples = example_lines(verb)
    shown = "" if not examples or examples.strip() in text else f"\n```text\n{examples.strip()}\n```\n"
    return f"# etude {verb}\n\n{summary[:1].upper()}{summary[1:]}.\n\n```text\n{text.strip()}\n```\n{shown}"


def _parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield parser.prog, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _parsers(child)


def _engine_help(verb: str) -> str:
    done = subprocess.run([engine_path(), verb, "--help"], capture_output=True, text=True, check=True)
    return done.stdout
