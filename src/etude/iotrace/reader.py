"""A trace's calls as arrays: the engine writes them as columns, which are used in place.

docs/reference/trace-format.md, "Columns", says what it leaves.
"""

from __future__ import annotations

import mmap
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.engine_columns import engine_columns
from etude.errors import InputError, MachineRefuses
from etude.limits import limit_reached
from etude.program import engine_path

VERSION = 2
_MAGIC = b"etudeevc"
WORDS = 6
"""Arguments of a call."""
CHUNK = 1 << 20
"""Bytes that are taken from a pipe at once."""

Whole = NDArray[np.int64]
Codes = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Trace:
    """The calls of a trace, by threads and each in the order in which they ended. Arrays have shape (events,), and are
    read-only."""

    path: Path
    start_ns: Whole
    """Begin of each call, ns since the beginning of the trace."""
    duration_ns: Whole
    result: Whole
    """-errno for an error."""
    arguments: tuple[Whole, ...]
    """Six, each of shape (events,)."""
    thread: Codes
    call: NDArray[np.uint16]
    """Place of its name in `names`."""
    texts: tuple[Codes, Codes]
    """Codes of the first and second text of each call; 0 is none."""
    process: Codes
    file: Codes
    """Place in `files` of what each call is about."""
    source: Codes
    """File that each call reads from, where that is another one; else `file`."""
    opening: Codes
    """Opening (open file description) of each call: copied descriptors share one; 0 if it is not known."""
    place: Whole
    """Byte of the file at which a transfer begins; -1 for all that is none, or has no place there: a pipe, a socket."""
    appends: NDArray[np.bool_]
    """True for a write to the end of its file. Its place is that of a file that was empty."""
    files: Sequence[str]
    """Paths as far as they are known; in brackets what is no file, or of which only the descriptor is known. The first
    is empty, and stands for none."""
    names: Sequence[str]
    """Calls as the kernel calls them, by code; that of 0 is empty."""
    header: Mapping[str, Any]
    meta: Sequence[Mapping[str, Any]]
    footer: Mapping[str, Any] | None
    """None where the trace has no end."""
    partial: str
    """Reason why the trace ends early; empty where it is whole."""
    size_bytes: int
    """Size of the trace on disk; of one that is cut short or damaged, up to the place at which reading stopped."""
    _ends: NDArray[np.uint64]
    _bytes: NDArray[np.uint8]

    @property
    def events(self) -> int:
        """Number of calls."""
        return len(self.start_ns)

    def without(self, name: str) -> Trace:
        """The same without the calls of a name."""
        if name not in self.names:
            return self
        kept = self.call != self.names.index(name)
        if kept.all():
            return self
        first, second = self.texts
        return replace(
            self,
            start_ns=self.start_ns[kept],
            duration_ns=self.duration_ns[kept],
            result=self.result[kept],
            arguments=tuple(each[kept] for each in self.arguments),
            thread=self.thread[kept],
            call=self.call[kept],
            texts=(first[kept], second[kept]),
            process=self.process[kept],
            file=self.file[kept],
            source=self.source[kept],
            opening=self.opening[kept],
            place=self.place[kept],
            appends=self.appends[kept],
        )

    def text(self, code: int) -> bytes:
        """One text by its code; that of 0 is empty."""
        if code == 0:
            return b""
        return self._bytes[int(self._ends[code - 1]) : int(self._ends[code])].tobytes()


def read_trace(path: Path, *, partial: bool = False, replayed: bool = False) -> Trace:
    """The calls of a trace; with `partial` also those before the place at which it is cut short or damaged.

    `replayed`: of the trace of a replay only what it played, with times since then and names from the replay's root.

    Raises:
        InputError: it cannot be read, is no trace, of another version, or, without `partial`, cut short or damaged.
        MachineRefuses: the engine cannot be run, or there is no memory for what it leaves.
    """
    if "\0" in str(path):
        raise InputError(f"{path!s:.200}: cannot be read: a zero byte in its name")
    name = os.fspath(path)
    try:
        words = ["trace", "columns", *(["--replayed"] if replayed else []), "--", name]
        index, buffer = engine_columns(words, _MAGIC, VERSION, "traces")
    except InputError as error:
        raise InputError(_without_repeats(str(error), name)) from None
    why = _partial(index, name)
    if why and not partial:
        raise InputError(f"{path}: {why}; --partial takes the {index['events']:,} calls before that")
    return _trace(path, buffer, index, why)


def text_bytes(path: Path) -> int:
    """Length of the text of a trace as `etude script --events` prints it, B; for a torn trace that of what is there.

    Raises:
        MachineRefuses: the engine cannot be run.
    """
    command = [engine_path(), "trace", "events", "--", os.fspath(path)]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as engine:
            assert engine.stdout is not None
            bytes_ = 0
            while piece := engine.stdout.read(CHUNK):
                bytes_ += len(piece)
            return bytes_
    except OSError as error:
        advice = limit_reached(error.errno) or "reinstall Étude"
        raise MachineRefuses(f"{command[0]}: cannot be run: {error.strerror}; {advice}") from None


def _without_repeats(said: str, name: str) -> str:
    """The engine's message without its own name in front, and with the path once."""
    line = said.removeprefix("etude trace: ")
    while line.startswith(f"{name}: {name}: "):
        line = line.removeprefix(f"{name}: ")
    return line


def _partial(index: Mapping[str, Any], name: str) -> str:
    if index["wrong"] is not None:
        wrong = index["wrong"].removeprefix(f"{name}: ").removesuffix("; what stands before can be read")
        return wrong.removeprefix("is ") if wrong.startswith("is damaged") else f"damaged: {wrong}"
    if index["cut_short_at"] is not None:
        return f"cut short at byte {index['cut_short_at']} (the recorder was killed, or the disk was full)"
    return ""


def _size_bytes(path: Path, why: str) -> int:
    """Bytes that were read; the reader names the place at which it stopped in its reason only."""
    place = re.search(r"^(?:damaged|cut short) at byte (\d+)", why)
    if place:
        return int(place[1])
    try:
        return path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _files(ends: NDArray[np.uint64], names: NDArray[np.uint8]) -> list[str]:
    every, places = names.tobytes(), ends.tolist()
    return [every[begin:end].decode("utf-8", "backslashreplace") for begin, end in pairwise(places)]


def _trace(path: Path, buffer: mmap.mmap, index: Mapping[str, Any], why: str) -> Trace:
    rows, lists = index["events"], {f"{name}_at": index[name] + 1 for name in ("texts", "names")}
    found: dict[str, NDArray[Any]] = {}
    for place in index["columns"]:
        many = lists.get(place["name"], rows)
        if f"{place['name']}_at" in found:
            many = int(found[f"{place['name']}_at"][-1])
        found[place["name"]] = np.frombuffer(buffer, place["kind"], many, place["at"])
    return Trace(
        path=path,
        start_ns=found["start_ns"],
        duration_ns=found["duration_ns"],
        result=found["result"],
        arguments=tuple(found[f"argument{number}"] for number in range(WORDS)),
        thread=found["thread"],
        call=found["call"],
        texts=(found["text0"], found["text1"]),
        process=found["process"],
        file=found["file"],
        source=found["source"],
        opening=found["opening"],
        place=found["place"] - 1,
        appends=found["appends"].astype(bool),
        files=_files(found["names_at"], found["names"]),
        names=index["calls"],
        header=index["header"],
        meta=index["meta"],
        footer=index["footer"],
        partial=why,
        size_bytes=_size_bytes(path, why),
        _ends=found["texts_at"],
        _bytes=found["texts"],
    )
