"""Windows that a workload reports while it runs: lines of JSON, appended to the file named by $ETUDE_WINDOWS.

Their members: docs/reference/formats.md, "Windows". A line is read once it is complete, so that a file can be followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from etude.codec import short
from etude.results.regular import open_regular

VARIABLE = "ETUDE_WINDOWS"
COUNTS = ("offered", "started", "completed", "failed", "outstanding", "waiting")
TIMES = ("mean_s", "waited_s", "lateness_p99_s")
SHORTEST_S, LONGEST_S = 1e-9, 1e12
"""Bounds of a window's length, s, if it is not 0; the second one of all times."""
_MAX_COUNT = 2**63 - 1
_MAX_ANSWERS = 1 << 48
"""Responses of a window, so that their sum over windows does not overflow."""
_MAX_BYTES = 64 << 20

Window = dict[str, Any]


class BadWindow(NamedTuple):
    """An invalid line, and why; lines count from 1."""

    line: int
    why: str


class NewWindows(NamedTuple):
    """Windows since the last call."""

    windows: list[Window]
    refused: list[BadWindow]

    @property
    def note(self) -> str | None:
        """Note on skipped lines, in one line."""
        if not self.refused:
            return None
        first, more = self.refused[0], len(self.refused) - 1
        others = f" (and {more} more line{'s' if more > 1 else ''})" if more else ""
        return f"line {first.line} of ${VARIABLE} was left out: {first.why}{others}"


class WindowFile:
    """The file of one worker in one trial; it does not exist before the workload has written to it."""

    def __init__(self, path: str) -> None:
        """Removes the file of an earlier trial."""
        self.path = path
        self._at = 0
        self._line = 0
        Path(path).unlink(missing_ok=True)

    def take(self, *, ended: bool = False) -> NewWindows:
        """The windows of lines that were completed since the last call; with `ended` also a last unterminated one."""
        lines = self._more().split(b"\n")
        rest = lines.pop()
        self._at += sum(len(line) + 1 for line in lines)
        if ended and rest:
            lines.append(rest)
            self._at += len(rest)
        taken = NewWindows([], [])
        for line in lines:
            self._line += 1
            try:
                taken.windows.append(parse_window(line))
            except ValueError as error:
                taken.refused.append(BadWindow(self._line, str(error)))
        return taken

    def end(self) -> NewWindows:
        """The rest, after the trial; the file is removed."""
        taken = self.take(ended=True)
        with suppress(OSError):
            if Path(self.path).stat().st_size > self._at:
                why = f"it begins behind the first {_MAX_BYTES >> 20} MiB, and no more are read"
                taken.refused.append(BadWindow(self._line + 1, why))
            Path(self.path).unlink()
        return taken

    def _more(self) -> bytes:
        try:
            with open_regular(self.path) as file:
                file.seek(self._at)
                return file.read(_MAX_BYTES - self._at)
        except OSError:
            return b""


def parse_window(line: bytes) -> Window:
    """The window of a line.

    Raises:
        ValueError: it is invalid; the reason in one line.
    """
    try:
        window = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is no JSON ({error})") from None
    return checked_window(window)


def checked_window(window: Any) -> Window:
    """The window of a JSON document.

    Raises:
        ValueError: it is invalid; the reason in one line.
    """
    if type(window) is not dict:
        raise ValueError("expected an object with duration_s and latency; docs/reference/formats.md, windows")
    duration = window.get("duration_s", 0.0)
    if type(duration) not in (int, float) or not (duration == 0 or SHORTEST_S <= duration <= LONGEST_S):
        raise ValueError(f"duration_s: expected seconds, not {short(duration)}")
    _check_answers(window, "")
    by = window.get("by", {})
    if type(by) is not dict:
        raise ValueError(f"by: expected an object, not {short(by)}")
    for name, answers in by.items():
        if type(answers) is not dict:
            raise ValueError(f"by: {name}: expected an object, not {short(answers)}")
        _check_answers(answers, f"by: {name}: ")
    return window


def _check_answers(answers: Mapping[str, Any], of: str) -> None:
    for name in COUNTS:
        count = answers.get(name, 0)
        if type(count) is not int or not 0 <= count <= _MAX_COUNT:
            raise ValueError(f"{of}{name}: expected a whole number, not {short(count)}")
    for name in TIMES:
        time = answers.get(name)
        if time is not None and (type(time) not in (int, float) or not 0 <= time <= LONGEST_S):
            raise ValueError(f"{of}{name}: expected seconds, not {short(time)}")
    latency = answers.get("latency")
    if latency is None:
        return
    if type(latency) is not str:
        raise ValueError(f"{of}latency: expected an HdrHistogram as base64 text, not {short(latency)}")

    from etude.results.histograms import BadHistogram, decode

    try:
        found = decode(latency)
    except BadHistogram as error:
        raise ValueError(f"{of}latency: {error}") from None
    if (count := sum(found.counts.tolist())) > _MAX_ANSWERS:
        raise ValueError(f"{of}latency: expected at most 2^48 responses, not {count}")
