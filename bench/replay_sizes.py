"""What a roll takes, beside fixed records and beside the bytes that its replay moves."""

from __future__ import annotations

import zlib

import numpy as np

from etude.iotrace.read import Trace
from replay_programs import Workload
from replay_steps import Said
from rows import Row

BYTES_AN_EVENT = 1.0
TIMES_SMALLER = 8.0
ROLL_SHARE = 0.01


def size_rows(workload: Workload, trace: Trace, said: Said, roll_bytes: int) -> list[Row]:
    """Judged for tar, as that is what others have numbers of."""
    judged = workload.name == "tar"
    each, fixed = roll_bytes / trace.events, fixed_bytes(trace) / trace.events
    share = roll_bytes / max(said["read_bytes"] + said["written_bytes"], 1)
    return [
        Row(
            f"bytes of the roll an event: {workload.what}, {trace.events:,} events",
            f"fixed records and texts as Pianola has them, zlib: {fixed:.3g} B",
            f"{each:.3g} B, {fixed / each:.3g} × smaller",
            f"≤ {BYTES_AN_EVENT:g} B, ≥ {TIMES_SMALLER:g} ×" if judged else "–",
            each <= BYTES_AN_EVENT and fixed / each >= TIMES_SMALLER if judged else None,
        ),
        Row(
            f"roll / bytes moved by the replay: {workload.what}",
            "–",
            f"{100 * share:.3g} %",
            f"≤ {100 * ROLL_SHARE:g} %" if judged else "–",
            share <= ROLL_SHARE if judged else None,
        ),
    ]


def fixed_bytes(trace: Trace) -> int:
    """As Pianola has it: a record of 60 bytes an event (what, gap, result, five arguments), and the texts in order,
    both by zlib."""
    order = np.argsort(trace.start_ns, kind="stable")
    ends = (trace.start_ns + trace.duration_ns)[order]
    records = np.zeros(trace.events, np.dtype([("call", "<u4"), ("gap", "<f8"), ("rest", "<i8", (6,))]))
    records["call"] = trace.call[order]
    records["gap"][1:] = np.maximum(trace.start_ns[order][1:] - ends[:-1], 0) * 1e-9
    records["rest"][:, 0] = trace.result[order]
    for number in range(5):
        records["rest"][:, 1 + number] = trace.arguments[number][order]
    codes = np.column_stack(trace.texts)[order].ravel()
    texts = b"".join(trace.text(code) + b"\0" for code in codes[codes > 0].tolist())
    return len(zlib.compress(records.tobytes(), 6)) + len(zlib.compress(texts, 6))
