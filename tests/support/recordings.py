"""What the tests of `etude record` share: the programs of tests/data/record, a recording, and what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.iotrace.reader import Trace, read_trace
from etude.program import engine_path
from support.places import DATA
from support.real import ETUDE

SOURCES = DATA / "record"
NOBODY = 65534
DETERMINISTIC = [
    "cat text",
    "sort -r text",
    "ls -l --time-style=+%s tree",
    "tar -c -f out.tar --sort=name tree",
    "gzip -k -f text",
    "cp -r tree copy",
    "sha256sum text tree/a",
    "split -l 50 text part-",
    "dd if=text of=out bs=100 conv=fsync status=none",
    "perl -ne print(scalar(reverse)) text",
    "find tree -type f -exec cksum {} ;",
    "timeout 20 md5sum text",
    "sh -c cat<text;head_-1_text>out;cat_missing",
    "PROGRAMS/odd over PROGRAMS/library.so text",
    "PROGRAMS/odd-static close-all out",
    "PROGRAMS/odd threads text",
]
"""Programs that make the same calls each time; PROGRAMS is where the compiled ones are, and `_` is a blank."""
Counts = Mapping[str, int]


@dataclass(frozen=True)
class Recorded:
    """How a recorded program ended, and its trace."""

    status: int
    stdout: bytes
    stderr: bytes
    path: Path
    """Of the trace."""

    @property
    def said(self) -> list[str]:
        """The recorder's own lines."""
        lines = self.stderr.decode("utf-8", "replace").splitlines()
        return [line for line in lines if line.startswith("etude record: ")]

    @property
    def program_stderr(self) -> bytes:
        """What is the program's."""
        lines = self.stderr.splitlines(keepends=True)
        return b"".join(line for line in lines if not line.startswith(b"etude record: "))

    def trace(self, partial: bool = False) -> Trace:
        return read_trace(self.path, partial=partial)


def record(
    *words: str | Path, at: Path, options: Sequence[str] = (), engine: str | None = None, **more: Any
) -> Recorded:
    """Record a program into `at`, quietly. With `engine` that is run, and not `etude`."""
    start = [engine] if engine else [ETUDE]
    command = [*start, "record", "-q", "-o", str(at), *options, "--", *map(str, words)]
    more.setdefault("stdin", subprocess.DEVNULL if "input" not in more else None)
    if more["stdin"] is None:
        del more["stdin"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, **more)
    return Recorded(done.returncode, done.stdout, done.stderr, at)


def environment(cache: Path) -> dict[str, str]:
    """That of a recorder which leaves nothing in the home directory."""
    return {**os.environ, "XDG_CACHE_HOME": str(cache), "LC_ALL": "C"}


def compile_c(directory: Path) -> None:
    """The C programs of tests/data/record, into a directory."""
    flags = ["-O1", "-Wall"]
    for name in ("odd", "crowd", "redzone", "left"):
        subprocess.run(
            ["gcc", *flags, "-o", directory / name, SOURCES / f"{name}.c", "-lpthread"], check=True
        )
    static = ["gcc", *flags, "-static", "-o", directory / "odd-static", SOURCES / "odd.c", "-lpthread"]
    subprocess.run(static, check=True, stderr=subprocess.DEVNULL)  # the linker warns of dlopen
    library = ["gcc", *flags, "-shared", "-fPIC", "-o", directory / "library.so", SOURCES / "library.c"]
    subprocess.run(library, check=True)
    (directory / "data").write_bytes(b"abcdefghijklmnop")


def furnish(place: Path) -> None:
    """Lay out what the deterministic programs read."""
    (place / "programs").mkdir()
    compile_c(place / "programs")
    (place / "text").write_text("".join(f"a{n * 7919 % 1000} {n}\n" for n in range(1000)))
    (place / "tree").mkdir()
    for name in "abc":
        (place / "tree" / name).write_text("".join(f"{n}\n" for n in range(ord(name))))


def tidy(place: Path) -> None:
    """Remove what the deterministic programs wrote."""
    for name in ("out.tar", "copy", "out", "text.gz"):
        subprocess.run(["rm", "-rf", name], cwd=place, check=True)
    for path in place.glob("part-*"):
        path.unlink()


def words_of(program: str, place: Path) -> list[str]:
    """The command of one of the deterministic programs."""
    words = [word.replace("PROGRAMS", str(place / "programs")) for word in program.split()]
    return [*words[:2], words[2].replace("_", " ")] if words[0] == "sh" else words


def calls(trace: Trace, name: str) -> int:
    """How often a call stands in a trace."""
    return int((trace.call == list(trace.names).index(name)).sum())


def counters(trace: Trace) -> list[tuple[Counts, Counts]]:
    """Of each thread what the kernel counted, and what was recorded."""
    return [(each["kernel"], each["recorded"]) for each in trace.meta if each["what"] == "counters"]


def complete(trace: Trace) -> bool:
    """Whether every read and write that the kernel counted is there, and there were some.

    A call that a signal interrupts and the kernel makes again by itself counts twice there, and stands here once.
    """
    found = counters(trace)
    return bool(found) and all(
        0 <= kernel[key] - own[key] <= own.get(f"{key}_again", 0)
        for kernel, own in found
        for key in ("syscr", "syscw")
    )


@contextmanager
def everybodys(mode: int = 0o777) -> Iterator[Path]:
    """A directory that any user may use, with the engine in it."""
    path = Path(tempfile.mkdtemp(prefix="etude-record-"))
    try:
        path.chmod(mode)
        shutil.copy(engine_path(), path / "etude-engine")
        (path / "etude-engine").chmod(0o755)
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system in memory of so many bytes."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)
