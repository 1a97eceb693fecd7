"""Feeds every reader in Python with changed valid inputs: how many cases, and how many that are no plain refusal.

python bench/fuzz.py [--cases N] [--seed N] [--readers NAME,…] [--only NAME:NUMBER]

A case is one change or a few (of bytes, numbers, words, lines, parts of another input) to an input that the reader
takes as it is; `seeds` counts these. Readers take turns of the same time, so that fast ones get more cases. Each case
is given 10 s of CPU time and 2 GB of addresses.
What a reader may do is to read it, or to refuse it by its own exception. The exit status is 1 if there was a
traceback, a hang, or a reader that ran out of memory or was killed; `--only` shows one.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import mmap
import os
import random
import re
import resource
import select
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import zstandard

from fuzz_readers import READERS, STORED, Reader
from golden.corpus import lay_out
from rows import measured_where, options, progress, table

HANG_S, MEMORY = 10, 2 << 30
TURN_S, LOST_S = 4.0, 60.0
KINDS = ("traceback", "hang", "memory", "killed")


class Hang(BaseException):
    """A case took too long."""


@dataclass
class Found:
    """Of one reader."""

    seeds: int
    cases: int = 0
    refused: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    said: dict[str, str] = field(default_factory=dict)
    """The first case of each fault, by what it is."""


class Seeds:
    """The inputs of a reader, laid out, with their texts."""

    def __init__(self, reader: Reader, place: Path) -> None:
        self.reader, self.place = reader, place
        self.files: list[tuple[str, Path | None, bytes]] = []
        """Name of the input, its file, its text."""
        self.roots: dict[str, str] = {}
        """By the name of the input: the seed."""
        for seed in reader.seeds:
            if not reader.files:
                self.files.append((seed, None, seed.encode()))
                self.roots[seed] = seed
                continue
            if seed in STORED:
                root = lay_out(seed, place)
            else:
                name, text = seed.split("=", 1)
                root = place / name
                root.write_text(text)
            self.roots[str(root)] = seed
            paths = sorted(p for p in (root, *root.rglob("*")) if p.is_file() and "logs" not in p.parts)
            self.files += [(str(root), path, path.read_bytes()) for path in paths]
        self.others = [text for _, _, text in self.files]

    def case(self, number: int, seed: int) -> bool:
        """Read one changed input: whether it was refused. Raises what a reader must not raise."""
        at = random.Random(f"{seed} {self.reader.name} {number}")
        root, path, text = at.choice(self.files)
        new = changed(text, self.others, at)
        given: object = new.decode("utf-8", "surrogateescape")
        if path is not None:
            path.write_bytes(new)
            given = Path(root)
        signal.setitimer(signal.ITIMER_PROF, HANG_S)
        try:
            self.reader.read(given)
        except self.reader.refusals:
            return True
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            if path is not None:
                path.write_bytes(text)
        return False


def with_valid_seeds(reader: Reader) -> Reader:
    """The reader with those of its inputs that it takes unchanged; what it refuses shows the refusal alone.

    They are read in a process of its own, so that no library has begun threads in this one, which makes others.
    """
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        with open(theirs, "w") as out, tempfile.TemporaryDirectory(prefix="etude-fuzz-") as place:
            os.chdir(place)
            for root, seed in Seeds(reader, Path(place)).roots.items():
                with contextlib.suppress(*reader.refusals):
                    reader.read(Path(root) if reader.files else root)
                    print(reader.seeds.index(seed), file=out)
        os._exit(0)
    os.close(theirs)
    with open(ours) as told:
        valid = [reader.seeds[int(line)] for line in told]
    os.waitpid(pid, 0)
    if not valid:
        raise ValueError(f"{reader.name}: none of its inputs can be read unchanged")
    return replace(reader, seeds=valid)


def hang(*_: object) -> None:
    raise Hang


def fault(error: BaseException) -> tuple[str, str]:
    """Its kind, and what it is: the exception and where it was raised."""
    kind = "hang" if isinstance(error, Hang) else "memory" if isinstance(error, MemoryError) else "traceback"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/etude/" in f.filename]
    where = f"{frames[-1].filename.rsplit('/etude/', 1)[1]}:{frames[-1].lineno}" if frames else "?"
    return kind, f"{type(error).__name__} at {where}: {str(error)[:120]}"


def turn(reader: Reader, begin: int, seed: int, at: mmap.mmap, out: IO[str]) -> None:
    """Cases from this number on, for some seconds, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, hang)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    refused, wrong = 0, []
    with tempfile.TemporaryDirectory(prefix="etude-fuzz-") as place:
        os.chdir(place)
        seeds, number = Seeds(reader, Path(place)), begin
        until = time.monotonic() + TURN_S
        while time.monotonic() < until:
            at[:8] = number.to_bytes(8, "little")
            try:
                refused += seeds.case(number, seed)
            except BaseException as error:
                wrong.append((*fault(error), number))
            number += 1
        json.dump({"next": number, "refused": refused, "wrong": wrong}, out)


def take_turn(reader: Reader, found: Found, seed: int) -> None:
    """A turn of one reader, watched from outside."""
    at, begin = mmap.mmap(-1, 8), found.cases
    ours, theirs = os.pipe()
    at[:8] = begin.to_bytes(8, "little")
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException), open(theirs, "w") as out:
            turn(reader, begin, seed, at, out)
        os._exit(0)
    os.close(theirs)
    with open(ours) as told:
        while select.select([told], [], [], LOST_S)[0] == [] and (now := bytes(at[:8])):
            if select.select([told], [], [], LOST_S)[0] == [] and bytes(at[:8]) == now:
                os.kill(pid, signal.SIGKILL)
        text = told.read()
    _, status = os.waitpid(pid, 0)
    if text:
        result = json.loads(text)
        found.cases, found.refused = result["next"], found.refused + result["refused"]
    else:
        number = int.from_bytes(at[:8], "little")
        found.cases = number + 1
        hung = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        result = {"wrong": [("hang" if hung else "killed", f"wait status {status}", number)]}
    for kind, what, number in result["wrong"]:
        found.wrong[kind] += 1
        if what not in found.said:
            found.said[what] = f"{reader.name}:{number}: {kind}: {what}"
            print(found.said[what], file=sys.stderr, flush=True)


def figures(found: Mapping[str, Found], seed: int, seconds: float) -> list[str]:
    counts = {
        name: (f.seeds, f.cases, f.refused, *(f.wrong[kind] for kind in KINDS)) for name, f in found.items()
    }
    counts["all"] = tuple(map(sum, zip(*counts.values(), strict=True)))
    rows = [[name, *map(str, row)] for name, row in counts.items()]
    heads = ("reader", "seeds", "cases", "refused", *KINDS)
    return [*measured_where(f"{seconds:.0f} s", (f"seed {seed}",)), "", *table(heads, rows)]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--readers", help="by name, with commas between")
    parser.add_argument("--only", metavar="NAME:NUMBER", help="one case, with its traceback")
    given = parser.parse_args()
    if given.only:
        name, number = given.only.rsplit(":", 1)
        (reader,) = (with_valid_seeds(each) for each in READERS if each.name == name)
        signal.signal(signal.SIGPROF, hang)
        with tempfile.TemporaryDirectory(prefix="etude-fuzz-") as place:
            os.chdir(place)
            print("refused" if Seeds(reader, Path(place)).case(int(number), given.seed) else "read")
        return 0
    wanted = given.readers.split(",") if given.readers else [each.name for each in READERS]
    readers = [with_valid_seeds(each) for each in READERS if each.name in wanted]
    found, began = {each.name: Found(len(each.seeds)) for each in readers}, time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        while sum(each.cases for each in found.values()) < given.cases:
            for reader in readers:
                take_turn(reader, found[reader.name], given.seed)
                progress(f"{sum(each.cases for each in found.values())}/{given.cases} cases")
    progress("")
    print("\n".join(figures(found, given.seed, time.monotonic() - began)))
    return int(any(each.wrong for each in found.values()))


WORD = re.compile(rb"[\w.$%]+")
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
ODD = (
    b"0", b"-1", b"1e999", b"-0.0", b"nan", b"inf", b"9223372036854775808", b"18446744073709551616", b"9" * 400,
    b"5e-324", b"0x1F", b"null", b"true", b"[]", b"{}", b'""', b"\xff", b"\\ud800", b"\0", b"\r\n", b"\xef\xbb\xbf",
    b"\xe2\x80\xa8", b"%", b"$", b"*", b"/", b"..", b"[" * 3000, b"(" * 3000, b'{"a":' * 3000, b"a" * 70000, b"#", b"=",
)  # fmt: skip
GZIP, ZSTD, SQLITE = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"SQLite format 3\0"


def near(pattern: re.Pattern[bytes], text: bytes, at: random.Random) -> tuple[int, int]:
    """Where the pattern is next found behind some place."""
    found = pattern.search(text, at.randrange(len(text) + 1)) or pattern.search(text)
    return found.span() if found else (0, 0)


def line_at(text: bytes, at: random.Random) -> tuple[int, int]:
    begin = text.rfind(b"\n", 0, at.randrange(len(text) + 1)) + 1
    end = text.find(b"\n", begin)
    return begin, len(text) if end < 0 else end + 1


def mild(text: bytes, others: Sequence[bytes], at: random.Random) -> bytes:
    """One change after which most formats can still be read: another number, or a word of another place."""
    pattern = at.choice((NUMBER, NUMBER, WORD))
    begin, end = near(pattern, text, at)
    if pattern is WORD:
        other = at.choice((text, at.choice(others)))
        return text[:begin] + other[slice(*near(WORD, other, at))] + text[end:]
    digits = bytes(at.choice(b"123456789") if 48 <= each < 58 else each for each in text[begin:end])
    return text[:begin] + at.choice((digits, digits[:1], digits + b"0")) + text[end:]


def changed_once(text: bytes, others: Sequence[bytes], at: random.Random) -> bytes:
    how = at.randrange(20)
    if how >= 12:
        return mild(text, others, at)
    if how < 2:
        place, long = at.randrange(len(text) + 1), at.choice((0, 1, 1, 2, 8))
        return text[:place] + at.randbytes(at.choice((0, 1, 1, 2, 4))) + text[place + long :]
    if how < 5:
        begin, end = near(NUMBER, text, at)
        number = at.choice((*ODD, b"%d" % at.randrange(-9, 99), text[begin:end] * 3))
        return text[:begin] + number + text[end:]
    if how < 8:
        begin, end = near(WORD, text, at)
        other = at.choice(others)
        word = other[slice(*near(WORD, other, at))]
        plain = (word, text[slice(*near(WORD, text, at))], b"", text[begin:end] + b" " + word)
        return text[:begin] + at.choice((*plain, at.choice(ODD))) + text[end:]
    if how < 10:
        begin, end = line_at(text, at)
        line = at.choice((b"", text[begin:end] * 2, text[slice(*line_at(text, at))], b"\n"))
        return text[:begin] + line + text[end:]
    if how == 10:
        return text[: at.randrange(len(text) + 1)]
    other = at.choice(others)
    first = at.randrange(len(other) + 1)
    return text[: at.randrange(len(text) + 1)] + other[first : first + at.choice((10, 1000, 100000))]


def changed(text: bytes, others: Sequence[bytes], at: random.Random) -> bytes:
    """A few changes; of what is compressed mostly within, of a database mostly in a value."""
    inside = at.random() < 0.8
    with suppress(OSError, EOFError, zstandard.ZstdError, sqlite3.Error):
        if inside and text.startswith(GZIP):
            return gzip.compress(changed(gzip.decompress(text), others, at), 1)
        if inside and text.startswith(ZSTD):
            plain = zstandard.ZstdDecompressor().decompressobj().decompress(text)
            return zstandard.compress(changed(plain, others, at), 1)
        if inside and text.startswith(SQLITE):
            return changed_value(text, others, at)
    for _ in range(at.choice((1, 1, 1, 2, 4))):
        text = changed_once(text, others, at)
    return text


def changed_value(database: bytes, others: Sequence[bytes], at: random.Random) -> bytes:
    """Another value in one place of one table."""
    with sqlite3.connect(":memory:") as found:
        found.deserialize(database)
        found.execute("pragma ignore_check_constraints = on")
        tables = found.execute("select name from sqlite_master where type = 'table' order by 1").fetchall()
        (name,) = at.choice(tables)
        column = at.choice([row[1] for row in found.execute(f'pragma table_info("{name}")')])
        asked = f'select rowid, "{column}" from "{name}" limit 1 offset ?'
        row = found.execute(asked, [at.randrange(20)]).fetchone()
        if row:
            old = row[1] if isinstance(row[1], bytes) else str(row[1]).encode()
            changed_one = changed_once(old, others, at)
            new = at.choice((changed_one, changed_one.decode(errors="replace"), None, -1, 1e308, 2**62))
            found.execute(f'update "{name}" set "{column}" = ? where rowid = ?', [new, row[0]])
        found.commit()
        return found.serialize()


if __name__ == "__main__":
    sys.exit(main())
