"""Two recordings beside each other, such as a program and its replay: times, sizes, calls, and the files that differ.

A ratio is always that of the second one to the first, B/A; None where A is 0.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.iotrace.profile import BOTH, READS, WRITES, FileProfile, Profile
from etude.iotrace.reader import text_bytes


def is_replay(argv: Sequence[str]) -> bool:
    """True if these are the words of `etude replay`."""
    return len(argv) > 1 and posixpath.basename(argv[0]) in ("etude", "etude-engine") and argv[1] == "replay"


def root_of(profile: Profile) -> str:
    """A replay's directory that most of its files are in; else the directory in which it was started."""
    header = profile.trace.header
    argv, own = list(header["argv"]), str(header["cwd"])
    if not is_replay(argv):
        return own
    roots = [posixpath.normpath(posixpath.join(own, word)) for word in argv[2:]]
    best = max(roots, key=lambda root: _below(profile, root), default=own)
    return best if _below(profile, best) else own


def _below(profile: Profile, root: str) -> int:
    return sum(each.path.startswith(_with_slash(root)) for each in profile.files)


def _with_slash(root: str) -> str:
    return root if root.endswith("/") else f"{root}/"


def inner_path(path: str, root: str) -> str:
    """A path as a script has it: without the root in front, and without the slash of the file system's own root."""
    if path == root:
        return "."
    return path.removeprefix(_with_slash(root)).removeprefix("/")


Pair = tuple[float, float]
_BEGINNINGS = {
    "script": re.compile(rb"\s*etude script 1\s*(?:\n|\Z)"),
    "roll": re.compile(rb"etuderol"),
}
"""docs/howto/scripts.md, docs/reference/roll-format.md."""


@dataclass(frozen=True)
class Quantity:
    """One number of both."""

    name: str
    unit: str
    a: float
    b: float

    @property
    def ratio(self) -> float | None:
        """B/A."""
        return ratio(self.a, self.b)


@dataclass(frozen=True)
class CallBeside:
    """All calls of one name in both."""

    name: str
    counts: tuple[int, int]
    bytes: tuple[int, int]
    errors: tuple[int, int]
    times_s: Pair

    @property
    def differs(self) -> bool:
        """True if the counts differ."""
        return self.counts[0] != self.counts[1]


@dataclass(frozen=True)
class FileBeside:
    """A file whose calls or bytes are not as many in both; zeros where one has no such file."""

    path: str
    """Within the directory of the program, or of the replay."""
    counts: tuple[int, int]
    read_bytes: tuple[int, int]
    written_bytes: tuple[int, int]


@dataclass(frozen=True)
class Files:
    """How the files of both traces match."""

    alike: int
    """Files with one name, the same number of calls and of bytes."""
    renamed: int
    """Further files that differ by their name alone: the only ones with such counts on either side."""
    different: Sequence[FileBeside]
    """The most calls more or less first."""


@dataclass(frozen=True)
class Form:
    """One more form of what A did, on disk."""

    path: Path
    bytes: int


@dataclass(frozen=True)
class ProfileComparison:
    """All that `etude profile A B` says."""

    a: Profile
    b: Profile
    same_program: bool
    """True if both have the same command line."""
    replay: bool
    """True if B is a replay, by its command line."""
    times: Sequence[Quantity]
    calls: Sequence[CallBeside]
    """Calls by time, longest first."""
    files: Files
    trace_bytes: tuple[int, int]
    text_bytes: tuple[int, int]
    """Length of the texts that `etude script --events` prints, bytes."""
    forms: Mapping[str, Form | None]
    """`script` and `roll`, of A."""

    @property
    def events(self) -> tuple[int, int]:
        """Numbers of calls."""
        return self.a.trace.events, self.b.trace.events

    @property
    def sizes(self) -> Sequence[Quantity]:
        """Sizes of both traces, as files and as text."""
        rows = (
            ("events", "1", self.events),
            ("trace", "B", self.trace_bytes),
            ("trace, an event", "B", _each(self.trace_bytes, self.events)),
            ("text", "B", self.text_bytes),
            ("text, an event", "B", _each(self.text_bytes, self.events)),
            ("text / trace", "×", _each(self.text_bytes, self.trace_bytes)),
        )
        return [Quantity(name, unit, float(a), float(b)) for name, unit, (a, b) in rows]


def ratio(a: float, b: float) -> float | None:
    """B/A; None where A is 0."""
    return b / a if a else None


def compare_profiles(
    a: Profile, b: Profile, *, script: Path | None = None, roll: Path | None = None
) -> ProfileComparison:
    """Put both together; with the sizes of the script and the roll that were made of A. Times of A are then without
    calls that the script has not.

    Raises:
        InputError: there is no such script or roll, or the file is none.
        MachineRefuses: the engine cannot be run.
    """
    forms = {
        name: None if path is None else _form(path, name)
        for name, path in (("script", script), ("roll", roll))
    }
    first, second = list(a.trace.header["argv"]), list(b.trace.header["argv"])
    return ProfileComparison(
        a=a,
        b=b,
        same_program=first == second,
        replay=is_replay(second),
        times=list(_times(a, b, Dropped() if script is None else dropped_by(script))),
        calls=sorted(_calls(a, b), key=lambda each: -max(each.times_s)),
        files=_paired(_by_name(a), _by_name(b)),
        trace_bytes=(a.trace.size_bytes, b.trace.size_bytes),
        text_bytes=(text_bytes(a.trace.path), text_bytes(b.trace.path)),
        forms=forms,
    )


def _form(path: Path, name: str) -> Form:
    try:
        with path.open("rb") as file:
            if not _BEGINNINGS[name].match(file.read(4096)):
                raise InputError(f"{path}: is no {name}; name the one that was made of the first trace")
        return Form(path, path.stat().st_size)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _each(these: tuple[int, int], those: tuple[int, int]) -> Pair:
    a, b = (this / that if that else 0.0 for this, that in zip(these, those, strict=True))
    return a, b


def _times(a: Profile, b: Profile, dropped: Dropped) -> Iterator[Quantity]:
    """Times of both; in a replay, calls that its script does not have count as computing."""
    yield Quantity("read", "s", max(a.reads.time_s - dropped.read_s, 0.0), b.reads.time_s)
    yield Quantity("write", "s", max(a.writes.time_s - dropped.write_s, 0.0), b.writes.time_s)
    yield Quantity("all I/O", "s", max(all_s(a) - dropped.all_s, 0.0), all_s(b))
    if dropped.all_s:
        yield Quantity("not in the script", "s", dropped.all_s, 0.0)
    yield Quantity("computing", "s", a.outside_s + dropped.all_s, b.outside_s)
    yield Quantity("run time", "s", a.run_s, b.run_s)


def all_s(profile: Profile) -> float:
    """Time in all recorded calls, over all threads."""
    return sum(each.time_s for each in profile.calls)


def _calls(a: Profile, b: Profile) -> Iterator[CallBeside]:
    first, second = ({each.name: each for each in profile.calls} for profile in (a, b))
    for name in dict.fromkeys((*first, *second)):
        found = first.get(name), second.get(name)
        yield CallBeside(
            name=name,
            counts=_both(each.count if each else 0 for each in found),
            bytes=_both(each.bytes if each else 0 for each in found),
            errors=_both(sum(each.errors.values()) if each else 0 for each in found),
            times_s=_both(each.time_s if each else 0.0 for each in found),
        )


def _both(values: Iterator[Any]) -> tuple[Any, Any]:
    a, b = values
    return a, b


Counts = tuple[int, int, int]


def _paired(first: Mapping[str, Counts], second: Mapping[str, Counts]) -> Files:
    names = dict.fromkeys((*first, *second))
    alike = sum(first.get(name) == second.get(name) for name in names)
    left = {name: counts for name, counts in first.items() if name not in second}
    right = {name: counts for name, counts in second.items() if name not in first}
    renamed = _only(left).keys() & _only(right).keys()
    told = {name for name, counts in (*left.items(), *right.items()) if counts in renamed}
    different = []
    for name in names:
        one, other = first.get(name, (0, 0, 0)), second.get(name, (0, 0, 0))
        if one != other and name not in told:
            calls, read, written = zip(one, other, strict=True)
            different.append(FileBeside(name, calls, read, written))
    different.sort(key=lambda each: -abs(each.counts[1] - each.counts[0]))
    return Files(alike, len(renamed), different)


def _by_name(profile: Profile) -> Mapping[str, Counts]:
    """Calls, bytes read and bytes written of each file; files of one name count as one."""
    root = root_of(profile)
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in profile.files:
        found[inner_path(each.path, root)].update(_counts(each))
    return {name: (sums["calls"], sums["read"], sums["written"]) for name, sums in found.items()}


def _counts(each: FileProfile) -> Mapping[str, int]:
    return {"calls": each.count, "read": each.read_bytes, "written": each.written_bytes}


def _only(files: Mapping[str, Counts]) -> Mapping[Counts, str]:
    """Those whose counts no other of them has."""
    many = Counter(files.values())
    return {counts: name for name, counts in files.items() if many[counts] == 1}


_HEAD = ("etude script ", "#", "scheduling ", "file ", "directory ", "link ", "name ", "dropped ")
"""Beginnings of the lines above the first step."""
_DROPPED = re.compile(r'dropped (\w+) "(?:[^"\\]|\\.)*" \d+ calls \d+ bytes \d+ requests (\d+\.\d+)')


@dataclass(frozen=True)
class Dropped:
    """Time within calls that are not in a script, s."""

    read_s: float = 0.0
    write_s: float = 0.0
    all_s: float = 0.0


def dropped_by(script: Path) -> Dropped:
    """Add up what a script says of calls that it has not; zeros for a script that says nothing.

    Raises:
        InputError: it cannot be read.
    """
    try:
        found = list(_dropped_calls(script))
    except OSError as error:
        raise InputError(f"{script}: {error.strerror}") from None
    return Dropped(
        read_s=sum(seconds for name, seconds in found if name in (*READS, *BOTH)),
        write_s=sum(seconds for name, seconds in found if name in (*WRITES, *BOTH)),
        all_s=sum(seconds for _, seconds in found),
    )


def _dropped_calls(script: Path) -> Iterator[tuple[str, float]]:
    with script.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.strip() and not line.startswith(_HEAD):
                return
            if known := _DROPPED.match(line):
                yield known[1], float(known[2])
