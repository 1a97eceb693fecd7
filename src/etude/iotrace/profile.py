"""The summary of a trace: per call, per file, per process, over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.iotrace.reader import Trace, Whole

_FILE_READS = ("read", "readv", "pread64", "preadv", "preadv2")
_FILE_WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
READS = (*_FILE_READS, "recvfrom", "recvmsg", "recvmmsg")
WRITES = (*_FILE_WRITES, "sendto", "sendmsg", "sendmmsg")
BOTH = ("sendfile", "copy_file_range", "splice", "tee", "vmsplice")
"""Calls that move bytes from one descriptor to another: they are read and written."""
_COUNTED_IN_MESSAGES = ("recvmmsg", "sendmmsg")
"""Their results are no bytes."""

Floats = NDArray[np.float64]


def cumulative_s(start_ns: Whole, duration_ns: Whole, at_ns: Whole) -> Floats:
    """Time spent in calls up to each moment, s; calls side by side count each. Shape of `at_ns`."""
    starts, ends = np.sort(start_ns), np.sort(start_ns + duration_ns)
    found: Floats = (_integral(starts, at_ns) - _integral(ends, at_ns)).astype(np.float64) * 1e-9
    return found


def _integral(sorted_ns: Whole, at_ns: Whole) -> Whole:
    """The sum of `at - each` over those that are not after it; it may wrap round, the difference of two does not."""
    sums = np.concatenate(([0], np.cumsum(sorted_ns)))
    many = np.searchsorted(sorted_ns, at_ns, side="right")
    found: Whole = many * at_ns - sums[many]
    return found


def covered(start_ns: Whole, duration_ns: Whole) -> tuple[Whole, Whole]:
    """The stretches in which at least one call was under way: starts and durations, ns, in order, apart."""
    if start_ns.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.argsort(start_ns, kind="stable")
    starts = start_ns[order]
    ends = np.maximum.accumulate(starts + duration_ns[order])
    fresh = np.flatnonzero(np.concatenate(([True], starts[1:] > ends[:-1])))
    lasts = np.concatenate((fresh[1:] - 1, [starts.size - 1]))
    return starts[fresh], ends[lasts] - starts[fresh]


Flags = NDArray[np.bool_]


def sequential(trace: Trace) -> tuple[Flags, Flags]:
    """For each call: whether it is judged, and whether it is sequential; shapes (events,).

    Judged are `transfers`. One is sequential if it begins where the transfer before it by the same opening ended, the
    first where the file begins; an appending write always is.
    """
    rows = transfers(trace)
    openings, ends = trace.opening[rows], trace.place[rows] + trace.result[rows]
    expected = np.zeros(rows.size, np.int64)
    expected[1:] = np.where(openings[1:] == openings[:-1], ends[:-1], 0)
    judged = np.zeros(trace.events, bool)
    judged[rows] = True
    found = judged & trace.appends
    found[rows] |= trace.place[rows] == expected
    return judged, found


def transfers(trace: Trace) -> Whole:
    """Calls of the read and write families that moved at least one byte by a known descriptor of no pipe and no socket:
    their rows, by opening and time."""
    rows = np.flatnonzero(among(trace, (*_FILE_READS, *_FILE_WRITES)) & (trace.place >= 0))
    found: Whole = rows[np.lexsort((trace.start_ns[rows], trace.opening[rows]))]
    return found


def among(trace: Trace, names: Sequence[str]) -> Flags:
    """True for the calls of these names; shape (events,)."""
    found: Flags = np.array([name in names for name in trace.names], bool)[trace.call]
    return found


PARTS = 100
"""Number of equal parts of the run in `OverTime`."""
_NS = 1e-9
_LAST_ERROR = -4095
"""The kernel's results from here to -1 are errors."""


@dataclass(frozen=True)
class CallProfile:
    """All calls of one name. Times are of whole calls, failed ones too."""

    name: str
    count: int
    bytes: int
    """Bytes moved; 0 for calls that move nothing, and for those whose results are messages."""
    errors: Mapping[int, int]
    """Number of failed calls, by errno."""
    time_s: float
    median_s: float
    p99_s: float
    longest_s: float


@dataclass(frozen=True)
class Transfers:
    """All reads, or all writes. Calls from one descriptor to another are among both."""

    count: int
    bytes: int
    time_s: float
    sizes: Sequence[tuple[int, int]]
    """Sizes of calls that moved something: a power of two, B, and the number of calls from it to below twice as
    much."""
    smallest: int
    """Smallest size that was moved, B; 0 where there is none."""
    largest: int
    judged: int
    """Number of transfers by descriptors of files."""
    sequential: int
    """Number of these that begin where the one before ended."""


@dataclass(frozen=True)
class FileProfile:
    """All calls about one file."""

    path: str
    """Path; in brackets for what is no file, or is known by its descriptor alone."""
    count: int
    errors: int
    read_bytes: int
    written_bytes: int
    time_s: float
    judged: int
    sequential: int


@dataclass(frozen=True)
class ProcessProfile:
    """All calls of one process."""

    process: int
    parent: int | None
    pid: int
    command: Sequence[str]
    """Command line of its last exec."""
    threads: int
    count: int
    read_bytes: int
    written_bytes: int
    time_s: float
    """Time in calls, summed over all its threads, s."""
    in_calls_s: float
    """Time in which at least one of its threads was in a call, s."""
    life_s: float | None
    """None where its end is not in the trace."""


@dataclass(frozen=True, eq=False)
class OverTime:
    """Activity in equal parts of the run; arrays of shape (parts,), edges one more."""

    edges_s: Floats
    read_s: Floats
    """Time in reads, summed over all threads, s."""
    write_s: Floats
    other_s: Floats
    in_calls_s: Floats
    """Time in which at least one thread was in a call, s; the rest of the part was computing, or waiting otherwise."""


@dataclass(frozen=True)
class Profile:
    """All that `etude profile` says."""

    trace: Trace
    run_s: float
    in_calls_s: float
    """Time of the run in which at least one thread was in a recorded call, s."""
    recording_s: float
    """Time that the recorder itself added, by its own measure, s; outside of calls."""
    outside_s: float
    """The rest of the run: computing, and waiting by calls that are not recorded."""
    calls: Sequence[CallProfile]
    """Calls by time, longest first."""
    reads: Transfers
    writes: Transfers
    files: Sequence[FileProfile]
    """Files by time, longest first."""
    processes: Sequence[ProcessProfile]
    """Processes in the order in which they began."""
    over_time: OverTime
    kernel: Mapping[str, int] | None
    """Reads and writes that the kernel counted of the threads that were compared; None where there is none."""
    recorded: Mapping[str, int]
    """Totals by name that follow from the recorded calls."""
    missing: Sequence[str]
    """Lines on what is missing in the trace."""
    notes: Sequence[str]
    """Further notes of its recorder or import."""

    @property
    def waits(self) -> int:
        """Number of events that are not counted as calls: threads that waited for each other, or woke each other
        (`futex`)."""
        return self.trace.events - sum(each.count for each in self.calls)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Arrays that all parts of a profile share; shape (events,)."""

    trace: Trace
    reads: NDArray[np.bool_]
    writes: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    bytes: Whole
    judged: NDArray[np.bool_]
    sequential: NDArray[np.bool_]


def profile_of(trace: Trace) -> Profile:
    """Add it all up. Waits of threads for each other are no I/O, and no time within calls."""
    rows = _rows(trace.without("futex"))
    run_ns = _end_ns(trace)
    starts, lasting = covered(rows.trace.start_ns, rows.trace.duration_ns)
    in_calls_s = float(lasting.sum()) * _NS
    recording_s = min(_recording_s(trace), max(0.0, run_ns * _NS - in_calls_s))
    kernel, recorded = _compared(trace)
    return Profile(
        trace=trace,
        run_s=run_ns * _NS,
        in_calls_s=in_calls_s,
        recording_s=recording_s,
        outside_s=max(0.0, run_ns * _NS - in_calls_s - recording_s),
        calls=sorted(_calls(rows), key=lambda each: -each.time_s),
        reads=_transfers(rows, rows.reads),
        writes=_transfers(rows, rows.writes),
        files=sorted(_files(rows), key=lambda each: -each.time_s),
        processes=list(_processes(rows)),
        over_time=_over_time(rows, run_ns, (starts, lasting)),
        kernel=kernel,
        recorded=recorded,
        missing=list(_missing(trace)),
        notes=list(trace.footer.get("notes", ())) if trace.footer is not None else [],
    )


def _rows(trace: Trace) -> _Rows:
    reads, writes = among(trace, (*READS, *BOTH)), among(trace, (*WRITES, *BOTH))
    in_bytes = (reads | writes) & ~among(trace, _COUNTED_IN_MESSAGES)
    judged, found = sequential(trace)
    return _Rows(
        trace=trace,
        reads=reads,
        writes=writes,
        failed=(trace.result < 0) & (trace.result >= _LAST_ERROR),
        bytes=np.where(in_bytes, np.maximum(trace.result, 0), 0),
        judged=judged,
        sequential=found,
    )


def _end_ns(trace: Trace) -> int:
    """End of the run, ns since the beginning of the trace."""
    ends = [int(each["at_ns"]) for each in trace.meta if each.get("what") == "ended"]
    if trace.footer is not None:
        ends.append(int(trace.footer["end_ns"]))
    last = int((trace.start_ns + trace.duration_ns).max(initial=0))
    return max([*ends, last])


def _recording_s(trace: Trace) -> float:
    """Time that recording added to the gaps between calls, s; summed over threads."""
    costs = trace.header.get("own_cost_ns") or {}
    usual = float(costs.get("*", 0.0))
    by_code = np.array([float(costs.get(name, usual)) for name in trace.names])
    many = np.bincount(trace.call, minlength=by_code.size)
    return float(many @ by_code) * _NS


def _calls(rows: _Rows) -> Iterator[CallProfile]:
    trace = rows.trace
    order = np.lexsort((trace.duration_ns, trace.call))
    durations = trace.duration_ns[order] * _NS
    codes, firsts, counts = np.unique(trace.call[order], return_index=True, return_counts=True)
    moved = _sums(trace.call, rows.bytes, len(trace.names))
    for code, first, count in zip(codes.tolist(), firsts.tolist(), counts.tolist(), strict=True):
        ones = durations[first : first + count]
        mine = rows.failed & (trace.call == code)
        kinds, many = np.unique(-trace.result[mine], return_counts=True)
        yield CallProfile(
            name=trace.names[code],
            count=count,
            bytes=int(moved[code]),
            errors=dict(zip(kinds.tolist(), many.tolist(), strict=True)),
            time_s=float(ones.sum()),
            median_s=float(np.median(ones)),
            p99_s=float(np.percentile(ones, 99)),
            longest_s=float(ones[-1]),
        )


def _transfers(rows: _Rows, which: NDArray[np.bool_]) -> Transfers:
    moved = rows.bytes[which]
    some = moved[moved > 0]
    powers, many = np.unique(np.frexp(some.astype(np.float64))[1] - 1, return_counts=True)
    return Transfers(
        count=int(which.sum()),
        bytes=int(moved.sum()),
        time_s=float(rows.trace.duration_ns[which].sum()) * _NS,
        sizes=[(1 << power, count) for power, count in zip(powers.tolist(), many.tolist(), strict=True)],
        smallest=int(some.min()) if some.size else 0,
        largest=int(some.max(initial=0)),
        judged=int((rows.judged & which).sum()),
        sequential=int((rows.sequential & rows.judged & which).sum()),
    )


def _files(rows: _Rows) -> Iterator[FileProfile]:
    """Those that calls were about, and those that others read from."""
    file, source, names = rows.trace.file, rows.trace.source, rows.trace.files
    most = len(names)
    count = np.bincount(file, minlength=most)
    errors = _sums(file, rows.failed, most)
    read = _sums(source, np.where(rows.reads, rows.bytes, 0), most)
    written = _sums(file, np.where(rows.writes, rows.bytes, 0), most)
    time = _sums(file, rows.trace.duration_ns, most)
    judged = _sums(file, rows.judged, most)
    found = _sums(file, rows.judged & rows.sequential, most)
    for place in np.flatnonzero(count + read).tolist():
        if place == 0:
            continue
        yield FileProfile(
            path=names[place],
            count=int(count[place]),
            errors=int(errors[place]),
            read_bytes=int(read[place]),
            written_bytes=int(written[place]),
            time_s=float(time[place]) * _NS,
            judged=int(judged[place]),
            sequential=int(found[place]),
        )


def _sums(places: Any, values: Any, most: int) -> Whole:
    """The sum of the values of each place; whole numbers, also above 2^53."""
    found = np.zeros(most, np.int64)
    np.add.at(found, places, values.astype(np.int64))
    return found


def _processes(rows: _Rows) -> Iterator[ProcessProfile]:
    trace = rows.trace
    said = {each["process"]: each for each in trace.meta if each.get("what") == "process"}
    last = {each["process"]: each for each in trace.meta if each.get("what") == "exec"}
    ended = {each["process"]: each["at_ns"] for each in trace.meta if each.get("what") == "ended"}
    # After an exec a thread has a new number, and still its old id.
    threads = {(each["process"], each["tid"]) for each in trace.meta if each.get("what") == "thread"}
    for process, life in sorted(said.items(), key=lambda each: each[1]["at_ns"]):
        mine = trace.process == process
        _, lasting = covered(trace.start_ns[mine], trace.duration_ns[mine])
        end = ended.get(process)
        yield ProcessProfile(
            process=process,
            parent=life["parent"],
            pid=life["pid"],
            command=last.get(process, life)["argv"] or [life["executable"]],
            threads=sum(of == process for of, _ in threads),
            count=int(mine.sum()),
            read_bytes=int(rows.bytes[mine & rows.reads].sum()),
            written_bytes=int(rows.bytes[mine & rows.writes].sum()),
            time_s=float(trace.duration_ns[mine].sum()) * _NS,
            in_calls_s=float(lasting.sum()) * _NS,
            life_s=None if end is None else (end - life["at_ns"]) * _NS,
        )


def _over_time(rows: _Rows, run_ns: int, busy: tuple[Whole, Whole]) -> OverTime:
    trace = rows.trace
    edges = np.linspace(0, run_ns, PARTS + 1).astype(np.int64)
    edges_s: Floats = edges.astype(np.float64) * _NS

    def within(which: NDArray[np.bool_]) -> Floats:
        found: Floats = np.diff(cumulative_s(trace.start_ns[which], trace.duration_ns[which], edges))
        return found

    return OverTime(
        edges_s=edges_s,
        read_s=within(rows.reads),
        write_s=within(rows.writes & ~rows.reads),
        other_s=within(~rows.reads & ~rows.writes),
        in_calls_s=np.diff(cumulative_s(*busy, edges)),
    )


def _compared(trace: Trace) -> tuple[Mapping[str, int] | None, Mapping[str, int]]:
    told = [each for each in trace.meta if each.get("what") == "counters"]
    names = ("syscr", "syscw")
    if not told:
        return None, dict.fromkeys(names, 0)
    kernel, recorded = (
        {name: sum(each[side].get(name, 0) for each in told) for name in names}
        for side in ("kernel", "recorded")
    )
    return kernel, recorded


def _missing(trace: Trace) -> Iterator[str]:
    for each in trace.meta:
        if each.get("what") == "unrecorded":
            yield f"process {each['process']}: {each['why']}"
        elif each.get("what") == "dropped":
            yield f"thread {each['thread']}: {each['events']:,} calls that found no room"
        elif each.get("what") == "counters" and any(
            each["kernel"].get(name) != each["recorded"].get(name) for name in ("syscr", "syscw")
        ):
            kernel, recorded = each["kernel"], each["recorded"]
            yield (
                f"thread {each['thread']}: {recorded.get('syscr', 0):,} reads and {recorded.get('syscw', 0):,} writes; "
                f"the kernel counted {kernel.get('syscr', 0):,} and {kernel.get('syscw', 0):,}"
            )
