"""The I/O of a program, recorded, and played again in time."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from etude import codec
from etude.api.call import public
from etude.api.result import PathText, Result, frame_of
from etude.codec import short
from etude.errors import EtudeError, InputError, MachineRefuses, UsageError
from etude.figures.data import Figure
from etude.figures.iotrace import figure_of
from etude.iotrace.document import document
from etude.iotrace.profile import Profile, profile_of
from etude.iotrace.reader import read_trace
from etude.osutil.commands import Done, run_to_end
from etude.present.section import Section
from etude.present.sections.profile import profile_blocks
from etude.present.sections.replay import replay_section
from etude.program import engine_path
from etude.results.engine_reports import ReplayReport

if TYPE_CHECKING:
    import polars

TOP = 10
"""Files, calls and processes that a text shows."""


@dataclass(frozen=True, repr=False)
class Recording(Result):
    """A recorded program: its calls, files and times."""

    path: Path
    profile: Profile
    exit_status: int = 0
    """Exit status of the program; minus the number of the signal that ended it."""

    @classmethod
    @public
    def read(cls, path: PathText, *, partial: bool = False) -> Recording:
        """A recording on disk; `partial`: also one that was cut short. Raises InputError: it cannot be read."""
        return cls(Path(path), profile_of(read_trace(Path(path), partial=partial)))

    def section(self) -> Section:
        """Calls, files, processes, and time over the run."""
        return Section(
            "recording", "Recording", tuple(profile_blocks(self.profile, TOP, figure=None, said=()))
        )

    def figures(self) -> dict[str, Figure]:
        """Bytes and time over the run."""
        return {"over-time": figure_of(self.profile)}

    def to_frame(self) -> polars.DataFrame:
        """One row per call: `call`, `count`, `bytes`, `errors`, `time_s`, `median_s`, `p99_s`, `longest_s`."""
        return _frame(self.profile, "calls")

    def files(self) -> polars.DataFrame:
        """One row per file, as in `etude profile --json`."""
        return _frame(self.profile, "files")

    def __repr__(self) -> str:
        return f"<Recording {self.path}: {self.profile.trace.events} calls in {self.profile.run_s:.3f} s>"


CALLS = {
    "call": str,
    **dict.fromkeys(("count", "bytes", "errors"), int),
    **dict.fromkeys(("time_s", "median_s", "p99_s", "longest_s"), float),
}
"""Columns of a table of calls."""


def _frame(profile: Profile, member: str) -> polars.DataFrame:
    found = document(profile)[member]
    rows = [{"call": name, **row} for name, row in found.items()] if isinstance(found, dict) else found
    plain = [{k: v for k, v in row.items() if not isinstance(v, dict | list)} for row in rows]
    return frame_of(plain, CALLS if member == "calls" else {})


@public
def record(command: str | Sequence[str], output: PathText, *, technique: str | None = None) -> Recording:
    """Run a program and record its I/O (`etude record`); its own output goes nowhere.

    command: a command line, split as by a shell, or its words. output: the trace, a file that is not there yet.
    technique: `--technique` of `etude record`.

    Raises:
        UsageError: options that do not fit; MachineRefuses: it cannot be recorded here, or `output` not be written;
        InputError: the program cannot be started.
    """
    _check_new(output)
    options = [] if technique is None else ["--technique", technique]
    done = _engine("record", "-q", *options, "-o", os.fspath(output), "--", *_words(command))
    if not Path(output).exists():
        raise _error("record", done)
    found = Recording.read(output, partial=True)
    return Recording(found.path, found.profile, done.status)


@public
def capture(command: str | Sequence[str], output: PathText) -> Path:
    """Run a program and record its I/O, ready for `replay` (`etude capture`). Returns the directory of the capture.

    Raises: same as `record`.
    """
    _check_new(output)
    done = _engine("capture", "-q", "-o", os.fspath(output), "--", *_words(command))
    if not Path(output).is_dir():
        raise _error("capture", done)
    return Path(output)


@dataclass(frozen=True, repr=False)
class Replay(Result):
    """A replay that has been played."""

    measurements: Mapping[str, Any]
    """The document of `etude replay --json` (docs/howto/replay.md): times in s, sizes in bytes."""
    faithful: bool | None
    """True if it was as the original by the limits of `etude replay --judge`; None for timing "none", which has no
    schedule to be judged by."""

    @property
    def run_s(self) -> float:
        """Duration of the replay, s."""
        return float(self.measurements["run_s"])

    @property
    def original_run_s(self) -> float:
        """Duration of the recorded run, s."""
        return float(self.measurements["original"]["run_s"])

    def section(self) -> Section:
        """Its verdict, both runs side by side, and what was not played."""
        report = codec.decoded(ReplayReport, dict(self.measurements), "replay")
        return replay_section({1: report}, "replay")

    def to_frame(self) -> polars.DataFrame:
        """One row per measurement that both runs have: `what`, `original`, `replay`, in s or bytes."""
        original = self.measurements["original"]
        names = [n for n in original if type(original[n]) in (int, float) and n in self.measurements]
        return frame_of(
            [
                {"what": n, "original": float(original[n]), "replay": float(self.measurements[n])}
                for n in names
            ],
            {"what": str, "original": float, "replay": float},
        )

    def __repr__(self) -> str:
        how = {True: "faithful", False: "not faithful", None: "not judged"}[self.faithful]
        return f"<Replay: {self.run_s:.3f} s, original {self.original_run_s:.3f} s, {how}>"


@public
def replay(
    captured: PathText,
    *,
    place: PathText | None = None,
    timing: Literal["gap", "absolute", "none"] = "gap",
    speed: codec.Positive = 1.0,
) -> Replay:
    """Play a capture again (`etude replay`).

    place: directory in which its files are made, and removed at the end (default: in the capture). timing: *gap*, as
    long after the call before as in the original; *absolute*, when the original made it; *none*, as soon as possible.
    speed: factor by which gaps are shortened.

    Raises:
        UsageError: options that do not fit; InputError: the capture is wrong; MachineRefuses: it cannot be played here.
    """
    options = ["--timing", timing, "--speed", repr(speed)]
    if place is not None:
        options += ["--in", os.fspath(place)]
    if timing != "none":
        options.append("--judge")
    done = _engine("replay", "-q", "--json", *options, os.fspath(captured))
    if done.status not in (0, 1) or not done.output:
        raise _error("replay", done)
    return Replay(json.loads(done.output), None if timing == "none" else done.status == 0)


def _words(command: str | Sequence[str]) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else list(map(os.fspath, command))
    except (TypeError, ValueError) as error:  # ValueError: a quotation that does not end
        raise UsageError(
            f"command {short(command)}: expected a command line, or its words: {error}"
        ) from None
    if not words:
        raise UsageError("nothing to run: expected a command")
    if any("\0" in word for word in words):
        raise UsageError(f"command {short(command)}: expected words without NUL")
    return words


def _check_new(output: PathText) -> None:
    if os.path.lexists(output):
        raise UsageError(f"{os.fspath(output)}: is there already; name another output")


def _engine(*words: str) -> Done:
    try:
        return run_to_end([engine_path(), *words])
    except OSError as error:
        raise MachineRefuses(f"the engine cannot be run: {error.strerror}") from None


def _error(function: str, done: Done) -> EtudeError:
    """Error of the Python interface for an exit status of the engine (docs/reference/exit-codes.md)."""
    kind = {2: UsageError, 3: InputError, 126: InputError, 127: InputError}.get(done.status, MachineRefuses)
    return kind(done.why.removeprefix(f"etude {function}: "))
