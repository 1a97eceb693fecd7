"""The options of `getstats`, read without a numerical library, since a script's stop rule reads them, too."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from etude.analysis.transforms import TRANSFORMS, Transform, checked, usage_lines, with_variable
from etude.errors import UsageError
from etude.osutil.trust import open_user_file
from etude.stats.columns import metric_name
from etude.units.parsing import number_in

JUDGED = ("elapsed", "user", "system")
"""Default columns of a predicate: measured ones, not derived ones."""

USAGE = """\
usage: getstats [OPTION …] [--] FILE …

Statistics of results: the tables of Auto-pilot's Getstats. A FILE is a results file in Auto-pilot's format
(.res), a results directory, a table with commas or tabs whose first line holds names, or the output of
another program that Étude reads (docs/howto/reading-other-tools.md).

  --predicate EXPR   ends with 0 if EXPR holds for every judged column of every file, else with 1
  --columns A,B      columns that are judged (elapsed,user,system unless named), or that the table shows
  --confidence N     of the intervals, in percent (95)
  --dump             the rows, and nothing else: as they were read, or as transforms leave them
  --csv              commas in place of blanks, and all digits
  --errorbars KIND   what LOW and HIGH are: interval (of the mean), minmax, or deviation (one on either side)
  --twosamplet       compares each file with the first one by Student's t test with one pooled deviation
  --ftest, --levene  the same, but Welch's t test where that test finds the deviations different
  --from-summary     each FILE is a table of name, count, mean, sdev, min, max in place of values
  --verbose          with --predicate: also says why
  --help, --version

Transforms, in the order given (docs/howto/getstats.md). They follow the joining of commands and threads into a row an
epoch; behind --shift they come before it.

{transforms}
  --shift            the next transform is done before the joining
  --ifexist COLUMN   the next transform is done only where there is such a column
  --load FILE        takes the options of a file, in lines as they please; # begins a comment
  --concat           makes one relation of all files; their columns must agree
  --nostdtransforms  no joining, warnings or tables: prints the rows that the transforms leave
  --set NAME=VALUE   sets a variable of expressions; zscore-thresh (2), regress-thresh (1, in percent), precision
                     (3), confidencelevel (95) and warn (1) have a meaning of their own
  --setexpr NAME=EXPR, --unset NAME: a variable from those that were set before; removes one

EXPR may use $name, $mean, $median, $delta (margin of error of the interval of the mean), $count, $stddev, $min, $max,
$slope (per trial), $sdev and $hw (deviation and margin of error in percent of the mean), $column (the metric's own
name) and $confidencelevel; in transforms of rows every column, as $epoch, $thread, $command, $elapsed, $user, $sys;
and $file, $fileno, $filecount. Numbers and "texts"; + - * / % **; < > <= >= == != for numbers, eq ne lt gt le ge
and =~ /…/ for texts; && || ! and or not; abs int sqrt log exp min max.
"""


ERROR_BARS = ("interval", "minmax", "deviation")


@dataclass(frozen=True)
class Settings:
    """Settings that `--set` changes, beside the user's own variables."""

    high_z: float = 2.0
    """z-score above which a value is reported in a warning."""
    slope: float | None = 1.0
    """Slope per epoch, in percent of the mean, above which a warning is given; None: never."""
    precision: int = 3
    """Decimals of a cell."""
    warn: bool = True
    confidence: float = 0.95
    error_bars: str = ERROR_BARS[0]
    """Meaning of the columns LOW and HIGH: one of `ERROR_BARS`."""

    def with_set(self, variables: Mapping[str, float | str]) -> Settings:
        """Settings with these variables, if they have a meaning. Raises UsageError for an invalid value."""
        found = self
        for name, value in variables.items():
            if name in _SETTINGS:
                member, lowest, highest = _SETTINGS[name]
                if isinstance(value, str) or not lowest <= value <= highest:
                    raise UsageError(
                        f"--set {name}={value}: expected a number from {lowest:g} to {highest:g}"
                    )
                made: Any = {"precision": int(value), "warn": bool(value), "confidence": value / 100.0}
                found = replace(found, **{member: made.get(member, value)})
        return found


_SETTINGS = {
    "zscore-thresh": ("high_z", 0.0, 1e9),
    "regress-thresh": ("slope", 0.0, 1e9),
    "precision": ("precision", 0.0, 15.0),
    "warn": ("warn", 0.0, 1.0),
    "confidencelevel": ("confidence", 1.0, 99.999999),
}


@dataclass(frozen=True)
class GetstatsOptions:
    """Options of one call of `getstats`."""

    predicate: str | None = None
    columns: tuple[str, ...] | None = None
    """Étude's names of metrics; None: the default ones."""
    confidence: float = 0.95
    """A fraction."""
    dump: bool = False
    csv: bool = False
    verbose: bool = False
    help: bool = False
    version: bool = False
    files: tuple[str, ...] = ()
    transforms: tuple[Transform, ...] = ()
    raw: bool = False
    """True if the dump shows the rows before they are joined: `--shift --dump`."""
    concat: bool = False
    standard: bool = True
    """True if the default transforms run."""
    twosamplet: bool = False
    choice: Literal["F", "Levene"] | None = None
    """Test of variances that chooses the t test."""
    from_summary: bool = False
    errorbars: str = ERROR_BARS[0]
    variables: Mapping[str, float | str] = field(default_factory=dict)
    """Variables set with `--set`."""

    @property
    def judged(self) -> tuple[str, ...]:
        """The metrics that a predicate must hold for."""
        return JUDGED if self.columns is None else self.columns

    @property
    def relational(self) -> bool:
        """True if files are treated as relations that transforms change."""
        return bool(self.transforms) or self.concat or not self.standard

    @property
    def settings(self) -> Settings:
        """Thresholds and other settings. Raises UsageError for an invalid value."""
        return Settings(confidence=self.confidence, error_bars=self.errorbars).with_set(self.variables)


def parse_getstats(words: Sequence[str]) -> GetstatsOptions:
    """The options of a call, from the words after the program's name.

    Raises:
        UsageError: an option that is unknown, repeated, or lacks its value; an invalid value; a file of options that
            cannot be read.
    """
    rest, files = list(words), list[str]()
    members: dict[str, Any] = {}
    steps, variables, shifted, if_exists = list[Transform](), dict[str, float | str](), False, ""
    loaded: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "--":
            files += rest
            break
        if not word.startswith("-") or word == "-":
            files.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        name = _SPELLINGS.get(name, name)
        if not word.startswith("--") or name not in _KNOWN:
            raise UsageError(f"unknown option {word}; see getstats --help (a file of that name: after --)")
        if name in _FLAGS and not (shifted and name == "csv"):
            _once(name, members, *([value] if equals else []))
            members |= {"raw": True} if shifted and name == "dump" else {}
            shifted = False
            continue
        if name == "shift":
            shifted = True
            continue
        if name == "load":
            (path,) = _values(name, 1, [value] if equals else [], rest)
            if path in loaded:
                raise UsageError(f"--load {path}: stands twice, or within itself")
            loaded.append(path)
            rest[:0] = _words_of(path)
            continue
        takes = len(TRANSFORMS[name].metavars) if name in TRANSFORMS else 1
        values = _values(name, takes, [value] if equals else [], rest)
        if name in _VARIABLES:
            variables = with_variable(name, values[0], variables)
        elif name == "ifexist":
            if_exists = values[0]
        elif name in TRANSFORMS:
            steps.append(checked(Transform(name, tuple(values), shifted, if_exists)))
            shifted, if_exists = False, ""
        elif name in members:
            raise UsageError(f"--{name} stands twice")
        else:
            members[name] = _WITH_VALUE[name](values[0])
    if shifted or if_exists:
        raise UsageError(f"--{'shift' if shifted else 'ifexist'} lacks the transform that it applies to")
    return _made(members, tuple(steps), variables, tuple(files))


def _words_of(path: str) -> list[str]:
    try:
        with open(open_user_file(path), encoding="utf-8") as file:
            return shlex.split(file.read(), comments=True)
    except OSError as error:
        raise UsageError(f"--load {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"--load {path}: byte {error.start} is not UTF-8; expected a text of options"
        ) from None
    except ValueError as error:
        raise UsageError(f"--load {path}: {error}; expected options as on a command line") from None


def _once(name: str, members: dict[str, Any], *values: str) -> None:
    if name in members:
        raise UsageError(f"--{name} stands twice")
    if values:
        raise UsageError(f"--{name} takes no value")
    members[name] = True


def _values(name: str, takes: int, given: list[str], rest: list[str]) -> list[str]:
    if given and not takes:
        raise UsageError(f"--{name} takes no value")
    while len(given) < takes:
        if not rest:
            raise UsageError(f"--{name} lacks its value" if takes == 1 else f"--{name} needs {takes} values")
        given.append(rest.pop(0))
    return given


def _made(
    members: dict[str, Any],
    steps: tuple[Transform, ...],
    variables: dict[str, float | str],
    files: tuple[str, ...],
) -> GetstatsOptions:
    standard = not members.pop("nostdtransforms", False)
    by_f, by_levene = members.pop("ftest", False), members.pop("levene", False)
    if by_f and by_levene:
        raise UsageError("--ftest and --levene are two ways to choose; take one of them")
    if by_f or by_levene:
        members |= {"choice": "F" if by_f else "Levene", "twosamplet": True}
    made = GetstatsOptions(
        **{name.replace("-", "_"): value for name, value in members.items()},
        files=files,
        transforms=steps,
        standard=standard,
        variables=variables,
    )
    if made.from_summary and (made.relational or made.dump or made.predicate is not None):
        raise UsageError("--from-summary has no rows: it goes with no transform, --dump or --predicate")
    return replace(made, confidence=made.settings.confidence)


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(metric_name(name.strip()) for name in text.split(",")))
    if not all(names):
        raise UsageError(f"--columns {text!r}: expected names with commas in between, such as elapsed,user")
    return names


def _confidence(text: str) -> float:
    percent = number_in(text) or 0.0
    if not 1.0 < percent < 100.0:
        raise UsageError(f"--confidence {text}: expected percent between 1 and 100, such as 95")
    return percent / 100.0


def _error_bars(text: str) -> str:
    if text not in ERROR_BARS:
        raise UsageError(f"--errorbars {text}: expected one of {', '.join(ERROR_BARS)}")
    return text


_FLAGS = (
    "dump",
    "csv",
    "verbose",
    "help",
    "version",
    "concat",
    "nostdtransforms",
    "twosamplet",
    "ftest",
    "levene",
    "from-summary",
)
_WITH_VALUE: Mapping[str, Callable[[str], object]] = {
    "predicate": str,
    "columns": _columns,
    "confidence": _confidence,
    "errorbars": _error_bars,
}
_STEPS = tuple(name for name in TRANSFORMS if name != "dump")
_VARIABLES = ("set", "setexpr", "unset")
_KNOWN = (*_FLAGS, *_WITH_VALUE, *_STEPS, *_VARIABLES, "shift", "ifexist", "load")
_SPELLINGS = {"no-stdtransforms": "nostdtransforms"}

USAGE = USAGE.replace("{transforms}\n", usage_lines([name for name in _STEPS if name != "csv"]))
