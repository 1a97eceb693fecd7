"""The I/O lab's programs beside a bare C loop, dd and fio: read(2) at every buffer size, and the whole program.

python bench/io_lab.py [--rounds N] [--sizes BYTES,… | --mapped] [--record FILE] [--no-fifo]

A file of 16 MiB in the page cache is read with buffers of every power of two from 8 B to 16 MiB. For each size the
parties run in blocks: each once, in random order, on one CPU, every time after the whole file was read by this script.
`io-static` is compared with `peers/read_loop.c`, and that with itself, which shows how far apart two runs of one
program are. Both are linked statically: the C program calls read through a table when it is linked dynamically, which
costs it up to 1 % with small buffers; Rust's does not. Rates are those that each program reports. Whole programs are
the same two, from posix_spawn to wait4. Copies from a mapping are `--method mmap` and the C program's `-m`.

dd writes each block to /dev/null as well, from a buffer that it does not map afresh. fio (psync: pread, from a buffer
that was touched before) has no finer clock than a millisecond in its report, and so reads the file up to 128 times; its
latencies are switched off, which makes it quicker.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rows import (
    BIN,
    BUILD,
    HEADING,
    Row,
    Spread,
    at_most,
    interleave,
    line,
    measured_where,
    need,
    on_cpus,
    options,
    peer,
    progress,
    publish,
    quiet_priority,
    ratios,
    shown,
    spread,
)

PROGRAMS = ("dd", "fio", "cc", str(BIN / "io-static"))
TOTAL = 16 * 2**20
SIZES = tuple(2**power for power in range(3, 25))
MANY_CALLS = 2**19
"""From so many calls a run takes long enough that its ratio varies little: it gets fewer pairs."""
PAIRS, TURNS, PEER_PAIRS = 4, 20, 5
"""A round: blocks of a size with fewer calls, turns of whole programs. In all: blocks that dd and fio take part in."""
OVERALL, BEYOND_C, WHOLE = 0.01, 0.02, 1.1
MAPPED_SIZES = (512, 4096, 65536)

EXPLAINED = f"""\
A file of 16 MiB in the page cache, read on one CPU with buffers of each size; `io-static read -B` and the C program are
linked statically. Each ratio is the median over blocks of rates over those of C in the same block: above 1 is quicker
than C. C/C is the C program again. dd also writes each block to /dev/null; fio (psync) reads the file up to 128 times
into a buffer that has its pages already. *Within*: io/C is no further from 1 than C/C, and {BEYOND_C}."""

MAPPED = f"""\
`io-static read -B --method mmap` and memcpy from a mapping of the same file in the C program: rates over those of C in
the same round. To be reached: io is no further from 1 than C again, and {BEYOND_C}. Both call the same memcpy of glibc,
and both have the same page faults in the loop: 8 where the page cache holds the file in pages of 2 MiB, 256 where it
does not, which takes up to four times as long. So only rates of one and the same file can be compared. At 512 B io is
2 to 5 % behind, at most 3 ns a copy; the reason is not known.

Without `-B` the program rests for a second before the clock is read, and the machine has cooled by then. The C program
loses as much by that rest. Against a program in C that does not rest, only `io -B` is the same measurement."""

Values = Mapping[str, Sequence[float]]
"""Rates of one size by party in KiB/s, aligned by block; `dd` and `fio` only of the first blocks."""


@dataclass(frozen=True)
class Size:
    """What was found at one buffer size: rates over those of C in the same block, so above 1 is quicker than C."""

    buffer_bytes: int
    c_kib_s: float
    io: Spread
    c_again: Spread
    dd: Spread
    fio: Spread

    @property
    def within(self) -> bool:
        return near(self.io, self.c_again)


def near(io: Spread, c_again: Spread) -> bool:
    """Whether io is no further from C than C is from itself, and a little."""
    return abs(io.median - 1) <= abs(c_again.median - 1) + BEYOND_C


def io_lab(rounds: int) -> list[Row]:
    need(*PROGRAMS)
    return [*rows(measured(SIZES, rounds), whole_programs(rounds)), *mapped_rows(mapped_copies(rounds))]


def measured(sizes: Sequence[int], rounds: int) -> list[Size]:
    """The blocks of all sizes, in random order."""
    plan = [size for size in sizes for _ in range(rounds if TOTAL // size >= MANY_CALLS else PAIRS * rounds)]
    generator = random.Random(1)
    generator.shuffle(plan)
    found: dict[int, dict[str, list[float]]] = {size: {} for size in sizes}
    file = prepared(TOTAL)
    with one_cpu():
        for done, size in enumerate(plan):
            parties = commands(str(file), size)
            if len(found[size].get("fio", [])) >= PEER_PAIRS:
                del parties["dd"], parties["fio"]
            for name, party in generator.sample(list(parties.items()), len(parties)):
                read_once(file)
                found[size].setdefault(name, []).append(party())
            progress(f"{done + 1}/{len(plan)} blocks")
    progress("")
    return [judged(size, found[size]) for size in sizes]


def judged(buffer_bytes: int, values: Values) -> Size:
    c = values["c"]
    beside_c = {name: ratios(found, c[: len(found)]) for name, found in values.items() if name != "c"}
    return Size(buffer_bytes, spread(c).median, **beside_c)


def commands(file: str, size: int) -> dict[str, Callable[[], float]]:
    """The parties at one size, each a call that runs it and returns its rate in KiB/s."""
    sizes = ["-b", str(size), "-t", str(TOTAL)]
    loops = max(1, min(128, size // 32))
    fio = ["fio", "--name=read", f"--filename={file}", "--readonly", "--ioengine=psync", "--rw=read"]
    fio += [f"--bs={size}", f"--size={TOTAL}", f"--loops={loops}"]
    fio += ["--invalidate=0", "--gtod_reduce=1", "--thread", "--output-format=json"]
    dd = ["dd", f"if={file}", "of=/dev/null", f"bs={size}", f"count={TOTAL // size}"]
    c = [peer("read_loop", "-static"), *sizes, file]
    return {
        "io": lambda: lab_kib_s(output([str(BIN / "io-static"), "read", "-B", *sizes, file])),
        "c": lambda: lab_kib_s(output(c)),
        "c_again": lambda: lab_kib_s(output(c)),
        "dd": lambda: dd_kib_s(output(dd)),
        "fio": lambda: fio_kib_s(output(fio)),
    }


def output(command: Sequence[str]) -> str:
    """What a command that must succeed printed, on both streams."""
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    if done.returncode:
        sys.exit(f"bench: {' '.join(command)} failed ({done.returncode}): {done.stdout.strip()[:300]}")
    return done.stdout


def lab_kib_s(text: str) -> float:
    return float(only(r"^([\d.]+) KBytes/sec$", text)[1])


def dd_kib_s(text: str) -> float:
    """The rate by the bytes and seconds of GNU dd's last line, which are more exact than the rate beside them."""
    last = only(r"^(\d+) bytes? .*copied, ([\d.e+-]+) s,", text)
    return int(last[1]) / 1024 / float(last[2])


def fio_kib_s(text: str) -> float:
    """The rate by the bytes and milliseconds of fio's JSON, before which it may print warnings."""
    job = json.loads(text[only(r"^\{", text).start() :])["jobs"][0]
    if job["error"] or job["read"]["short_ios"]:
        raise ValueError(f"fio: error {job['error']}, {job['read']['short_ios']} short reads")
    return job["read"]["io_bytes"] / 1024 / (job["read"]["runtime"] / 1000)


def only(pattern: str, text: str) -> re.Match[str]:
    """The one match of a pattern."""
    found = list(re.finditer(pattern, text, re.MULTILINE))
    if len(found) != 1:
        raise ValueError(f"{len(found)} lines like {pattern} instead of one in {text[-300:]!r}")
    return found[0]


def whole_programs(rounds: int) -> dict[str, tuple[Spread, Spread, Spread]]:
    """By what is read: seconds of the static C program, and over them those of io-static and of the C program again."""
    found = {}
    for what, size, buffer in (("1 byte", 1, 1), ("16 MiB", TOTAL, 16384)):
        sizes = ["-q", "-b", str(buffer), "-t", str(size), str(prepared(size))]
        io, c = [str(BIN / "io-static"), "read", "-B", *sizes], [peer("read_loop", "-static"), *sizes]
        with one_cpu():
            lines = output([peer("spawn_turns"), "1", str(rounds * TURNS), *io, "--", *c, "--", *c])
        rows_s = [[int(ns) / 1e9 for ns in line.split()] for line in lines.splitlines()]
        ours, once, again = zip(*rows_s, strict=True)
        found[what] = spread(once), ratios(ours, once), ratios(again, once)
    return found


def mapped_copies(rounds: int) -> dict[tuple[int, bool], tuple[Spread, Spread, Spread]]:
    """By buffer size, and whether io and C again rest before: KiB/s of C, which does not, and those two over it."""
    file = prepared(TOTAL)
    io, c = [str(BIN / "io-static"), "read", "--method", "mmap"], [peer("read_loop", "-static"), "-m"]

    def rate(command: Sequence[str], size: int) -> float:
        read_once(file)
        return lab_kib_s(output([*command, "-b", str(size), "-t", str(TOTAL), str(file)]))

    found = {}
    with one_cpu():
        for size in MAPPED_SIZES:
            for rests in (False, True):
                commands = (c, io, [*c, "-r"]) if rests else (c, [*io, "-B"], c)
                parties = {str(n): partial(rate, words, size) for n, words in enumerate(commands)}
                once, ours, again = interleave(parties, rounds if rests else PAIRS * rounds).values()
                found[size, rests] = spread(once), ratios(ours, once), ratios(again, once)
    return found


def mapped_rows(copies: Mapping[tuple[int, bool], tuple[Spread, Spread, Spread]]) -> list[Row]:
    """The bound on copies from a mapping; none after a rest."""
    found = []
    for (size, rests), (c, io, again) in copies.items():
        what = f"mmap of 16 MiB in the page cache, {named(size)}" + (", without -B" if rests else "")
        value = f"{io} × (C {'after a rest' if rests else 'again'} {again} ×)"
        reach = "–" if rests else f"as far from 1 as C again, + {BEYOND_C}"
        base = f"memcpy from a mapping in C, {c.median:.0f} KiB/s"
        found.append(Row(what, base, value, reach, None if rests else near(io, again)))
    return found


def prepared(size: int) -> Path:
    """A file of this many random bytes, made once; on disk, so that nothing is written back meanwhile."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"io-{size}-bytes"
    if not path.exists() or path.stat().st_size != size:
        with path.open("wb") as file:
            file.write(random.Random(1).randbytes(size))
            file.flush()
            os.fsync(file.fileno())
    read_once(path)
    return path


def read_once(path: Path) -> None:
    """Bring a file into the page cache, and leave the caches of the CPU alike for whoever comes next."""
    buffer = bytearray(2**20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def one_cpu() -> AbstractContextManager[None]:
    """Stay on one CPU, with all that is started: the last one, since the first is often the one that is interrupted."""
    return on_cpus({max(os.sched_getaffinity(0))})


def rows(sizes: Sequence[Size], whole: Mapping[str, tuple[Spread, Spread, Spread]]) -> list[Row]:
    what = f"read(2) of 16 MiB in the page cache, {len(sizes)} buffer sizes"
    io, again, dd, fio = (
        geometric([getattr(size, name).median for size in sizes]) for name in ("io", "c_again", "dd", "fio")
    )
    beyond = [named(size.buffer_bytes) for size in sizes if not size.within]
    others = f"; not {', '.join(beyond)}" if beyond else ""
    each, reach = (
        f"{len(sizes) - len(beyond)} of {len(sizes)} sizes{others}",
        f"as far from 1 as C again, + {BEYOND_C}",
    )
    overall = f"{io:.4f} × (C again {again:.4f} ×)"
    found = [
        Row(what, "bare C loop", overall, f"1 ± {OVERALL}", abs(io - 1) <= OVERALL),
        Row("the same, at each size", "bare C loop", each, reach, not beyond),
        shown("the same, dd and fio", "bare C loop", f"{dd:.3g} ×, {fio:.3g} ×"),
    ]
    for read, (c, ours, same) in whole.items():
        base = f"static C, {1e6 * c.median:.4g} µs (C again {same.median:.3g} ×)"
        found.append(at_most(f"io-static -B -q, {read}, whole program", base, ours, WHOLE))
    return found


def geometric(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def named(size: int) -> str:
    """A power of two in the largest unit that it fills."""
    for power, unit in ((20, "MiB"), (10, "KiB")):
        if size >= 2**power:
            return f"{size >> power} {unit}"
    return f"{size} B"


def page(sizes: Sequence[Size], found: Sequence[Row], header: Sequence[str]) -> str:
    lines = ["# The I/O lab's programs beside a bare C loop, dd and fio", "", *header, "", EXPLAINED, ""]
    lines += [
        "| size | C KiB/s (median) | io/C | C/C | dd/C | fio/C | within |",
        "| ---: | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for size in sizes:
        io = f"{size.io.median:.3f} (quartiles {size.io.low:.3f}–{size.io.high:.3f})"
        beside = " | ".join(f"{peer.median:.3f}" for peer in (size.c_again, size.dd, size.fio))
        within = "yes" if size.within else "NO"
        lines.append(f"| {named(size.buffer_bytes)} | {size.c_kib_s:.0f} | {io} | {beside} | {within} |")
    lines += ["", *HEADING, *map(line, found)]
    return "\n".join([*lines, ""])


def machine(priority: str) -> list[str]:
    huge = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    first = [output([name, "--version"]).splitlines()[0] for name in ("dd", "fio", "cc")]
    pages = huge.read_text().strip() if huge.exists() else "none"
    return measured_where(f"{priority}; huge pages: {pages}", first)


def main() -> None:
    """Measure, print the page, and write it where asked; the exit code is 1 when something was not reached."""
    parser = options(__doc__, rounds=15, record=True)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--sizes", help="buffer sizes in bytes, by commas; by default all")
    which.add_argument("--mapped", action="store_true", help="only the copies from a mapping")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")] if given.sizes else SIZES
    if not set(sizes) <= set(SIZES):
        parser.error(f"--sizes are powers of two from {SIZES[0]} to {SIZES[-1]}")
    need(*PROGRAMS)
    header = machine("ordinary priority" if given.no_fifo else quiet_priority())
    judgements = []
    text = ""
    if not given.mapped:
        found = measured(sizes, given.rounds)
        judgements = rows(found, whole_programs(given.rounds))
        text = page(found, judgements, header) + "\n"
    copies = mapped_rows(mapped_copies(given.rounds))
    lines = ["## Copies from a mapping", "", *header, "", MAPPED, "", *HEADING, *map(line, copies), ""]
    sys.exit(publish(text + "\n".join(lines), given.record, [*judgements, *copies]))


if __name__ == "__main__":
    main()
