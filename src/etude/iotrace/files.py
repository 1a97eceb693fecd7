"""The file of each call of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etude.iotrace.calls import CWD, NONE, SUBJECTS, Subject
from etude.iotrace.descriptors import CLOSED, History, Opened, history_of
from etude.iotrace.reader import Trace, Whole


@dataclass(frozen=True, eq=False)
class Files:
    """Arrays have shape (calls,)."""

    names: Sequence[str]
    """Paths as far as they are known; in brackets what is no file, or of which only the descriptor is known. The first
    is empty, and stands for none."""
    file: Whole
    """Place in `names` of what a call is about."""
    source: Whole
    """File that the call reads from, where that is another one; else `file`."""
    opening: Whole
    """Opening (open file description) of the call: copied descriptors share one; 0 if it is not known."""
    streams: NDArray[np.bool_]
    """True, by opening, if it has no offset: a pipe, a socket."""
    appends: NDArray[np.bool_]
    """True, by opening, if each write appends."""


def processes_of(trace: Trace) -> Whole:
    """The process of each call, shape (events,)."""
    threads = {each["thread"]: each["process"] for each in trace.meta if each.get("what") == "thread"}
    numbers, places = np.unique(trace.thread, return_inverse=True)
    by_place = np.array([threads.get(number, 0) for number in numbers.tolist()], np.int64)
    found: Whole = by_place[places]
    return found


def files_of(trace: Trace, processes: Whole) -> Files:
    """Follow descriptors and directories, and name what each call is about."""
    history = history_of(trace, processes)
    opened = history.opened
    subjects = [SUBJECTS.get(name, Subject()) for name in trace.names]
    by = {
        part: np.array([getattr(subject, part) for subject in subjects], np.int64)[trace.call]
        for part in ("descriptor", "directory", "path", "source")
    }
    opening, file = _behind(trace, history, processes, by["descriptor"])
    source = file.copy()
    from_other = by["source"] != NONE
    if from_other.any():
        source[from_other] = _behind(trace, history, processes, by["source"])[1][from_other]
    named = by["path"] != NONE
    _, file[named] = _by_path(trace, history, processes, by["directory"], by["path"], named)
    source[named] = file[named]
    return Files(
        opened.names, file, source, opening, np.array(opened.streams, bool), np.array(opened.appends, bool)
    )


def _behind(trace: Trace, history: History, processes: Whole, argument: Whole) -> tuple[Whole, Whole]:
    """Opening and file behind the descriptor in each call's argument of that number; 0 where it has none."""
    opening = np.zeros(trace.events, np.int64)
    file = np.zeros(trace.events, np.int64)
    descriptors = _argument(trace, argument)
    rows = np.flatnonzero((argument != NONE) & (descriptors >= 0))
    opening[rows] = history.at(processes[rows], descriptors[rows], trace.start_ns[rows])
    file[rows] = np.array(history.opened.files, np.int64)[opening[rows]]
    lost = rows[opening[rows] == CLOSED]
    for descriptor in np.unique(descriptors[lost]).tolist():
        file[lost[descriptors[lost] == descriptor]] = history.opened.name(f"(descriptor {descriptor})")
    return opening, file


def _by_path(
    trace: Trace, history: History, processes: Whole, directory: Whole, which: Whole, named: NDArray[np.bool_]
) -> tuple[Whole, Whole]:
    """Rows and files of the calls that name a path. Without one it is the directory's descriptor that is meant."""
    rows = np.flatnonzero(named)
    descriptors = _argument(trace, directory)[rows]
    descriptors[directory[rows] == NONE] = CWD
    codes = np.where(which[rows] == 1, trace.texts[1][rows], trace.texts[0][rows]).astype(np.int64)
    begins = history.at(processes[rows], descriptors, trace.start_ns[rows])
    pairs, inverse = np.unique((begins << 32) + codes, return_inverse=True)
    found = np.array(
        [_place(trace, history.opened, pair >> 32, pair & 0xFFFFFFFF) for pair in pairs.tolist()]
    )
    return rows, found.astype(np.int64)[inverse]


def _place(trace: Trace, opened: Opened, begins: int, code: int) -> int:
    if code == 0:
        return opened.files[begins]
    return opened.name(opened.path(begins, trace.text(code).decode("utf-8", "backslashreplace")))


def _argument(trace: Trace, which: Whole) -> Whole:
    """The argument of that number of each call; CLOSED where it is NONE."""
    found = np.zeros(trace.events, np.int64)
    for number in np.unique(which[which != NONE]).tolist():
        rows = which == number
        found[rows] = trace.arguments[number][rows]
    return found
