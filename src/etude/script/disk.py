"""AGE, FILL and PRECONDITION: their lines (docs/howto/disk-state.md); and the file system of a test."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from etude.machine.snapshot.disks import file_system, mounted
from etude.script.directive_words import ArgumentError, Word, expected_error, split_words

_FLAG = frozenset({"yes", "no"})
_VALUE = frozenset[str]()
_OPTIONS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "AGE": {
        **dict.fromkeys(("to", "times", "fragments", "seed", "peak", "piece", "streams", "seconds"), _VALUE),
        "allocated": _FLAG,
    },
    "FILL": {"to": _VALUE, "leave": _VALUE, "written": _FLAG},
    "PRECONDITION": {
        **dict.fromkeys(("size", "passes", "write", "round", "window", "range", "slope", "seconds"), _VALUE),
        **dict.fromkeys(("bytes", "seed"), _VALUE),
        "pattern": frozenset({"sequential", "random"}),
        "trim": _FLAG,
        "force": _FLAG,
    },
}
"""Options of each directive, those of the engine's command of the same name; the values that one accepts,
any if empty."""
_AGAIN = frozenset({"AGE", "FILL"})
"""Directives whose earlier files are removed first."""


@dataclass(frozen=True, slots=True)
class DiskStep:
    """`[ONCE] PATH [NAME=VALUE…]`. `once`: before the first trial only."""

    once: bool
    path: str
    options: tuple[tuple[str, str], ...]


def parse_disk(directive: str, text: str) -> DiskStep:
    """Parse the text of a directive.

    Raises:
        ArgumentError: there is no path, or an invalid option.
    """
    words = split_words(text)
    once = bool(words) and words[0].text == "ONCE"
    words = words[once:]
    end = Word("", len(text.rstrip()) + 1)
    if not words or not words[0].text:
        raise expected_error("[ONCE] PATH [NAME=VALUE …]", words[0] if words else end)
    options = tuple(_option(directive, word) for word in words[1:])
    names = [name for name, _ in options]
    for name, word in zip(names, words[1:], strict=True):
        if names.count(name) > 1:
            raise ArgumentError(f"{name} stands twice", word.column)
    if directive == "FILL" and len({"to", "leave"} & set(names)) != 1:
        raise expected_error("either to=SHARE or leave=BYTES behind the directory", end)
    return DiskStep(once, words[0].text, options)


def _option(directive: str, word: Word) -> tuple[str, str]:
    known = _OPTIONS[directive]
    name, equals, value = word.text.partition("=")
    if name not in known:
        close = get_close_matches(name[:40].lower(), known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise expected_error(f"NAME=VALUE, a NAME of {', '.join(known)}", word, hint)
    at = Word(value, word.column + len(name) + len(equals))
    if not value:
        raise expected_error(f"a value of {name}", at)
    if known[name] and value not in known[name]:
        raise expected_error(f"{name}={' or '.join(sorted(known[name], reverse=True))}", at)
    return name, value


def engine_line(directive: str, step: DiskStep) -> str:
    """The line for /bin/sh that runs it and writes a block to $APLOG."""
    words = ["etude-engine", directive.lower(), "--block"]
    if directive in _AGAIN:
        words.append("--again")
    for name, value in step.options:
        if _OPTIONS[directive][name] is not _FLAG:
            words.append(f"--{name}={value}")
        elif value == "yes":
            words.append(f"--{name}")
    return f'{shlex.join([*words, "--", step.path])} >>"$APLOG"'


def file_system_under_test(
    environment: Mapping[str, str], before: Collection[str], root: Path = Path("/")
) -> dict[str, Any] | None:
    """The file system, like `directory` of a snapshot; None if TESTDIR is not set and nothing was mounted.

    `environment`: of the EXEC that is about to run. `before`: the mount points at the start of the experiment. The last
    of several new mounts counts.
    """
    directory = environment.get("TESTDIR")
    if not directory:
        new = [point for point in mounted(root) if point not in before]
        directory = new[-1] if new else None
    return file_system(root, directory) if directory else None
