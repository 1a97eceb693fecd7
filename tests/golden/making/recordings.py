"""Traces, scripts and rolls of I/O, by the engine: from a text of strace, and of programs that were really recorded."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from etude.program import engine_path
from golden.corpus import lay_out
from support.traces import COPY, imported

NEUTRAL = Path("/tmp/etude-golden")
"""Where programs are recorded: a name that says nothing."""
START, HEAD = 16, 12
"""Bytes before a trace's first frame, and before a frame's payload (docs/reference/trace-format.md)."""


def engine(*words: str | Path, cwd: Path | None = None) -> None:
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PWD": str(cwd or Path.cwd())}
    subprocess.run([engine_path(), *words], check=True, capture_output=True, cwd=cwd, env=environment)


def copied(path: Path) -> None:
    imported(COPY, path)


def recorded(path: Path, *command: str) -> Path:
    """A real recording, in a directory with some files: other times each time."""
    place = NEUTRAL / path.stem
    for name in ("a", "b", "c"):
        (place / "tree").mkdir(parents=True, exist_ok=True)
        (place / "tree" / name).write_text(name * 5000)
    record(path, place, *command)
    return place


def record(path: Path, place: Path, *command: str) -> None:
    """Record a program that runs in a directory, which is removed; the trace does not say on which machine."""
    file = NEUTRAL / "trace"
    engine("record", "-q", "-o", file, "--", *command, cwd=place)
    whole = file.read_bytes()
    out, at = whole[:START], START
    while at < len(whole):
        kind, length, _ = struct.unpack_from("<4sII", whole, at)
        at += HEAD + length
        payload = neutral(kind, whole[at - length : at])
        head = struct.pack("<4sI", kind, len(payload))
        out += head + struct.pack("<I", zlib.crc32(head + payload)) + payload
    path.write_bytes(out)
    shutil.rmtree(NEUTRAL)


def neutral(kind: bytes, payload: bytes) -> bytes:
    """A frame without the machine."""
    if kind not in (b"head", b"meta"):
        return payload
    said = json.loads(payload.replace(engine_path().encode(), b"/usr/bin/etude-engine"))
    if kind == b"head":
        said |= {"host": "lab-1", "kernel": "6.1.0-18-amd64", "start": "2026-01-01T12:00:00.000000000Z"}
    return json.dumps(said, separators=(",", ":")).encode()


def cut_short(path: Path) -> None:
    """As a machine that failed leaves it."""
    whole = lay_out("traces/tar.trace", path.parent / "whole").read_bytes()
    path.write_bytes(whole[: len(whole) * 3 // 4])


def newer(path: Path) -> None:
    whole = bytearray(lay_out("traces/copy.trace", path.parent / "whole").read_bytes())
    whole[8:12] = (2).to_bytes(4, "little")
    path.write_bytes(bytes(whole))


def replayed(path: Path) -> None:
    """The recording of a replay."""
    place = NEUTRAL / path.stem
    place.mkdir(parents=True)
    program = shutil.copy(engine_path(), place / "etude-engine")
    roll = lay_out("rolls/tar.roll", place)
    engine("prepare", lay_out("scripts/tar.script", place), place / "files")
    record(path, place, str(program), "replay", str(roll), "files")


def script(path: Path, trace: str, *options: str) -> None:
    engine("script", "-q", lay_out(trace, path.parent), "-o", path, *options)


def changed(path: Path, *words: str) -> None:
    engine("script", *words, lay_out("scripts/tar.script", path.parent), "-o", path)


def roll(path: Path, of: str) -> None:
    engine("compile", "-q", "-o", path, lay_out(of, path.parent))


def older_roll(path: Path) -> None:
    whole = bytearray(lay_out("rolls/copy.roll", path.parent / "whole").read_bytes())
    whole[8:12] = (1).to_bytes(4, "little")
    path.write_bytes(bytes(whole))


def without(path: Path, names: str) -> None:
    """A script of another version, and one whose calls use what is not open."""
    text = lay_out("scripts/copy.script", path.parent / "whole").read_text()
    lines = text.splitlines(keepends=True)
    if names == "head":
        lines[0] = lines[0].replace("1", "7")
    else:
        lines = [line for line in lines if "openat" not in line]
    path.write_text("".join(lines))


TAR = ("tar", "-c", "-f", "out.tar", "--sort=name", "tree")
SHELL = ("sh", "-c", "cat tree/a tree/b | sort > sorted; cat missing || true")
MADE: Mapping[str, Callable[[Path], object]] = {
    "traces/copy.trace": copied,
    "traces/tar.trace": lambda path: recorded(path, *TAR),
    "traces/pipes.trace": lambda path: recorded(path, *SHELL),
    "traces/cut-short.trace": cut_short,
    "traces/newer.trace": newer,
    "scripts/copy.script": lambda path: script(path, "traces/copy.trace"),
    "scripts/tar.script": lambda path: script(path, "traces/tar.trace"),
    "scripts/pipes.script": lambda path: script(path, "traces/pipes.trace", "--keep", "pipes"),
    "scripts/newer.script": lambda path: without(path, "head"),
    "scripts/not-open.script": lambda path: without(path, "openat"),
    "rolls/copy.roll": lambda path: roll(path, "scripts/copy.script"),
    "rolls/tar.roll": lambda path: roll(path, "scripts/tar.script"),
    "rolls/older.roll": older_roll,
    "traces/replayed.trace": replayed,
}
