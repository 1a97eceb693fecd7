"""GNU time: the default of two lines, `-v`, and `-p` (also the shell's `time -p`); runs may be appended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from etude.errors import InputError
from etude.results.readers.source import read_lines
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import KIBIBYTE, ONE, PERCENT, SECOND, Unit, number_in

NAME = "gnu-time"

_FIRST = re.compile(
    r"(?<![0-9.])(?P<user>[0-9.]+)user (?P<system>[0-9.]+)system (?P<elapsed>[0-9:.]+)elapsed (?P<cpu>[0-9?]+)%CPU "
    r"\([0-9]+avgtext\+[0-9]+avgdata (?P<peak>[0-9]+)maxresident\)k"
)
_SECOND = re.compile(
    r"(?P<blocks_in>[0-9]+)inputs\+(?P<blocks_out>[0-9]+)outputs "
    r"\((?P<major>[0-9]+)major\+(?P<minor>[0-9]+)minor\)pagefaults (?P<swaps>[0-9]+)swaps"
)
_POSIX = re.compile(r"(?P<name>real|user|sys)[ \t]+(?:(?P<minutes>[0-9]+)m)?(?P<seconds>[0-9]+[.,]?[0-9]*)s?")
_VERBOSE = re.compile(r"\t(?P<name>[A-Z][^:\t]*(?: \(h:mm:ss or m:ss\))?): (?P<value>.*)")
_ENDED = re.compile(
    r"Command (?P<how>exited with non-zero status|terminated by signal|stopped by signal) (?P<n>[0-9]{1,6})"
)

_FIELDS: Mapping[str, tuple[str, Unit]] = {
    "User time (seconds)": ("user", SECOND),
    "System time (seconds)": ("system", SECOND),
    "Percent of CPU this job got": ("cpu", PERCENT),
    "Elapsed (wall clock) time (h:mm:ss or m:ss)": ("elapsed", SECOND),
    "Maximum resident set size (kbytes)": ("peak_memory", KIBIBYTE),
    "Major (requiring I/O) page faults": ("major_faults", ONE),
    "Minor (reclaiming a frame) page faults": ("minor_faults", ONE),
    "Voluntary context switches": ("voluntary_switches", ONE),
    "Involuntary context switches": ("involuntary_switches", ONE),
    "Swaps": ("swaps", ONE),
    "File system inputs": ("blocks_in", ONE),
    "File system outputs": ("blocks_out", ONE),
    "Socket messages sent": ("messages_sent", ONE),
    "Socket messages received": ("messages_received", ONE),
    "Signals delivered": ("signals", ONE),
}
_SHORT = {"peak": "peak_memory", "major": "major_faults", "minor": "minor_faults"}
_UNITS = dict(_FIELDS.values())


def detect(path: Path, head: bytes) -> bool:
    if b"maxresident)k" in head and b"elapsed " in head:
        return True
    if b"\tCommand being timed: " in head and b"Elapsed (wall clock)" in head:
        return True
    text = head.decode("utf-8", "replace")
    return all(re.search(rf"(?m)^{name}[ \t]+[0-9m.,]+s?\r?$", text) for name in ("real", "user", "sys"))


def read(path: Path) -> Table:
    reading = _Reading(Rows(path))
    lines, cut = read_lines(path)
    for line in lines:
        reading.take(line)
    reading.end(cut)
    if not len(reading.rows):
        raise InputError(f"{path}: holds no whole record of GNU time (default, -v or -p)")
    return reading.rows.table()


@dataclass
class _Reading:
    """The record being read, and the end of its command, which precedes it."""

    rows: Rows
    found: dict[str, Quantity] = field(default_factory=dict)
    command: str | None = None
    status: int | None = None

    def take(self, line: str) -> None:
        ended = _ENDED.search(line)
        if ended is not None:
            self.end()
            self.status = int(ended["n"]) + (0 if ended["how"].startswith("exited") else 128)
            return
        if not (self._default(line) or self._posix(line)):
            self._verbose(line)

    def _default(self, line: str) -> bool:
        first, second = _FIRST.search(line), _SECOND.fullmatch(line.strip())
        if first is not None:
            self._leave_out()
            self.found = _quantities(first.groupdict())
        elif second is not None and "cpu" in self.found and self.command is None:
            self.found |= _quantities(second.groupdict())
            self._add(0 if self.status is None else self.status)
        return first is not None or second is not None

    def _posix(self, line: str) -> bool:
        match = _POSIX.fullmatch(line.strip())
        if match is None:
            return False
        name = {"real": "elapsed", "sys": "system"}.get(match["name"], match["name"])
        if name in self.found:
            self._leave_out()
        seconds = number_in(match["seconds"].replace(",", "."))
        minutes = number_in(match["minutes"] or "0")
        if seconds is not None and minutes is not None:
            self.found[name] = Quantity(60 * minutes + seconds, SECOND)
        if set(self.found) == {"elapsed", "user", "system"}:
            self._add(self.status)
        return True

    def _verbose(self, line: str) -> None:
        match = _VERBOSE.fullmatch(line)
        if match is None:
            return
        name, value = match.groups()
        if name == "Command being timed":
            self._leave_out()
            self.command = value[1:-1] if value[:1] == value[-1:] == '"' else value
        elif name == "Exit status" and self.command is not None:
            exited = int(value) if re.fullmatch("[0-9]{1,6}", value) else None
            if exited is not None and "elapsed" in self.found:
                self._add(self.status or exited)
            else:
                self.end()
        elif name in _FIELDS and self.command is not None:
            metric, unit = _FIELDS[name]
            self.found[metric] = Quantity(_number(metric, value), unit)

    def _add(self, status: int | None) -> None:
        test = self.command if self.command else self.rows.test
        kept = status in (0, None)
        if not kept:
            self.rows.warn(f"{test}: a run ended with status {status} and is not kept")
        self.rows.add(test, self.found, command=self.command, status=status, kept=kept)
        self.found, self.command, self.status = {}, None, None

    def end(self, cut: bool = False) -> None:
        """End the record; an incomplete one is left out. `cut`: a torn line follows."""
        if not self._leave_out() and cut:
            self.rows.warn("a last line that was cut short is left out")
        self.status = None

    def _leave_out(self) -> bool:
        there = bool(self.found) or self.command is not None
        if there:
            self.rows.warn("a record that was cut short is left out")
        self.found, self.command = {}, None
        return there


def _quantities(groups: Mapping[str, str]) -> dict[str, Quantity]:
    named = {_SHORT.get(name, name): text for name, text in groups.items()}
    return {
        name: Quantity(_number(name, text), _UNITS[name]) for name, text in named.items() if "?" not in text
    }


def _number(metric: str, text: str) -> float | None:
    if metric != "elapsed":
        return number_in(text.rstrip("%"))
    parts = [number_in(part) for part in text.split(":")]
    if not 1 <= len(parts) <= 3 or None in parts:
        return None
    return sum(float(part * 60**power) for power, part in enumerate(reversed(parts)) if part is not None)
