"""The options of `getstats`, read without any library of numbers: a script's stop rule reads them, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from etude.errors import UsageError
from etude.stats.columns import metric_name

JUDGED = ("elapsed", "user", "system")
"""What a predicate is judged on unless columns are named: what is measured, not what is derived from it."""

USAGE = """\
usage: getstats [OPTION …] [--] FILE …

Statistics of results: the tables of Auto-pilot's Getstats. A FILE is a results file in Auto-pilot's format
(.res), a results directory, or a table with commas or tabs whose first line holds names.

  --predicate EXPR   ends with 0 if EXPR holds for every judged column of every file, else with 1
  --columns A,B      columns that are judged (elapsed,user,system unless named), or that the table shows
  --confidence N     of the intervals, in percent (95)
  --dump             the rows as they were read, and nothing else
  --csv              commas in place of blanks, and all digits
  --verbose          with --predicate: also says why
  --help, --version

EXPR may use $name, $mean, $median, $delta (half width of the interval of the mean), $count, $stddev, $min, $max,
$slope (per trial), $sdev and $hw (deviation and half width in percent of the mean), $column (the metric's own
name) and $confidencelevel; numbers and "texts"; + - * / % **; < > <= >= == != for numbers, eq ne lt gt le ge and
=~ /…/ for texts; && || ! and or not; abs int sqrt log exp min max.
"""


@dataclass(frozen=True)
class GetstatsOptions:
    """What one call of `getstats` asks for."""

    predicate: str | None = None
    columns: tuple[str, ...] | None = None
    """Names of metrics as ours are; None: the usual ones."""
    confidence: float = 0.95
    """A fraction."""
    dump: bool = False
    csv: bool = False
    verbose: bool = False
    help: bool = False
    version: bool = False
    files: tuple[str, ...] = ()

    @property
    def judged(self) -> tuple[str, ...]:
        """The metrics that a predicate must hold for."""
        return JUDGED if self.columns is None else self.columns


def parse_getstats(words: Sequence[str]) -> GetstatsOptions:
    """The options of a call, from the words after the program's name.

    Raises:
        UsageError: an option that is unknown, stands twice, or lacks its value; a value that cannot be meant.
    """
    rest, files = list(words), list[str]()
    members: dict[str, Any] = {}
    while rest:
        word = rest.pop(0)
        if word == "--":
            files += rest
            break
        if not word.startswith("-") or word == "-":
            files.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        if not word.startswith("--") or name not in (*_FLAGS, *_WITH_VALUE):
            raise UsageError(f"unknown option {word}; see getstats --help (a file of that name: after --)")
        if name in members:
            raise UsageError(f"--{name} stands twice")
        if name in _FLAGS:
            members[name] = True
            if equals:
                raise UsageError(f"--{name} takes no value")
            continue
        if not equals and not rest:
            raise UsageError(f"--{name} lacks its value")
        members[name] = _WITH_VALUE[name](value if equals else rest.pop(0))
    return GetstatsOptions(**members, files=tuple(files))


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(metric_name(name.strip()) for name in text.split(",")))
    if not all(names):
        raise UsageError(f"--columns {text!r}: expected names with commas in between, such as elapsed,user")
    return names


def _confidence(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = 0.0
    if not 1.0 < percent < 100.0:
        raise UsageError(f"--confidence {text}: expected percent between 1 and 100, such as 95")
    return percent / 100.0


_FLAGS = ("dump", "csv", "verbose", "help", "version")
_WITH_VALUE: Mapping[str, Callable[[str], object]] = {
    "predicate": str,
    "columns": _columns,
    "confidence": _confidence,
}
