"""Writes the manual pages, one a verb, from the command line's parser: they say what `--help` says."""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from argparse_manpage.manpage import Manpage

# What the generator itself writes: these alone at most, those with an argument.
REQUEST = re.compile(r"\.(TP|SH|UE|nf|fi|RE)$|\.(TH|SH|SS|B|UR|RS) ")


def write_pages(
    parser: argparse.ArgumentParser, version: str, directory: Path, more: Mapping[str, str] | None = None
) -> list[Path]:
    """Writes etude.1, etude-VERB.1 … into `directory`, and removes pages of verbs that are no more.

    `more`: texts of further pages by name, of verbs that the parser does not know.
    """
    directory.mkdir(parents=True, exist_ok=True)
    summary = (parser.description or parser.prog).strip().splitlines()[0].rstrip(".")
    summary = summary.removeprefix(f"Étude {version}: ")
    pages = pages_of(parser, summary, version) | dict(more or {})
    for old in directory.glob(f"{parser.prog}*.1"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        (directory / f"{name}.1").write_text(text, encoding="utf-8")
    return [directory / f"{name}.1" for name in pages]


def pages_of(parser: argparse.ArgumentParser, summary: str, version: str) -> dict[str, str]:
    """Name and text of the parser's own page and of each verb below it."""
    pages: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for verb, child in action.choices.items():
                if verb in summaries and summaries[verb] != argparse.SUPPRESS:
                    pages |= pages_of(child, summaries[verb], version)
            action.metavar = action.metavar or "COMMAND"
            action.choices.clear()  # a page lists its verbs, and leaves the rest to their own pages
    return {parser.prog.replace(" ", "-"): page(parser, summary, version)} | pages


def page(parser: argparse.ArgumentParser, summary: str, version: str) -> str:
    command = parser.prog
    parser.prog = command.replace(" ", "-")
    parser.usage = parser.usage or parser.format_usage().removeprefix("usage: ").replace(
        parser.prog, command, 1
    )
    data = {"project_name": "Étude", "version": version, "manual_title": "Étude", "description": summary}
    manual = Manpage(parser, _data=data)
    if examples := getattr(parser, "examples", ""):
        manual.add_section("examples", "=", example_section(examples))
    manual.date = ""  # a page changes when the command line does, not with every day that it is made on
    return without_stray_requests(str(manual)).replace(".SH COMMENTS\n", ".SH NOTES\n")


def example_section(examples: str) -> str:
    """The lines of a parser's examples, as they stand, without their heading."""
    return f".nf\n{escaped(examples.partition(chr(10))[2].rstrip())}\n.fi"


def escaped(text: str) -> str:
    """A text that the formatter prints as it is."""
    return text.replace("\\", "\\e").replace("-", "\\-")


def help_of(verb: str) -> str:
    """What `etude-engine VERB --help` prints, a program with options of its own."""
    from etude.program import engine_path

    done = subprocess.run([engine_path(), verb, "--help"], capture_output=True, text=True, check=True)
    return done.stdout


def text_page(name: str, summary: str, text: str, version: str, examples: str = "") -> str:
    """The page of a program whose help is a text as it stands, not a parser's."""
    body = escaped(text.strip("\n"))
    end = f".SH EXAMPLES\n{example_section(examples)}\n" if examples else ""
    head = f'.TH {name.upper()} "1" "" "Étude {version}" "Étude"\n.SH NAME\n{name} \\- {summary}\n'
    return without_stray_requests(f"{head}.SH SYNOPSIS\n.nf\n{body}\n.fi\n{end}")


def without_stray_requests(text: str) -> str:
    """Text lines that begin with a dot or quote would be taken for requests to the formatter."""
    lines = [
        rf"\&{line}" if line.startswith((".", "'")) and not REQUEST.match(line) else line
        for line in text.split("\n")
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    from etude.analysis.getstats.options import USAGE
    from etude.cli.examples import example_lines
    from etude.cli.graphit import USAGE as GRAPHIT
    from etude.cli.verb_parsers import build_parser
    from etude.cli.verbs import ENGINE_VERBS

    os.environ["COLUMNS"] = "100"  # the same pages, whatever terminal they are made on
    directory, release = Path(sys.argv[1]), metadata.version("etude")
    benchmarks = {
        f"etude-{verb}": text_page(f"etude-{verb}", summary, help_of(verb), release, example_lines(verb))
        for verb, summary in ENGINE_VERBS.items()
    }
    parser = build_parser()
    parser.examples = example_lines("etude")
    paths = write_pages(parser, release, directory, benchmarks)
    texts = {
        "getstats": ("the tables of Auto-pilot's Getstats", USAGE),
        "graphit": ("the graphs of Auto-pilot's Graphit", GRAPHIT),
    }
    for name, (summary, text) in texts.items():
        paths.append(directory / f"{name}.1")
        paths[-1].write_text(text_page(name, summary, text, release, example_lines(name)), encoding="utf-8")
    for path in paths:
        print(path)
