"""Stacks of the critical path with their times, kept beside the causes: `stacks.json.gz`."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from etude.codec import decoded
from etude.errors import InputError
from etude.osutil.files import replace_file
from etude.why.causes import Frame
from etude.why.timeline import Stack

FILE = "stacks.json.gz"
FORMAT, VERSION = "etude-why-stacks", 1
_NS = 1e-9
LARGEST_NS = 10**18
_Key = TypeVar("_Key")

Stacks = Mapping[tuple[str, Stack], float]
"""Seconds of each process and stack, its innermost function first."""
Sides = tuple[tuple[Stacks, ...], tuple[Stacks, ...]]
"""Stacks of both tests by run."""


class MeanStack(NamedTuple):
    """A stack with its mean time in the runs of both tests."""

    process: str
    frames: Stack
    """Outermost function first."""
    times_s: tuple[float, float]


def summed(times: Iterable[tuple[_Key, float]]) -> dict[_Key, float]:
    """The sum of the times of each key."""
    found: defaultdict[_Key, float] = defaultdict(float)
    for key, seconds in times:
        found[key] += seconds
    return dict(found)


def mean_stacks(a: Sequence[Stacks], b: Sequence[Stacks]) -> list[MeanStack]:
    """All stacks of both tests, in the order of their functions; none if a test has no runs."""
    if not a or not b:
        return []
    sums = [summed((key, s / len(side)) for run in side for key, s in run.items()) for side in (a, b)]
    found = [
        MeanStack(
            process, stack[::-1], (sums[0].get((process, stack), 0.0), sums[1].get((process, stack), 0.0))
        )
        for process, stack in {**sums[0], **sums[1]}
    ]
    return sorted(found)


def write_stacks(place: Path, kept: Sides) -> None:
    """Write the file into a directory."""
    frames: dict[Frame, int] = {}
    stacks: dict[tuple[str, Stack], int] = {}
    runs = [
        [[(stacks.setdefault(key, len(stacks)), round(s / _NS)) for key, s in run.items()] for run in side]
        for side in kept
    ]
    listed = [(process, [frames.setdefault(f, len(frames)) for f in stack]) for process, stack in stacks]
    document = {"format": FORMAT, "version": VERSION, "frames": list(frames), "stacks": listed, "runs": runs}
    text = json.dumps(document, separators=(",", ":")).encode()
    replace_file(place / FILE, gzip.compress(text, mtime=0))


@dataclass(frozen=True)
class _Stored:
    format: str
    version: int
    frames: list[tuple[str, str]]
    stacks: list[tuple[str, list[int]]]
    runs: tuple[list[list[tuple[int, int]]], list[list[tuple[int, int]]]]


def read_stacks(place: Path) -> Sides | None:
    """The stacks in a directory; None if none were kept. Raises InputError: the file is invalid."""
    path = place / FILE
    try:
        told = json.loads(gzip.decompress(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, EOFError, ValueError, RecursionError, zlib.error):
        raise InputError(
            f"{path}: is no compressed JSON; was it edited? Remove it: the causes stay"
        ) from None
    stored = decoded(_Stored, told, str(path))
    if stored.version != VERSION:
        raise InputError(f"{path}: is of version {stored.version}; expected {VERSION}: use a newer Étude")
    if stored.format != FORMAT or any(
        not 0 <= ns < LARGEST_NS for side in stored.runs for run in side for _, ns in run
    ):
        raise InputError(f"{path}: is no {FORMAT}, or has times below 0 or too large; was it edited?")
    frames = [Frame(*each) for each in stored.frames]
    keys = [(process, tuple(_at(frames, n, path) for n in numbers)) for process, numbers in stored.stacks]
    first, second = (
        tuple({_at(keys, n, path): ns * _NS for n, ns in run} for run in side) for side in stored.runs
    )
    return first, second


def _at(listed: Sequence[Any], number: int, path: Path) -> Any:
    if not 0 <= number < len(listed):
        raise InputError(f"{path}: refers to number {number} of {len(listed)}; was it edited?")
    return listed[number]
