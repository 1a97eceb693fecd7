"""What a roll takes, beside fixed records and beside the bytes that its replay moves."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from etude.iotrace.reader import Trace, read_trace
from replay_programs import Size, Workload, made
from replay_steps import Place, Said, original, whole_way
from rows import Row, shown

BYTES_AN_EVENT = 1.0
TIMES_SMALLER = 8.0
ROLL_SHARE = 0.01


def size_rows(workload: Workload, trace: Trace, said: Said, roll_bytes: int) -> list[Row]:
    """Judged for the real tree, as that is what others have numbers of."""
    judged = workload.name == "include"
    each, fixed = roll_bytes / trace.events, fixed_bytes(trace) / trace.events
    timed = fixed_bytes(trace, durations=True) / trace.events
    share = roll_bytes / max(said["read_bytes"] + said["written_bytes"], 1)
    base = f"fixed records and texts as Pianola has them, zlib: {fixed:.3g} B; with durations {timed:.3g} B"
    value = f"{each:.3g} B, {fixed / each:.3g} × smaller (with durations {timed / each:.3g} ×)"
    small = each <= BYTES_AN_EVENT and fixed / each >= TIMES_SMALLER
    rows = [
        Row(
            f"bytes of the roll an event: {workload.what}, {trace.events:,} events", base, value,
            f"≤ {BYTES_AN_EVENT:g} B, ≥ {TIMES_SMALLER:g} ×", small,
        ),
        Row(
            f"roll / bytes moved by the replay: {workload.what}", "–", f"{100 * share:.3g} %",
            f"≤ {100 * ROLL_SHARE:g} %", share <= ROLL_SHARE,
        ),
    ]  # fmt: skip
    return rows if judged else [shown(row.what, row.peer, row.value) for row in rows]


def include_rows(place: Place, size: Size, rounds: int) -> Iterator[Row]:
    """Of a tree of real files: C headers, which whoever builds Étude has."""
    directory = made(place.directory, "include")
    words = ["tar", "-cf", "x.tar", "-C", "/usr", "include"]
    workload = Workload("include", "tar of /usr/include", words, directory, ["x.tar"])
    original(workload, place)
    said = whole_way(workload, place)
    yield from size_rows(workload, read_trace(place.trace), said, place.roll.stat().st_size)


def fixed_bytes(trace: Trace, *, durations: bool = False) -> int:
    """As Pianola has it: a record of 60 bytes an event (what, gap, result, five arguments), and the texts in order,
    both by zlib. A roll has durations, too: with them it is 68 bytes."""
    order = np.argsort(trace.start_ns, kind="stable")
    ends = (trace.start_ns + trace.duration_ns)[order]
    kinds = [("call", "<u4"), ("gap", "<f8"), ("rest", "<i8", (6,)), ("duration", "<i8", (int(durations),))]
    records = np.zeros(trace.events, np.dtype(kinds))
    records["call"] = trace.call[order]
    records["gap"][1:] = np.maximum(trace.start_ns[order][1:] - ends[:-1], 0) * 1e-9
    records["rest"][:, 0] = trace.result[order]
    for number in range(5):
        records["rest"][:, 1 + number] = trace.arguments[number][order]
    if durations:
        records["duration"][:, 0] = trace.duration_ns[order]
    codes = np.column_stack(trace.texts)[order].ravel()
    texts = b"".join(trace.text(code) + b"\0" for code in codes[codes > 0].tolist())
    return len(zlib.compress(records.tobytes(), 6)) + len(zlib.compress(texts, 6))
