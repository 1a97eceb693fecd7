"""A sweep: the micro-benchmark at one size after another, as an ordinary experiment.

One test for each curve and size; trials in randomised blocks, the first run of each excluded (L41 Lab 1 notes,
"I/O buffer size" and "Static vs. dynamic linking").
"""

from __future__ import annotations

import os
import random
import shlex
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from etude.errors import InputError, MachineRefuses, UsageError
from etude.experiment.plan import Plan, RuleSpec
from etude.experiment.test import MetricPattern, Test
from etude.machine import snapshot
from etude.program import beside_engine, engine_path
from etude.units.parsing import QuantityError, size, size_text


def sizes(text: str) -> tuple[int, ...]:
    """`16M`, `4K,64K` or `8..16M` (each twice the one before), in rising order, each once.

    Raises:
        UsageError: it is none of these.
    """
    first, dots, last = text.partition("..")
    if not dots:
        return tuple(sorted({_size(part) for part in text.split(",")}))
    low, high = _size(first), _size(last)
    if low > high:
        raise UsageError(f"sizes {text}: the first is above the last")
    found = [low]
    while found[-1] * 2 <= high:
        found.append(found[-1] * 2)
    return tuple(found)


def _size(text: str) -> int:
    try:
        return size(text)
    except QuantityError as error:
        raise UsageError(f"size {error}") from None


BANDWIDTH = MetricPattern("bandwidth", r"([0-9.]+) KBytes/sec", "KiB/s")
STORAGE = "storage"
"""The curve of the reference: what the device gives without the page cache, at one size."""
STORAGE_BUFFER = 1 << 20
DIRECT = "-d"
PAGE = 4096
"""Usual alignment of transfers around the page cache, bytes."""
BUFFERS, TOTALS = "8..16M", "1..128M"
BUFFER, TOTAL = 2 << 20, 16 << 20
"""Buffer of the sweep over totals, and total of that over buffers: those of the lab notes."""
MOST_TESTS = 1000


@dataclass(frozen=True)
class Sweep:
    """A sweep. One of `buffers` and `totals` holds several sizes, in bytes; the other one.

    Over buffers `bandwidth` is judged, the rate of the loop alone; over totals `elapsed`, the whole program.
    """

    where: str
    """A directory, in which the data file is made and from which it is removed; or a file that is there, to be read."""
    buffers: tuple[int, ...]
    totals: tuple[int, ...]
    curves: tuple[Curve, ...]
    trials: int
    operation: str = "read"
    cpu: int | None = None
    program: str = "io-static"
    storage: bool = True
    """Over buffers: also measure O_DIRECT at 1 MiB, where the file system has it."""

    def __post_init__(self) -> None:
        if len(self.buffers) > 1 and len(self.totals) > 1:
            raise UsageError("a sweep is over buffer sizes or over total sizes: give one value of the other")
        if self.operation not in ("read", "write"):
            raise UsageError(f"operation {self.operation!r}: expected read or write")
        if self.operation == "write" and not os.path.isdir(self.where):
            raise UsageError(
                f"{self.where}: a sweep writes only to a file that it has made; name a directory"
            )
        if self.cpu is not None and self.cpu < 0:
            raise UsageError(f"CPU {self.cpu}: they are numbered from 0")
        if self.trials < 2:
            raise UsageError(f"{self.trials} trials: a sweep needs at least 2 of each size for its spread")
        names = [chosen.name for chosen in self.curves]
        if not names:
            raise UsageError("no curve to sweep: give at least one")
        if len(set(names)) < len(names) or STORAGE in names:
            raise UsageError(f"curves {', '.join(names)}: each needs a name of its own, other than {STORAGE}")
        if len(names) * len(self.buffers) * len(self.totals) > MOST_TESTS:
            raise UsageError(f"more than {MOST_TESTS} sizes and curves; take fewer")

    @property
    def over(self) -> str:
        """The quantity that varies: `buffer` or `total`."""
        return "total" if len(self.totals) > 1 else "buffer"


def make_sweep(
    where: str | os.PathLike[str],
    *,
    buffers: str | int | Sequence[int] | None = None,
    totals: str | int | Sequence[int] | None = None,
    curves: Sequence[str] | None = None,
    trials: int | None = None,
    **options: object,
) -> Sweep:
    """A sweep with the usual values for what is not said. Raises UsageError for what cannot be meant."""
    of_totals = _sizes(totals) if totals else ()
    over_totals = len(of_totals) > 1
    of_totals = of_totals or (TOTAL,)
    of_buffers = _sizes(buffers) if buffers else (BUFFER,) if over_totals else sizes(BUFFERS)
    if not over_totals:
        of_buffers = tuple(sorted({min(buffer, *of_totals) for buffer in of_buffers}))
    if curves is None:
        curves = ("static", "dynamic") if over_totals else _usual_curves()
    if trials is None:
        trials = 20 if over_totals else 10
    return Sweep(
        os.path.abspath(os.fspath(where)),
        of_buffers,
        of_totals,
        tuple(map(curve, curves)),
        trials,
        **options,  # type: ignore[arg-type]
    )


def _usual_curves() -> tuple[str, ...]:
    """Huge pages only where the kernel gives them when asked."""
    memory = snapshot.memory(Path("/"))
    huge = memory["huge_page_bytes"] is not None and memory["huge_pages"] in ("always", "madvise")
    return ("untouched", "touched", "huge") if huge else ("untouched", "touched")


def _sizes(given: str | int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(given, str):
        return sizes(given)
    found = tuple(sorted({int(value) for value in ((given,) if isinstance(given, int) else given)}))
    if not found or found[0] < 1:
        raise UsageError(f"sizes {given!r}: expected numbers of bytes from 1")
    return found


def make_plan(what: Sweep, seed: int | None = None) -> Plan:
    """The experiment of a sweep.

    Raises:
        InputError: the file is too short.
        MachineRefuses: a program or the directory is missing, or there is too little room.
    """
    _check_place(what)
    tests = [
        make_test(what, chosen, buffer, total)
        for chosen in what.curves
        for total in what.totals
        for buffer in what.buffers
    ]
    if _measures_storage(what):
        storage = Curve(STORAGE, (DIRECT, "--touch"))
        tests.append(make_test(what, storage, min(STORAGE_BUFFER, *what.totals), *what.totals))
    return Plan(
        name=f"io-{what.operation}-{what.over}s",
        tests=tuple(tests),
        rule=RuleSpec("fixed-count", {"count": what.trials}),
        seed=random.SystemRandom().randrange(2**32) if seed is None else seed,
        again_every=0,
        primary="elapsed" if what.over == "total" else BANDWIDTH.name,
    )


def _measures_storage(what: Sweep) -> bool:
    """True if a sweep has the reference of storage: requested, and possible with these sizes on that file system."""
    (total, *more) = what.totals
    return (
        what.over == "buffer" and not more and what.storage and total % PAGE == 0 and _has_direct(what.where)
    )


def make_test(what: Sweep, chosen: Curve, buffer: int, total: int) -> Test:
    """The test of one curve at one size. The buffer is never larger than the total."""
    buffer = min(buffer, total)
    direct = DIRECT in chosen.options
    place, made = _data_file(what.where, total, direct)
    varies, value = ("total", total) if what.over == "total" else ("buffer", buffer)
    command = [*command_of(chosen, what.program), what.operation, "-B", "-b", str(buffer), "-t", str(total)]
    command += ["--tail"] * (total % buffer != 0)
    warm = what.operation == "read" and not direct
    command += ["-q"] if varies == "total" else ["--cool", "warm" if warm else "none"]
    command += [*_as_done(chosen.options, what.operation), place]
    return Test(
        f"{varies}={size_text(value)} {chosen.name}",
        tuple(command),
        setup=_make_file(place, total) if made else None,
        cleanup=f"rm -f {shlex.quote(place)}" if made else None,
        cpus=None if what.cpu is None else (what.cpu,),
        metrics=() if varies == "total" else (BANDWIDTH,),
        parameters={varies: size_text(value), "curve": chosen.name},
    )


def _as_done(options: Sequence[str], operation: str) -> list[str]:
    """Options of a curve, with the call of its direction where a method has one for reading and one for writing."""
    wrong, right = ("pread", "pwrite") if operation == "write" else ("pwrite", "pread")
    given = ("", *options)
    return [
        right
        if (before, word) == ("--method", wrong)
        else word.replace(f"--method={wrong}", f"--method={right}")
        for before, word in pairwise(given)
    ]


def _data_file(where: str, total: int, direct: bool) -> tuple[str, bool]:
    """The data file, and whether the sweep makes it: one for each total, below a directory.

    What goes around the page cache has a file of its own: it would change how the other lies in the cache.
    """
    if os.path.isdir(where):
        name = f"etude-io-{os.getpid()}-{size_text(total)}{'-direct' if direct else ''}"
        return os.path.join(where, name), True
    return where, False


def _make_file(path: str, total: int) -> str:
    """A shell line that makes the file unless an earlier test has, and lets it reach the device."""
    file = shlex.quote(path)
    buffer = min(total, 1 << 20)
    tail = " --tail" if total % buffer else ""
    create = f"{shlex.quote(engine_path())} io create -b {buffer} -t {total}{tail} {file} > /dev/null"
    return f'[ "$(stat -c %s {file} 2> /dev/null)" = {total} ] || {{ {create} && sync {file}; }}'


def _check_place(what: Sweep) -> None:
    try:
        if os.path.isdir(what.where):
            if not os.access(what.where, os.W_OK | os.X_OK):
                raise MachineRefuses(
                    f"{what.where}: no file can be made there: name another directory, or a file to read"
                )
            around = _measures_storage(what) or any(DIRECT in chosen.options for chosen in what.curves)
            needed = sum(what.totals) * (2 if around else 1)
            found = os.statvfs(what.where)
            if found.f_bavail * found.f_frsize < needed + (1 << 20):
                raise MachineRefuses(
                    f"{what.where}: {size_text(needed)} are needed for the data; there is less room: name another place"
                )
        elif (length := _length(what.where)) < max(what.totals):
            raise InputError(
                f"{what.where}: is {length} bytes long, less than {size_text(max(what.totals))}; "
                f"make a longer one with etude io create, or take smaller totals"
            )
    except OSError as error:
        raise MachineRefuses(
            f"{what.where}: {error.strerror}; name a directory for the data, or a file to read"
        ) from None


def _length(path: str) -> int:
    kind = os.stat(path).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISBLK(kind)):
        raise InputError(f"{path}: is no file that can be read again and again; name a file or a directory")
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(file, 0, os.SEEK_END)
    finally:
        os.close(file)


def _has_direct(where: str) -> bool:
    """True if a file there can be opened around the page cache."""
    path = Path(where)
    made = path / f"etude-io-{os.getpid()}-direct" if path.is_dir() else None
    flags = os.O_RDWR | os.O_CREAT if made else os.O_RDONLY
    has = True
    try:
        os.close(os.open(made or path, flags | os.O_DIRECT, 0o600))
    except OSError:
        has = False  # some file systems have made the file all the same
    if made:
        with suppress(OSError):
            made.unlink()
    return has


@dataclass(frozen=True)
class Curve:
    """One way to do the same transfers. `program` is empty for that of the sweep."""

    name: str
    options: tuple[str, ...] = ()
    program: str = ""


KNOWN = {
    curve.name: curve
    for curve in (
        Curve("untouched"),
        Curve("touched", ("--touch",)),
        Curve("huge", ("--huge", "on")),
        Curve("direct", ("-d", "--touch")),
        Curve("pread", ("--method", "pread", "--touch")),
        Curve("random", ("--method", "pread", "--order", "random", "--touch")),
        Curve("mmap", ("--method", "mmap", "--touch")),
        Curve("io_uring", ("--method", "io_uring", "--touch")),
        Curve("static", (), "io-static"),
        Curve("dynamic", (), "io-dynamic"),
    )
}
"""Curves by name. untouched: as the lab's program has it; touched: every page of the buffer is written to
beforehand."""


_SHORT = ("-b", "-t", "-n", "-q", "-v", "-j", "-c", "-r", "-w", "-B")
_LONG = (
    *("--buffer", "--total", "--iterations", "--quiet", "--verbose", "--json", "--bare", "--tail"),
    *("--cool",),
)
THE_SWEEPS = frozenset((*_SHORT, *_LONG))
"""Options that say what is measured, or what is printed of it."""


def curve(text: str) -> Curve:
    """A known curve by its name, or `NAME=OPTIONS` with options of `etude io`.

    Raises:
        UsageError: it is neither.
    """
    name, equals, options = text.partition("=")
    if not equals:
        if name not in KNOWN:
            raise UsageError(f"curve {name!r}: expected NAME=OPTIONS, or one of {', '.join(KNOWN)}")
        return KNOWN[name]
    if not name.strip():
        raise UsageError(f"curve {text!r}: expected a name before =")
    try:
        words = tuple(shlex.split(options))
    except ValueError as error:
        raise UsageError(f"curve {text!r}: {error}") from None
    for word in words:
        if word in THE_SWEEPS or (not word.startswith("--") and word[:2] in THE_SWEEPS):
            raise UsageError(f"curve {text!r}: {word} is an option of the sweep, not of a curve")
    return Curve(name.strip(), words)


def command_of(chosen: Curve, program: str) -> list[str]:
    """The program of a curve, with its options still to come. Raises MachineRefuses where it is not installed."""
    name = chosen.program or program
    return [engine_path(), "io"] if name == "etude-engine" else [beside_engine(name)]
