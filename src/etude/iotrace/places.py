"""Whether a file was read and written one byte after the other, or here and there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from etude.iotrace.calls import IN_ORDER, PLACED, WRITES
from etude.iotrace.files import Files
from etude.iotrace.read import Trace, Whole

Flags = NDArray[np.bool_]


def sequential(trace: Trace, files: Files) -> tuple[Flags, Flags]:
    """Of each call whether it is judged, and whether it is sequential; shapes (events,).

    Judged are `transfers`. One is sequential if it begins where the transfer before it by the same opening ended, the
    first where the file begins; an appending write always is.
    """
    rows, begins, ends = transfers(trace, files)
    judged = np.zeros(trace.events, bool)
    judged[rows] = True
    openings = files.opening[rows]
    first = np.ones(rows.size, bool)
    first[1:] = openings[1:] != openings[:-1]
    expected = np.zeros(rows.size, np.int64)
    expected[1:] = ends[:-1]
    expected[first] = 0
    found = np.zeros(trace.events, bool)
    found[rows] = begins == expected
    codes = [code for code, name in enumerate(trace.names) if name in WRITES]
    found |= judged & files.appends[files.opening] & np.isin(trace.call, codes)
    return judged, found


def transfers(trace: Trace, files: Files) -> tuple[Whole, Whole, Whole]:
    """Calls of the read and write families that moved at least one byte by a known descriptor of no pipe and no socket:
    their rows, by opening and time, and at which bytes of the file they began and ended.

    An appending write is placed as if the file had been empty.
    """
    codes = {name: code for code, name in enumerate(trace.names)}

    def among(names: tuple[str, ...]) -> Flags:
        found: Flags = np.isin(trace.call, [codes[name] for name in names if name in codes])
        return found

    placed = among(PLACED) & (trace.arguments[3] >= 0)
    ordered = among(IN_ORDER) | (among(PLACED) & ~placed)
    known = (files.opening > 0) & ~files.streams[files.opening]
    judged = known & (placed | ordered) & (trace.result > 0)
    seeks = known & (trace.call == codes.get("lseek", 0)) & (trace.result >= 0)
    rows = np.flatnonzero(judged | seeks)
    rows = rows[np.lexsort((trace.start_ns[rows], files.opening[rows]))]
    begins, ends = _places(trace, files.opening[rows], rows, placed, ordered, seeks)
    moves = judged[rows]
    return rows[moves], begins[moves], ends[moves]


def _places(
    trace: Trace, openings: Whole, rows: Whole, placed: Flags, ordered: Flags, seeks: Flags
) -> tuple[Whole, Whole]:
    """Where each of these calls begins and ends, B; `rows` by opening and time."""
    result = trace.result[rows]
    own = np.where(ordered[rows], result, 0)
    before = np.cumsum(own) - own
    starts = np.ones(rows.size, bool)
    starts[1:] = openings[1:] != openings[:-1]
    seek = seeks[rows]
    # What a file's own place follows from: the beginning of the opening, or the last seek.
    base = np.maximum.accumulate(np.where(starts | seek, np.arange(rows.size), 0))
    begins = np.where(seek[base], result[base], 0) + before - before[base]
    begins = np.where(placed[rows], trace.arguments[3][rows], begins)
    return begins, begins + result
