"""`etude record` beside strace, bpftrace and an LD_PRELOAD of symbols: its cost, its completeness, its traces.

python bench/recording.py [--rounds N] [--parts PART,…] [--record FILE] [--no-fifo]

Parts, by the modules of recordings/: calls (ns added to a call), work (run time of workloads and execs), whole
(completeness and size).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from recordings.calls import recorded_calls
from recordings.recorder import Scratch, scratch
from recordings.whole import recorded_whole
from recordings.work import recorded_work
from rows import (
    BIN,
    HEADING,
    Row,
    line,
    measured_where,
    names,
    need,
    options,
    printed,
    publish,
    quiet_priority,
)

NEEDED = ("cc", "fio", "gcc", "git", "gzip", "make", "sqlite3", "strace", "tar", str(BIN / "etude-engine"))
PARTS: dict[str, Callable[[int, Scratch], list[Row]]] = {
    "calls": recorded_calls,
    "work": lambda rounds, place: recorded_work(max(2, rounds // 2), place),
    "whole": lambda rounds, place: recorded_whole(max(2, rounds // 3), place),
}

EXPLAINED = """\
*ns added to a call*: blocks of one run of every party in random order; a figure is the median of recorded less plain
in the same block, with quartiles; *nothing* is a second plain run less the first. The program has one CPU for itself;
recorders and bpftrace run on the others, strace on the same one, where it is quickest. LD_PRELOAD writes records of
64 bytes to memory and never empties it; its figure is over all calls, those that it does not see among them. *Run
time*: whole commands from start to end, plain and recorded in random order, files in memory, without the list of
files (`--no-snapshot`), which is made when the program has ended and has a row of its own; strace once, on one CPU,
over a part of the same work, its output thrown away. *CPU time*: of all processes, the recorder's among them.
*Completeness*: as the recorder prints it."""


def recording(rounds: int) -> list[Row]:
    need(*NEEDED)
    return measured(rounds, list(PARTS))


def measured(rounds: int, parts: Sequence[str]) -> list[Row]:
    with scratch() as place:
        return [row for part in parts for row in PARTS[part](rounds, place)]


def page(found: Sequence[Row], header: Sequence[str]) -> str:
    lines = ["# The recorder beside strace, bpftrace and LD_PRELOAD", "", *header, "", EXPLAINED, ""]
    lines += [*HEADING, *map(line, found)]
    return "\n".join([*lines, ""])


def machine(priority: str) -> list[str]:
    clock = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    programs = ("strace", "bpftrace", "sqlite3", "git", "gcc", "fio")
    versions = [version(name) for name in programs if shutil.which(name)]
    source = clock.read_text().strip() if clock.exists() else "not known"
    return measured_where(f"{priority}; clock source: {source}", versions)


def version(name: str) -> str:
    """The first line of what a program says of its version."""
    option = "-version" if name == "sqlite3" else "--version"
    text = printed(name, option).splitlines()[0]
    return text if name in text else f"{name} {text.split()[0]}"


def main() -> None:
    """Measure, print the page, and write it where asked; the exit code is 1 when something was not reached."""
    parser = options(__doc__, rounds=15, record=True)
    parser.add_argument("--parts", default=",".join(PARTS), help="by commas; by default %(default)s")
    given = parser.parse_args()
    parts = names(parser, "parts", given.parts, PARTS)
    if given.rounds < 2:
        parser.error("--rounds is two or more: quartiles need two values")
    need(*NEEDED)
    header = machine("ordinary priority" if given.no_fifo else quiet_priority())
    found = measured(given.rounds, parts)
    sys.exit(publish(page(found, header), given.record, found))


if __name__ == "__main__":
    main()
