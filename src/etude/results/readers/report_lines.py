"""Text reports, read line by line: a table of patterns identifies the first line of a run and the values
of each line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from etude.errors import InputError
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import Unit, number_in

NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
"""A pattern of one number without a sign, as a group."""
_MAX_LINE_LENGTH = 2000


def plainly(unit: Unit, kind: str | None = None) -> Callable[[str], Quantity]:
    """Function that converts the text of a number in this unit to a quantity."""
    return lambda text: Quantity(number_in(text), unit, kind)


@dataclass(frozen=True)
class Report:
    """One program's report. Patterns match whole stripped lines.

    Each group of a line is a value, with the name and the function of its position; of repeated values the last
    counts.
    """

    program: str
    begins: str
    """The first line of a run."""
    needs: str
    """The metric that an incomplete or failed run lacks."""
    metrics: Mapping[str, tuple[tuple[str, Callable[[str], Quantity]], ...]]
    parameters: tuple[str, ...] = ()
    """Patterns whose named groups are parameters."""
    warnings: tuple[str, ...] = ()
    """Patterns of error messages."""
    numbered: Mapping[str, tuple[str, Callable[[str], Quantity]]] = field(default_factory=dict)
    """Patterns of two groups: replacement of {} in the metric's name, and the value."""

    def read(self, path: Path) -> Table:
        """One row per run. Raises InputError if the file holds no complete one."""
        rows = Rows(path)
        lines = rows.lines()
        run = _Run()
        begins, patterns = re.compile(self.begins), self._compiled()
        for line in map(str.strip, lines):
            if len(line) > _MAX_LINE_LENGTH:
                continue
            if match := begins.fullmatch(line):
                self._end(rows, run)
                run = _Run(dict(match.groupdict()))
            for pattern, take in patterns:
                if match := pattern.fullmatch(line):
                    take(run, match)
        self._end(rows, run)
        if not len(rows):
            raise InputError(f"{path}: holds no whole report of {self.program}")
        return rows.table()

    def _compiled(self) -> list[tuple[re.Pattern[str], Callable[[_Run, re.Match[str]], None]]]:
        found: list[tuple[re.Pattern[str], Callable[[_Run, re.Match[str]], None]]] = []
        for pattern, named in self.metrics.items():
            found.append((re.compile(pattern), _metrics(named)))
        for pattern, (name, quantity) in self.numbered.items():
            found.append((re.compile(pattern), _numbered(name, quantity)))
        found += [
            (re.compile(p), lambda run, m: run.parameters.update(m.groupdict())) for p in self.parameters
        ]
        found += [(re.compile(p), lambda run, m: run.warnings.append(m[0][:120])) for p in self.warnings]
        return found

    def _end(self, rows: Rows, run: _Run) -> None:
        if self.needs in run.found:
            rows.add(rows.test, run.found, parameters={k: v for k, v in run.parameters.items() if v})
            for text in run.warnings:
                rows.warn(text)
        elif run.found:
            rows.warn(f"a run without {self.needs} is left out: it was cut short, or failed")


@dataclass
class _Run:
    parameters: dict[str, str] = field(default_factory=dict)
    found: dict[str, Quantity] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def _metrics(
    named: tuple[tuple[str, Callable[[str], Quantity]], ...],
) -> Callable[[_Run, re.Match[str]], None]:
    def take(run: _Run, match: re.Match[str]) -> None:
        for text, (name, quantity) in zip(match.groups(), named, strict=True):
            if text is not None:
                run.found[name] = quantity(text)

    return take


def _numbered(name: str, quantity: Callable[[str], Quantity]) -> Callable[[_Run, re.Match[str]], None]:
    def take(run: _Run, match: re.Match[str]) -> None:
        run.found[name.format(match[1])] = quantity(match[2])

    return take
