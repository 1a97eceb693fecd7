"""A replay that was recorded, without what it did before and beside playing.

`etude replay` marks the place at which it begins to play: its playing process closes a descriptor that cannot be
(docs/replay.md, "Recorded itself").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.iotrace.reader import Trace, Whole

MARK = -0x45545544
"""The descriptor."""
_LIVES = ("process", "thread", "exec", "ended")


def replay_window(trace: Trace) -> Trace:
    """The replayed part, with times since its beginning and names from the replay's root; the trace itself where there
    is no mark."""
    marks = np.flatnonzero((trace.call == _code(trace, "close")) & (trace.arguments[0] == MARK))
    if not marks.size:
        return trace
    mark = int(marks[0])
    begun = int(trace.start_ns[mark] + trace.duration_ns[mark])
    before = np.unique(trace.thread[trace.start_ns < begun])
    others = before[before != trace.thread[mark]]
    kept = (trace.start_ns >= begun) & ~np.isin(trace.thread, others)
    of_thread = {each["thread"]: each["process"] for each in trace.meta if each.get("what") == "thread"}
    processes = {of_thread.get(int(thread), 0) for thread in np.unique(trace.thread[kept])}
    meta = [_since(each, begun) for each in trace.meta if _is_of(each, processes)]
    ends = [each["at_ns"] for each in meta if each["what"] == "ended"]
    last = int((trace.start_ns + trace.duration_ns)[kept].max(initial=begun)) - begun
    footer = None if trace.footer is None else {**trace.footer, "end_ns": max([*ends, last])}
    header = {**trace.header, "cwd": "/"}
    return replace(_only(trace, kept, begun), meta=meta, footer=footer, header=header)


def _code(trace: Trace, name: str) -> int:
    return trace.names.index(name) if name in trace.names else -1


def _is_of(each: Mapping[str, Any], processes: set[int]) -> bool:
    """Counts of the kernel are of whole threads: there is nothing to compare them with."""
    return each.get("what") in _LIVES and each["process"] in processes


def _since(each: Mapping[str, Any], begun: int) -> Mapping[str, Any]:
    root = {"cwd": "/"} if "cwd" in each else {}
    return {**each, **root, "at_ns": max(each["at_ns"] - begun, 0)}


def _only(trace: Trace, kept: NDArray[np.bool_], begun: int) -> Trace:
    def column(values: Whole) -> Whole:
        some: Whole = values[kept]
        some.flags.writeable = False
        return some

    return replace(
        trace,
        start_ns=column(trace.start_ns - begun),
        duration_ns=column(trace.duration_ns),
        result=column(trace.result),
        arguments=tuple(column(words) for words in trace.arguments),
        thread=trace.thread[kept],
        call=trace.call[kept],
        texts=(trace.texts[0][kept], trace.texts[1][kept]),
    )
