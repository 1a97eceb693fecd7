"""The README.txt of a bundle: what it is, how to verify, read and repeat it, and what is not in it."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from etude.units.formatting import counted
from etude.version import __version__

MOST_PROGRAMS = 20


@dataclass(frozen=True)
class Packed:
    """One experiment of a bundle."""

    name: str
    document: Mapping[str, Any]
    scripts: tuple[str, ...]
    """The script first, then what it includes."""
    sentences: tuple[str, ...]
    """Its verdict."""
    files: int


def readme(packed: Sequence[Packed], title: str, time_s: int, *, logs: bool, anonymous: bool) -> str:
    """The whole text."""
    parts = [
        [f"{title}: measured results, packed by Étude {__version__}", *_what(packed, time_s)],
        [
            "Verdicts (complete in verdicts/)",
            *(f"  {line}" for p in packed for line in _found(p, packed)),
        ],
        ["Contents", *_inside(packed, logs)],
        [
            "To verify",
            "  sha256sum -c SHA256SUMS       here, where it is unpacked; needs no Étude",
            "  etude bundle --verify FILE    packed or unpacked; also finds missing and added files",
            "Checksums show damage, and changes that did not update SHA256SUMS. To prove that nobody changed",
            "both, publish the SHA-256 of the packed file elsewhere, too (etude bundle prints it).",
        ],
        ["To read", *_read(packed)],
        ["To repeat", *_repeat(packed)],
        ["Privacy", *_privacy(anonymous)],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _what(packed: Sequence[Packed], time_s: int) -> Iterator[str]:
    day = datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M")
    yield f"Programs were run many times over, and measured; the last run ended on {day} (UTC)."
    for p in packed:
        tests = [test["name"] for test in p.document["tests"] if test.get("role", "test") == "test"]
        shown = ", ".join(tests[:MOST_PROGRAMS]) + (" and more" if len(tests) > MOST_PROGRAMS else "")
        yield f"  {p.name}: by `etude {p.document.get('verb')}`, {counted(len(tests), 'test')}: {shown}"
        if p.document["sittings"] and p.document["sittings"][-1].get("how_ended") != "complete":
            yield f"  {p.name} is not complete: it was packed before it had ended, or was interrupted."


def _found(p: Packed, packed: Sequence[Packed]) -> Iterator[str]:
    for line in p.sentences:
        yield from textwrap.wrap(
            f"{p.name}: {line}" if len(packed) > 1 else line, 108, subsequent_indent="  "
        )


def _inside(packed: Sequence[Packed], logs: bool) -> Iterator[str]:
    for p in packed:
        files = counted(p.files, "file")
        yield f"  results/{p.name}/   {files} as Étude wrote them: experiment.json has the request"
        yield "      and the machine; each TEST/results.jsonl has one measurement a line"
    if not logs:
        yield "  The programs' own output (TEST/logs) was left out."
    if any(p.scripts for p in packed):
        yield "  scripts/     the scripts, with every file that they included"
    yield "  machine/     the machine before and after"
    yield "  versions.json   versions of Étude and its libraries"
    yield "  verdicts/    the verdicts, as text and as JSON"
    yield "  bundle.json  the contents of this bundle, for programs"
    yield "  SHA256SUMS   a checksum of every file but itself"
    yield "The formats are described in Étude's docs/reference/formats.md and docs/howto/bundle.md; all of it is text."


def _read(packed: Sequence[Packed]) -> Iterator[str]:
    for p in packed:
        yield f"  etude stats {shlex.quote(f'results/{p.name}')}"


def _repeat(packed: Sequence[Packed]) -> Iterator[str]:
    for p in packed:
        yield f"  etude run --again {shlex.quote(f'results/{p.name}')}"
    if len(packed) == 1:
        yield "or, with the packed file: etude run --again FILE."
    yield "It repeats the recorded experiment in a new random order, and reports whether the verdicts are reproduced."
    for p in packed:
        if p.scripts:
            main, *others = p.scripts
            library = f"scripts/{p.name}/library"
            search = f"-I {shlex.quote(library)} " if any(o.startswith(f"{library}/") for o in others) else ""
            yield f"The script itself: etude run {search}{shlex.quote(main)}"
    yield "The measured programs are not in the bundle. They must be at the same paths:"
    yield from (f"  {line}" for line in _programs(packed))
    yield "Times differ on another machine; ratios may be reproduced."


def _programs(packed: Sequence[Packed]) -> list[str]:
    """The commands that are run, as far as they are known without running anything."""
    found: dict[str, None] = {}
    for p in packed:
        for test in p.document["plan"].get("tests") or ():
            if isinstance(test, dict) and isinstance(test.get("command"), list):
                found[shlex.join(map(str, test["command"]))] = None
        if p.scripts:
            found[f"what the lines EXEC, SETUP, CLEANUP and SYSTEM of {p.scripts[0]} name"] = None
    commands = list(found)
    more = [f"and {len(commands) - MOST_PROGRAMS} more"] if len(commands) > MOST_PROGRAMS else []
    return [*commands[:MOST_PROGRAMS], *more]


def _privacy(anonymous: bool) -> Iterator[str]:
    if anonymous:
        yield "Host names were replaced by host-1, host-2 and so on, home directories by /home/user, consistently;"
        yield "digests (of the plan, of output) are those of the original. Other names were not looked for."
    else:
        yield "The files name the host, the directories in which it ran, and what the programs printed."
