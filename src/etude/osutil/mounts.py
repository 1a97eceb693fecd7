"""Mount points, from /proc/self/mountinfo (proc(5))."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount."""

    within: str
    """Mounted directory within the file system."""
    target: str
    options: tuple[str, ...]
    """Options of the mount, then those of the file system that differ."""
    kind: str
    source: str
    number: str = ""
    """Device number, `major:minor`."""


def mounts(root: Path = Path("/")) -> list[Mount]:
    """All mounts in order of mounting; empty if the file cannot be read."""
    try:
        text = (root / "proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return list(parsed(text))


def parsed(text: str) -> Iterator[Mount]:
    """Mounts of the file's text; invalid lines are skipped."""
    for line in text.split("\n"):
        before, dash, after = line.partition(" - ")
        first, last = before.split(" "), after.split(" ")
        if dash and len(first) >= 6 and len(last) >= 3:
            options = tuple(dict.fromkeys([*first[5].split(","), *last[2].split(",")]))
            within, target, source = map(unescaped, (first[3], first[4], last[1]))
            yield Mount(within, target, options, last[0], source, first[2])


def deepest_mount(path: str, table: Iterable[Mount]) -> Mount | None:
    """The mount that an absolute path without links lies on; of several at one place, the last."""
    above = [mount for mount in table if f"{path}/".startswith(mount.target.rstrip("/") + "/")]
    return max(reversed(above), key=lambda mount: len(mount.target), default=None)


def unescaped(text: str) -> str:
    r"""Blanks, tabs, newlines and backslashes are written as `\040`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
