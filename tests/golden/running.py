"""One call of a program on inputs of the corpus: what it printed, how it ended, and what it wrote, as one text."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path

import pytest

import etude
from etude import __version__
from etude.cli import getstats, graphit
from etude.cli.main import ENGINE_VERBS, VERBS, main
from etude.program import engine_path
from golden.corpus import lay_out, stored
from support.places import ROOT

WIDTH = 100
SOURCES = str(Path(etude.__file__).parents[2])
"""Where Étude lies, with the scripts that come with it."""
ENVIRONMENT = {
    "COLUMNS": str(WIDTH),
    "LINES": "24",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "HOME": "/dev/null/home",  # nobody can make that
    "ETUDE_RESUME": "/dev/null/resume",
    "MPLCONFIGDIR": str(ROOT / "build" / "matplotlib"),  # its list of fonts takes seconds to make
}
ABSENT = ("FORCE_COLOR", "ETUDE_STORE", "PYTHONIOENCODING", "PYTHONUTF8", "APLIB", "LANGUAGE")
TEXTS = (".txt", ".md", ".tex", ".json", ".dat", ".csv", ".script", ".report", ".xml", ".res", ".gnuplot")
"""Files that a call writes of which the text is held, too; of others, such as figures, the name."""
PROGRAMS = {"etude": main, "getstats": getstats.main, "graphit": graphit.main}


class Screen(io.TextIOWrapper):
    """A terminal of 100 columns that obeys nothing, or a pipe."""

    def __init__(self, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def text(self) -> str:
        self.flush()
        kept = self.buffer
        assert isinstance(kept, io.BytesIO)
        return kept.getvalue().decode()


@contextlib.contextmanager
def settled(patch: pytest.MonkeyPatch, place: Path) -> Iterator[None]:
    """The same surroundings on every machine, with `place` as the working directory."""
    for name, value in ENVIRONMENT.items():
        patch.setenv(name, value)
    for name in ABSENT:
        patch.delenv(name, raising=False)
    patch.setattr("matplotlib.figure.Figure.savefig", lambda self, file, **_: None)
    patch.chdir(place)
    time.tzset()
    try:
        yield
    finally:
        patch.undo()
        time.tzset()


def called(line: str, place: Path) -> str:
    """Run a line in a directory into which the inputs that it names are laid; all that came of it."""
    words = shlex.split(line)
    for name in stored():
        if any(name in word or ("*" in word and fnmatch(name, word)) for word in words):
            lay_out(name, place)
    before = {name: path.read_bytes() for name, path in files(place).items()}
    code, out, err = run(words)
    parts = [f"$ {line}", f"(exit code {code})"]
    for what, text in (("standard output", out), ("standard error", err)):
        parts += [f"--- {what}", usual(text, place)] if text else []
    for name, path in files(place).items():
        if before.get(name) != path.read_bytes():
            parts += [f"--- written: {name}", *written(path, place)]
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def run(words: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, standard output and error; programs of Python in this process, the engine's in one of its own."""
    program, *arguments = words
    verbs = {" ".join(arguments[:count]) for count in (1, 2)}
    if program == "etude-engine" or (program == "etude" and verbs & {*ENGINE_VERBS} and not verbs & {*VERBS}):
        done = subprocess.run(words, executable=engine_path(), capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr
    # Errors name paths, whose lengths differ between machines: wrapped lines would, too.
    out, err = Screen(terminal=True), Screen(terminal=False)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = PROGRAMS[program](arguments)
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return code, out.text(), err.text()


def files(place: Path) -> dict[str, Path]:
    """All files below a directory, by name."""
    return {str(path.relative_to(place)): path for path in sorted(place.rglob("*")) if path.is_file()}


def written(path: Path, place: Path) -> list[str]:
    """What a file holds that a call wrote, as far as that is text."""
    if path.suffix == ".html":
        return [usual(text_of_page(path.read_text()), place)]
    return [usual(path.read_text(), place)] if path.suffix in TEXTS else []


class _Page(HTMLParser):
    """The words of a page, without its scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.silent += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self.silent and data.strip():
            self.words.append(" ".join(data.split()))


def text_of_page(html: str) -> str:
    """What of a page is read."""
    page = _Page()
    page.feed(html)
    return "\n".join(page.words)


LONG = re.compile(r"(?<![\w.:-])(-?)(\d+)\.(\d+)(e[+-]?\d+)?(?![\w.:])")
MADE = re.compile(r"Made \d{4}-\d\d-\d\d \d\d:\d\d UTC")


def usual(text: str, place: Path) -> str:
    """A text without what differs between machines and days: paths, the version, the last digits of numbers."""
    text = text.replace(str(place.resolve()), "…").replace(str(place), "…")
    text = text.replace(engine_path(), "etude-engine").replace(SOURCES, "…")
    text = re.sub(
        rf"(?i)(étude\)?|etude(?:-engine|_version)?)([ /:v\"]*){re.escape(__version__)}", r"\1\2VERSION", text
    )
    return LONG.sub(rounded, MADE.sub("Made TODAY", text))


def rounded(match: re.Match[str]) -> str:
    """Of a number with more than 12 digits the first 10."""
    digits = (match[2] + match[3]).lstrip("0")
    return f"{float(match[0]):.10g}" if len(digits) > 12 else match[0]
