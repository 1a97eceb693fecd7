"""Reads /proc and /sys below any root: unreadable items are None, and nothing raises.

Plain system calls instead of pathlib: a snapshot reads some hundred files and runs beside measurements.
"""

import os
from collections.abc import Iterable
from pathlib import Path

MAX_FILE_BYTES = 1 << 20


def read_text(root: Path, path: str, limit: int = MAX_FILE_BYTES) -> str | None:
    """Text of the file, stripped, at most `limit` bytes; None if unreadable or empty."""
    try:
        descriptor = os.open(os.path.join(root, path), os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        content = _read_all(descriptor, limit)
    except OSError:  # some files of /sys can be opened, but not read while their device sleeps
        return None
    finally:
        os.close(descriptor)
    return content.decode("utf-8", "replace").strip("\x00 \t\r\n") or None


def _read_all(descriptor: int, limit: int) -> bytes:
    content = b""
    while len(content) < limit:
        more = os.read(descriptor, min(limit - len(content), 1 << 16))
        if not more:
            break
        content += more
    return content


def read_int(root: Path, path: str) -> int | None:
    """The file's one integer."""
    return to_int(read_text(root, path, 64))


def read_lines(root: Path, path: str) -> list[str]:
    return (read_text(root, path) or "").splitlines()


def read_chosen(root: Path, path: str) -> str | None:
    """The selected choice of a file such as `always [madvise] never`."""
    text = read_text(root, path) or ""
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1] or None
    return text or None


def read_cpus(root: Path, path: str) -> list[int] | None:
    """CPUs of a list such as `0-3,8`; None if it cannot be read, empty if it names none."""
    if (text := read_text(root, path)) is None:
        return [] if os.path.isfile(os.path.join(root, path)) else None
    return to_cpus(text)


def read_sizes(root: Path, path: str) -> dict[str, int]:
    """Members of a file of `Name:  value kB` lines (/proc/meminfo), in bytes."""
    sizes = {}
    for line in read_lines(root, path):
        name, _, value = line.partition(":")
        words = value.split()
        if words and (number := to_int(words[0])) is not None:
            sizes[name] = number * 1024 if words[-1] == "kB" else number
    return sizes


def read_counts(root: Path, path: str) -> dict[str, int]:
    """Members of a file of `name value` lines (/proc/vmstat)."""
    pairs = (line.split() for line in read_lines(root, path))
    return {pair[0]: number for pair in pairs if len(pair) == 2 and (number := to_int(pair[1])) is not None}


def names(root: Path, path: str) -> list[str]:
    """Names in a directory, sorted; empty if it cannot be listed."""
    try:
        return sorted(os.listdir(os.path.join(root, path)))
    except (OSError, ValueError):
        return []


def to_int(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def to_float(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def to_cpus(text: str) -> list[int]:
    """The CPUs of a list such as `0-3,8`; invalid parts are left out."""
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        low, high = to_int(first), to_int(last or first)
        if low is not None and high is not None and 0 <= high - low < 65536:
            cpus += range(low, high + 1)
    return cpus


def cpu_ranges(cpus: Iterable[int]) -> str:
    """A list in the kernel's format: `0-2,5`."""
    found: list[list[int]] = []
    for cpu in sorted(cpus):
        if found and found[-1][1] == cpu - 1:
            found[-1][1] = cpu
        else:
            found.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
