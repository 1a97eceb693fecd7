"""Lists of checksums as `sha256sum` writes and checks them."""

from __future__ import annotations

import re

SUMS = "SHA256SUMS"
_LINE = re.compile(r"(\\?)([0-9a-f]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}


def line_of(digest: str, name: str) -> str:
    """A file's line. A name with a backslash or a line's end is escaped, and the line begins with a backslash."""
    escaped = "".join(_ESCAPES.get(character, character) for character in name)
    return f"{'' if escaped == name else chr(92)}{digest}  {escaped}\n"


def sums_of(content: bytes) -> tuple[dict[str, str], list[str]]:
    """The digests by name, and what is wrong with the list, a line each."""
    found: dict[str, str] = {}
    wrong = []
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            wrong.append(f"{SUMS}, line {number}: is no checksum")
            continue
        name = _unescaped(match[3]) if match[1] else match[3]
        if name in found:
            wrong.append(f"{name}: stands in {SUMS} twice")
        found[name] = match[2]
    return found, wrong


def _unescaped(name: str) -> str:
    back = {escape[1]: character for character, escape in _ESCAPES.items()}
    return re.sub(r"\\(.)", lambda m: back.get(m[1], m[0]), name)
