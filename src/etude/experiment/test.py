"""A test: one named benchmark in one configuration."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from glob import glob
from typing import Any

from etude.codec import short
from etude.errors import UsageError
from etude.masking import Mask
from etude.results.model import CACHE_WAYS, METRICS


@dataclass(frozen=True)
class MetricPattern:
    """A number in the program's own output: the first group of `regex`, or all of its match."""

    name: str
    regex: str
    unit: str = "1"
    join: str = ""
    """Join of workers: one of `results.trial_join.JOINS`; empty: by the unit."""


@dataclass(frozen=True)
class Test:
    """A command and its hooks: setup and clean-up once, prepare and conclude around each trial.

    `command` is an argument list. The hooks are lines for /bin/sh: they are not measured. In the Auto-pilot
    paper (section 3.1) they are PRESETUP, POSTCLEANUP, SETUP and CLEANUP.
    """

    __test__ = False  # not a class of pytest

    name: str
    command: tuple[str, ...]
    setup: str | None = None
    prepare: str | None = None
    conclude: str | None = None
    cleanup: str | None = None
    environment: Mapping[str, str | None] = field(default_factory=dict)
    directory: str | None = None
    workers: int = 1
    cpus: tuple[int, ...] | None = None
    timeout_s: float | None = None
    inner: int | str = 1
    metrics: tuple[MetricPattern, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    role: str = "test"
    cool: str = "none"
    """The state of the caches before each trial, one of `CACHE_WAYS`."""
    data: tuple[str, ...] = ()
    """Its data set: files and directories."""
    stdin: str | None = None
    """Path of its standard input; None: empty."""
    groups: tuple[str, ...] = ()
    """Directories of the cgroups that its command enters."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise UsageError(f"etude.Test: name {short(self.name)}: expected a text")
        if isinstance(self.command, str) or not all(isinstance(word, str) for word in self.command):
            raise UsageError(
                f"etude.Test: command {short(self.command)}: expected a list of words, such as ('ls', '-l')"
            )
        if not self.command or not self.command[0]:
            raise UsageError(f"etude.Test: test {self.name!r}: the command is empty; give a program to run")
        if self.workers < 1:
            raise UsageError(f"test {self.name!r}: {self.workers} workers; at least 1 is needed")
        if self.timeout_s is not None and self.timeout_s <= 0:
            raise UsageError(f"test {self.name!r}: a timeout of {self.timeout_s} s; it must be above 0")
        if self.inner != "auto" and (not isinstance(self.inner, int) or self.inner < 1):
            raise UsageError(f"test {self.name!r}: inner {self.inner!r}; expected a number from 1, or auto")
        if self.cpus is not None and len(self.cpus) < self.workers:
            on = ",".join(map(str, self.cpus))
            raise UsageError(
                f"test {self.name!r}: {self.workers} workers on CPUs {on}; each needs one of its own"
            )
        if self.inner != 1 and self.workers > 1:
            raise UsageError(f"test {self.name!r}: inner repetitions need a single worker")
        self._check_cool()
        self._check_metrics()
        self._check_text()

    def _check_cool(self) -> None:
        if self.cool not in CACHE_WAYS:
            raise UsageError(
                f"test {self.name!r}: cache {self.cool!r}; expected one of {', '.join(CACHE_WAYS)}"
            )
        if self.cool.startswith("remount") and not self.data:
            raise UsageError(f"test {self.name!r}: --cool {self.cool} of which file system? Name --data")
        if self.cool not in ("none", "warm") and self.inner != 1:
            raise UsageError(f"test {self.name!r}: of inner repetitions only the first would be cold")

    def _check_metrics(self) -> None:
        names = [pattern.name for pattern in self.metrics]
        for name in names:
            if name in METRICS or names.count(name) > 1:
                raise UsageError(f"metric {name}: there is one of that name already; choose another")

    def _check_text(self) -> None:
        """Refuse text that is not UTF-8: neither the engine nor the results, which are JSON, could hold it."""
        for word in (self.name, *self.command):
            if any("\ud800" <= character <= "\udfff" for character in word):
                raise UsageError(f"{word!r} is not UTF-8; run it from a script with a plain name")
            if "\0" in word:
                raise UsageError(f"{short(word)} holds a zero byte; no program can be given one")


def make_test(command: str, *, name: str | None = None, shell: str | None = None, **options: Any) -> Test:
    """A test from a command line, split by the shell's rules, or passed to `shell`, itself a command line.

    Its name is the command without possible secrets. Raises UsageError: unclosed quotes, an empty command, or a command
    that needs a shell and has none.
    """
    name = name or Mask().text(command)
    if shell is not None:
        return Test(name, (*shell_words(shell), "-c", command), **options)
    if found := shell_syntax(command):
        named = "a line break" if found == "\n" else found
        raise UsageError(
            f"command {command!r}: {named} is shell syntax; run it by a shell (--shell, in Python "
            'shell="/bin/sh"), or quote it within the command to pass it on as it is'
        )
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"command {command!r}: {error}; quote it as a shell would need it") from None
    if not words or not words[0]:
        raise UsageError(f"test {name!r}: the command is empty; give a program to run")
    return Test(name, words, **options)


def shell_words(shell: str) -> tuple[str, ...]:
    """The words of a shell's command line, such as `bash --norc`. Raises UsageError: it is invalid."""
    try:
        words = tuple(shlex.split(shell))
    except ValueError as error:
        raise UsageError(f"shell {shell!r}: {error}") from None
    if not words:
        raise UsageError(f"shell {shell!r}: expected a program, such as bash or 'bash --norc'")
    return words


def to_plan(test: Test) -> dict[str, Any]:
    """The test as plain data for experiment.json, without unused members that older versions did not know."""
    document = asdict(test)
    if test.stdin is None:
        del document["stdin"]
    if not test.groups:
        del document["groups"]
    return document


_EXPANSION = re.compile(r"\$[\w{(@*#?$!'\"-]")
_IN_QUOTES = re.compile(r"\$[\w{(@*#?$!-]")
_ASSIGNMENT = re.compile(r"\s*[A-Za-z_]\w*=")
_OPERATORS = ("&&", "||", ">>", "<<", "|", ">", "<", ";", "&", "*", "`", "\n")


_LONGEST = 4096
"""Maximum length of a path."""
_BRACES = re.compile(r"""\{[^\s{}'"\\]*(?:,|\.\.)[^\s{}'"\\]*\}""")
"""A list of words, such as `{a,b}` and `{1..9}`; not `{}`, and not JSON, whose names have quotes."""


def shell_syntax(command: str) -> str | None:
    """The first part of a command line that only a shell understands, such as `|`; None if there is none.

    Searched outside of quotes, `$` and backquotes also within double quotes: operators, patterns, expansions,
    `~` at the start of a word, an assignment in front, and the end of a line before the last one.
    """
    command = command.strip()
    assignment = _ASSIGNMENT.match(command)
    if assignment:
        return assignment[0].strip()
    quote, place = "", 0
    while place < len(command):
        char = command[place]
        if char == "\\" and quote != "'":
            if command[place + 1 : place + 2] == "\n":
                return "\n"
            place += 2
            continue
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif quote != "'" and (found := _found(command, place, quoted=bool(quote))):
            return found
        place += 1
    return None


def _found(command: str, place: int, *, quoted: bool) -> str | None:
    if expansion := (_IN_QUOTES if quoted else _EXPANSION).match(command, place):
        return re.match(r"\$(\w+|.)", expansion[0] + command[expansion.end() :], re.DOTALL)[0]  # type: ignore[index]
    if quoted:
        return "`" if command[place] == "`" else None
    if command[place] in "~#" and (place == 0 or command[place - 1].isspace()):
        return command[place]
    if braces := _BRACES.match(command, place):
        return braces[0]
    if command[place] in "?[" and _matches_files(command, place):
        return command[place]
    return next((each for each in _OPERATORS if command.startswith(each, place)), None)


def _matches_files(command: str, place: int) -> bool:
    """True if the word there is a pattern that matches existing files; only for its first `?` or `[`."""
    start = max(command.rfind(space, 0, place) for space in " \t\n") + 1
    word = command[start : start + _LONGEST + 1].split(maxsplit=1)[0]
    if len(word) > _LONGEST or {"?", "["} & set(word[: place - start]):
        return False
    return not {"'", '"', "\\"} & set(word) and bool(glob(word))
