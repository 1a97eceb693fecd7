"""As fast as possible: the rate of a replay without gaps, beside a bare loop in C over the same calls."""

from __future__ import annotations

import fcntl
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from replays.programs import Size, tar
from replays.steps import Place, made_roll, made_script, original, prepared, printed, replayed, settle
from rows import Row, interleave, peer, ratios, spread

REACH = {"tar": 0.9, "preads": 0.8}
"""Of the loop's rate."""
FILES = 3_000
"""That tar reads: each of both is prepared anew each time."""
PREAD_BYTES = 64
PREADS, PREAD_FILE = 200_000, 64 << 20
FEW_PREADS = 2_000
AS_FAST = ("--timing", "none")

FORMS: Mapping[str, str] = {
    name: form
    for form, names in {
        "pn": "access creat mkdir",
        "f": "close dup fdatasync fsync",
        "fpn": "faccessat mkdirat unlinkat",
        "fnnn": "fadvise64",
        "fn": "fchmod ftruncate",
        "fnn": "fcntl lseek",
        "fb": "fstat fstatfs",
        "fbn": "getdents64 read write",
        "pb": "lstat stat statfs",
        "fpbn": "newfstatat readlinkat",
        "pnn": "open",
        "fpnn": "openat",
        "fbnn": "pread64 pwrite64",
        "pbn": "readlink",
        "p": "unlink",
    }.items()
    for name in names.split()
}
"""Arguments as `calls_loop.c` has them; those of data (b) do not stand in a script, those at the end may be missing."""
MEMORY = ("brk", "madvise", "mmap", "mprotect", "mremap", "msync", "munmap")
"""Left out of tar's script: some dozens from the start of the program, which the loop has no places for."""
OPENING = ("creat", "dup", "open", "openat")
DUPLICATES = (f"n{fcntl.F_DUPFD}", f"n{fcntl.F_DUPFD_CLOEXEC}")
AT = {"AT_FDCWD": -100, "AT_SYMLINK_NOFOLLOW": 0x100, "AT_REMOVEDIR": 0x200, "AT_EMPTY_PATH": 0x1000}
STEP = re.compile(r"(\w+)\((.*)\) = (-?\w+)")
OTHERS = re.compile(r"\d+: |(start|fork|wait|exec)\(")
ARGUMENT = re.compile(r'"(?:[^"\\]|\\.)*"|[^, ]+')
BUFFER = 1 << 16
"""The most that a call about names and attributes may ask for; what is moved may be more."""


def rate_rows(place: Place, size: Size, rounds: int) -> list[Row]:
    workload = tar(place.directory, replace(size, files=min(size.files, FILES)))
    original(workload, place, place.trace)
    script = without_memory(made_script(place).read_text())
    rows = [rate_row("tar", workload.what, script, place, rounds)]
    few = size.files < 1000
    script = preads(FEW_PREADS if few else PREADS, PREAD_FILE >> 6 if few else PREAD_FILE)
    return [*rows, rate_row("preads", f"preads of {PREAD_BYTES} bytes", script, place, rounds)]


def without_memory(script: str) -> str:
    """A script of one thread without the calls that are about memory."""
    left_out = tuple(f"{name}(" for name in MEMORY)
    return "".join(line for line in script.splitlines(True) if not line.startswith(left_out))


def preads(many: int, file_bytes: int) -> str:
    """A script of small reads here and there in one file."""
    generator = random.Random(1)
    places = (PREAD_BYTES * generator.randrange(file_bytes // PREAD_BYTES) for _ in range(many))
    lines = [f"pread64(3, {PREAD_BYTES}, {place}) = {PREAD_BYTES}" for place in places]
    head = ["etude script 1", f'file "f" {file_bytes}', 'openat(AT_FDCWD, "f", O_RDONLY) = 3']
    return "\n".join([*head, *lines, "close(3) = 0", ""])


def rate_row(name: str, what: str, script: str, place: Place, rounds: int) -> Row:
    """Both in a directory prepared anew each time, in random order; they must have made the same calls."""
    place.script.write_text(script)
    made_roll(place)
    path = place.directory / "calls"
    calls = list(calls_of(script))
    path.write_text(list_of(calls))
    asked = Counter(call.name for call in calls)
    parties: dict[str, Callable[[], float]] = {
        "replay": lambda: as_fast_as_possible(place, asked),
        "loop": lambda: looped(place, path, len(calls)),
    }
    found = interleave(parties, rounds)
    ratio, bare = ratios(found["loop"], found["replay"]), spread(found["loop"]).median / len(calls)
    what = f"rate without gaps, replay / bare loop: {what}, {len(calls):,} calls"
    base, reach = f"the same calls by syscall(2) in C, {1e9 * bare:,.0f} ns a call", f"≥ {REACH[name]:g}"
    return Row(what, base, str(ratio), reach, ratio.median >= REACH[name])


def as_fast_as_possible(place: Place, asked: Mapping[str, int]) -> float:
    """Seconds from the first call to the last."""
    said = replayed(place, options=AS_FAST)
    made = {name: of["count"] for name, of in said["by_call"].items()}
    if made != dict(asked):
        lacking = {name: (made.get(name, 0), many) for name, many in asked.items() if made.get(name) != many}
        sys.exit(f"bench: the replay made other calls than its script has (made, asked for): {lacking}")
    return float(said["run_s"])


def looped(place: Place, path: Path, many: int) -> float:
    stage = prepared(place)
    settle(stage, cold=False)
    words = [peer("calls_loop"), str(path), str(stage)]
    seconds, made, others = printed(words, place.directory, place.environment()).split()
    if int(made) != many or int(others):
        sys.exit(f"bench: the loop made {made} of {many} calls, {others} of them with another end")
    return float(seconds)


@dataclass(frozen=True)
class Call:
    """A call of a script, with the arguments of `calls_loop.c`."""

    name: str
    arguments: tuple[str, ...]
    result: str

    @property
    def line(self) -> str:
        fails = self.result == "-1"
        opens = self.name in OPENING or (self.name == "fcntl" and self.arguments[1] in DUPLICATES)
        gives = self.result if opens and not fails else "-1"
        return "\t".join([self.name, str(int(fails)), gives, *self.arguments])


def calls_of(script: str) -> Iterator[Call]:
    """Of a script of one thread, in which nothing but calls and computing stands."""
    for number, line in enumerate(script.splitlines(), 1):
        try:
            found = call_of(line)
        except ValueError as error:
            sys.exit(f"bench: line {number} of the script: {error}: {line}")
        if found:
            yield found


def call_of(line: str) -> Call | None:
    if OTHERS.match(line):
        raise ValueError("a bare loop plays one thread")
    step = STEP.match(line)
    return Call(step[1], arguments_of(step[1], ARGUMENT.findall(step[2])), step[3]) if step else None


def arguments_of(name: str, words: list[str]) -> tuple[str, ...]:
    """By the form of the call; what a script leaves out is data, or 0 at the end."""
    if name not in FORMS:
        raise ValueError(f"{name} is a call whose form is not known to bench/replays/rate.py")
    left = list(words)
    return tuple("b" if kind == "b" else argument(kind, left.pop(0) if left else "0") for kind in FORMS[name])


def argument(kind: str, word: str) -> str:
    if word == "NULL":
        return "n0"
    if kind == "p":
        return f"p{path_of(word)}"
    if kind == "f" and word.isdecimal():
        return f"f{word}"
    return f"n{number_of(word)}"


def path_of(word: str) -> str:
    """Without quotes, and below the directory in which all is played."""
    if "\\" in word:
        raise ValueError("a path with other than plain characters")
    return word.strip('"').lstrip("/") or "."


def number_of(word: str) -> int:
    found = 0
    for part in word.split("|"):
        if re.fullmatch(r"-?\d+|0x[0-9a-f]+", part):
            found |= int(part, 16 if "x" in part else 8 if re.fullmatch(r"0\d+", part) else 10)
        else:
            found |= named(part)
    return found


def named(name: str) -> int:
    value = AT.get(name, getattr(os, name, getattr(fcntl, name, None)))
    if not isinstance(value, int):
        raise ValueError(f"{name} is a name whose value is not known")
    return value


def list_of(calls: Sequence[Call]) -> str:
    behind = (call.arguments[call.arguments.index("b") + 1 :] for call in calls if "b" in call.arguments)
    largest = max((int(words[0][1:]) for words in behind if words), default=0)
    return "\n".join([str(max(largest, BUFFER)), *(call.line for call in calls), ""])
