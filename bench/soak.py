"""A soak of `etude record`: threads, signals, children and deaths for a long time, each call of the trace looked at.

python bench/soak.py [--seconds N] [--threads N] [--rate N] [--full wait,drop] [--record FILE] [--keep DIRECTORY]

For each way of `--full` the program peers/soak.c is recorded for so long; the recorder is stopped for a moment now and
then, so that rings fill up. What the trace has to hold is known call by call (soaks/). The exit
status is 1 if anything is lost, torn or there twice, or if the recorder's memory grows.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rows import BIN, BUILD, HEADING, Row, line, measured_where, names, options, peer, printed, publish, shown
from soaks.check import Check, Columns, Found, columns_of
from soaks.rules import HANDLER, JUMPER, MORTAL, read_lanes

STALL_EVERY_S, STALL_S = 2.0, 0.05
"""How often the recorder is stopped, and how long: a ring lasts a few milliseconds."""
GROWTH, SLACK_BYTES, JUDGED_S = 1.10, 8 << 20, 60.0
"""How much more memory the last third may take than the first, in runs that are long enough to tell."""
LIBRARY_CALLS = 4
"""Calls that the C library makes when a thread ends, which may be among those that are dropped."""

EXPLAINED = """\
`bench/peers/soak.c` runs worker threads, threads that come and go, one that signal handlers jump out of, and children:
forked, vforked, spawned, executed, with threads, killed by SIGKILL in the midst of their calls. Timers and
`pthread_kill` interrupt all of them; handlers make calls themselves, now and then more than a ring holds. The recorder
is stopped for 50 ms each 2 s, so that rings are full. Arguments, texts and result of each call follow from its place in
its sequence; how far each sequence came stands in memory that survives its process. *Lost*: a call that returned to the
program and is not in the trace. *Torn*: one that is there with another argument, text or result, or in another thread.
*Twice*: also one that is out of order. A call that a killed thread was in may be there or not. Memory: *own* is what is
the recorder's alone, *rings* the memory that it shares with the program; peaks of samples each second."""


@dataclass(frozen=True)
class Sample:
    """The recorder's memory, bytes."""

    at_s: float
    own: int
    rings: int
    resident: int


@dataclass(frozen=True)
class Soaked:
    """One recording, and what its trace holds."""

    full: str
    found: Found
    columns: Columns
    lanes: Any
    samples: Sequence[Sample]
    trace_bytes: int
    seconds: float
    said: Sequence[str]


def sample(pid: int, began: float) -> Sample:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kib = {words[0].rstrip(":"): int(words[1]) for words in map(str.split, text.splitlines()[1:])}
    rings = 0
    for each in Path(f"/proc/{pid}/fd").iterdir():
        if "memfd:etude-record" in os.readlink(each):
            rings = each.stat().st_blocks * 512
    return Sample(time.monotonic() - began, kib["Pss_Anon"] << 10, rings, kib["Rss"] << 10)


def watch(recorder: subprocess.Popen[bytes], stalls: bool, every_s: float = 1.0) -> list[Sample]:
    """Samples until the recorder ends, which is stopped for a moment now and then."""
    began, samples = time.monotonic(), list[Sample]()
    for turn in itertools.count(1):
        try:
            recorder.wait(timeout=max(0.0, began + turn * every_s - time.monotonic()))
            return samples
        except subprocess.TimeoutExpired:
            pass
        with suppress(OSError, ProcessLookupError, KeyError):
            samples.append(sample(recorder.pid, began))
        if stalls and turn % max(1, round(STALL_EVERY_S / every_s)) == 0:
            recorder.send_signal(signal.SIGSTOP)
            time.sleep(STALL_S)
            recorder.send_signal(signal.SIGCONT)
    raise AssertionError("it never ends")


def soak(place: Path, engine: Path, seconds: float, threads: int, rate: float, full: str) -> Soaked:
    """Record the program into an empty directory, and check the trace."""
    trace, counts = place / "soak.trace", place / "counts"
    words = [engine, "record", "-o", trace, "--full", full, "--", peer("soak", "-pthread")]
    words += [counts, str(seconds), str(threads), str(rate)]
    environment = {**os.environ, "LC_ALL": "C", "XDG_CACHE_HOME": str(place / "cache")}
    with (place / "said").open("wb") as said:
        began = time.monotonic()
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": said}
        recorder: subprocess.Popen[bytes] = subprocess.Popen(words, cwd=place, env=environment, **quiet)
        try:
            samples = watch(recorder, stalls=True)
        finally:
            recorder.kill()
    lines = (place / "said").read_text(errors="replace").splitlines()
    if recorder.returncode:
        sys.exit(f"bench: {' '.join(map(str, words))} failed ({recorder.returncode}): {lines[-3:]}")
    elapsed = time.monotonic() - began
    lanes, columns = read_lanes(counts), columns_of(engine, trace, place / "columns")
    found = Check(columns, lanes, gaps=full == "drop").run()
    (place / "columns").unlink()
    return Soaked(full, found, columns, lanes, samples, trace.stat().st_size, elapsed, lines)


def by_thread(soaked: Soaked) -> dict[int, int]:
    """The flags of each thread of the trace, all of its lanes together."""
    tids: dict[tuple[int, int], int] = {}
    for lane in soaked.lanes[1:]:
        key = (int(lane["pid"]), int(lane["tid"]))
        tids[key] = tids.get(key, 0) | int(lane["flags"])
    pids = {each["process"]: each["pid"] for each in meta(soaked, "process")}
    threads = meta(soaked, "thread")
    return {each["thread"]: tids.get((pids[each["process"]], each["tid"]), 0) for each in threads}


def meta(soaked: Soaked, what: str) -> list[Mapping[str, Any]]:
    return [each for each in soaked.columns.index["meta"] if each["what"] == what]


def uncounted(soaked: Soaked) -> tuple[int, int, int]:
    """Reads and writes that the kernel counted and that are not there: of threads that nothing befell; of killed ones,
    of which one each may be in the making; of one that is jumped out of."""
    missing, flags = [0, 0, 0], by_thread(soaked)
    for each in meta(soaked, "counters"):
        kernel, own, of = each["kernel"], each["recorded"], flags[each["thread"]]
        gaps = [kernel[key] - own[key] for key in ("syscr", "syscw")]
        more = sum(own.get(f"{key}_again", 0) for key in ("syscr", "syscw"))
        gone = sum(map(abs, gaps))
        if of & JUMPER:
            missing[2] += gone
        elif of & MORTAL:
            missing[1] += min(gone, 1)
            missing[0] += max(gone - 1 - more, 0)
        else:
            missing[0] += max(gone - more, 0)
    return missing[0], missing[1], missing[2]


def dropped(soaked: Soaked) -> tuple[int, int]:
    """Calls that the recorder says it dropped: of ordinary threads; of killed ones and of one that is jumped out of."""
    found, flags = [0, 0], by_thread(soaked)
    for each in meta(soaked, "dropped"):
        found[bool(flags[each["thread"]] & (MORTAL | JUMPER))] += each["events"]
    return found[0], found[1]


def unexplained(soaked: Soaked) -> int:
    """Of `--full drop`: calls by which what is lost differs from what the recorder says that it dropped, by thread."""
    lost, flags = soaked.found.lost_by_thread, by_thread(soaked)
    said = {each["thread"]: each["events"] for each in meta(soaked, "dropped")}
    wrong = 0
    for thread in lost.keys() | said.keys():
        if flags.get(thread, 0) & JUMPER:
            continue
        more = said.get(thread, 0) - lost.get(thread, 0)
        wrong += -more if more < 0 else max(more - LIBRARY_CALLS, 0)
    return wrong


def peaks(samples: Sequence[Sample], of: str) -> tuple[int, int]:
    if not samples:
        return 0, 0
    third = samples[-1].at_s / 3
    early = [getattr(each, of) for each in samples if each.at_s <= third]
    late = [getattr(each, of) for each in samples if each.at_s >= 2 * third]
    return max(early, default=0), max(late, default=0)


def rows(soaked: Soaked) -> list[Row]:
    missing = rows_dropped(soaked) if soaked.full == "drop" else rows_lost(soaked)
    found = [*rows_made(soaked), *missing, *rows_right(soaked), *rows_memory(soaked)]
    return [replace(row, what=f"--full {soaked.full}: {row.what}") for row in found]


def none(what: str, base: str, many: int, more: str = "") -> Row:
    return Row(what, base, f"{many:,}{more}", "0", many == 0)


def rows_made(soaked: Soaked) -> list[Row]:
    found, lanes = soaked.found, soaked.lanes[1:]
    kinds, started = lanes["flags"], int(soaked.lanes[0]["done"])
    signals = int(lanes["times"][(kinds & HANDLER) > 0].sum())
    killed = len({int(one["pid"]) for one in lanes[(kinds & MORTAL) > 0]})
    checked = f"{found.events:,}, {found.checked:,} of them checked"
    processes = len(meta(soaked, "process"))
    return [
        shown("calls in the trace", f"{int(lanes['begun'].sum()):,} made", checked),
        Row("processes", "the program's", f"{processes:,} of {started:,}", "all", processes == started),
        shown("threads; killed processes", "–", f"{len(meta(soaked, 'thread')):,}; {killed:,}"),
        shown("signals handled; left by a jump", "–", f"{signals:,}; {jumps(soaked):,}"),
    ]


def jumps(soaked: Soaked) -> int:
    return int(soaked.lanes["times"][1:][(soaked.lanes["flags"][1:] & JUMPER) > 0].sum())


def lost_by_jumps(soaked: Soaked) -> int:
    """Calls of the thread that is jumped out of that are missing, but for those that the recorder says it dropped."""
    lost, flags = soaked.found.lost_by_thread, by_thread(soaked)
    said = {each["thread"]: each["events"] for each in meta(soaked, "dropped")}
    of_jumper = [thread for thread in said if flags[thread] & JUMPER]
    return max(0, soaked.found.jumped - sum(max(0, said[each] - lost.get(each, 0)) for each in of_jumper))


def rows_lost(soaked: Soaked) -> list[Row]:
    """Of `--full wait`: nothing may be missing."""
    missing = "reads and writes missing, of threads that nothing befell"
    return [
        none("calls lost", "made", soaked.found.lost),
        none("calls dropped, by threads that nothing befell", "–", dropped(soaked)[0]),
        none(missing, "the kernel's counters", uncounted(soaked)[0]),
    ]


def rows_dropped(soaked: Soaked) -> list[Row]:
    """Of `--full drop`: what is missing is counted."""
    wrong, said = unexplained(soaked), f"{sum(dropped(soaked)):,} dropped, as the trace says"
    value = f"{soaked.found.lost:,}; {wrong:,} not explained"
    return [Row("calls lost", said, value, "0 not explained", wrong == 0)]


def rows_right(soaked: Soaked) -> list[Row]:
    found, left = soaked.found, jumps(soaked)
    _, in_the_making, jumped = uncounted(soaked)
    foot, size = soaked.columns.index["footer"] or {}, soaked.trace_bytes
    whole = foot.get("events") == found.events and not soaked.columns.index["wrong"]
    back = f"; by {found.back_ns:,} ns at most"
    killed = "in the making when killed: there; counted by the kernel and not there"
    each = f"{size:,} bytes, {size / max(found.events, 1):.2f} a call"
    lost = lost_by_jumps(soaked)
    gone = f"{lost:,}; {jumped:,} reads and writes"
    return [
        none("calls torn", "–", found.torn + found.strange),
        none("calls twice, or out of order", "–", found.doubled),
        none("calls that begin before the one before has ended", "–", found.back, back),
        shown(killed, "–", f"{found.unfinished:,}; {in_the_making:,}"),
        Row("lost by jumps out of a call", f"{left:,} jumps", gone, "≤ jumps", lost <= left),
        Row("a whole trace", "–", each, "whole", whole),
    ]


def rows_memory(soaked: Soaked) -> list[Row]:
    reach, table = f"≤ {GROWTH:.2f} × + {SLACK_BYTES >> 20} MiB", []
    for of, name in (("own", "own memory"), ("rings", "memory of rings")):
        first, last = peaks(soaked.samples, of)
        bounded = last <= first * GROWTH + SLACK_BYTES if soaked.seconds >= JUDGED_S else None
        value = f"{first / 2**20:.1f} and {last / 2**20:.1f} MiB"
        table.append(Row(f"{name}, peak of the first and last third", "–", value, reach, bounded))
    return table


def main() -> None:
    """Soak, print the page, and write it where asked; the exit code is 1 when something is wrong."""
    parser = options(__doc__, record=True)
    seconds_help, engine = "of --full wait; of drop a tenth, if more than 10 s", BIN / "etude-engine"
    parser.add_argument("--seconds", type=float, default=1800.0, help=seconds_help)
    parser.add_argument("--threads", type=int, default=8, help="workers; 8 by default")
    parser.add_argument("--rate", type=float, default=6000.0, help="calls a second of all workers together")
    parser.add_argument("--full", default="wait,drop", help="by commas; by default wait,drop")
    parser.add_argument("--engine", type=Path, default=engine, help="etude-engine, of a release build")
    parser.add_argument(
        "--keep", type=Path, metavar="DIRECTORY", help="leave trace, counts and samples there"
    )
    given = parser.parse_args()
    ways = names(parser, "full", given.full, ("wait", "drop"))
    conditions = f"{given.threads} workers, {given.rate:,.0f} calls a second, {given.seconds:g} s"
    header = measured_where(conditions, [printed("gcc", "--version").splitlines()[0]])
    BUILD.mkdir(parents=True, exist_ok=True)
    table: list[Row] = []
    for full in ways:
        seconds = given.seconds if full == "wait" else max(given.seconds / 10, min(given.seconds, 10.0))
        with tempfile.TemporaryDirectory(prefix="soak-", dir=BUILD) as directory:
            place = Path(directory)
            soaked = soak(place, given.engine.resolve(), seconds, given.threads, given.rate, full)
            table += rows(soaked)
            for example in soaked.found.examples:
                print(f"bench: {full}: {example}", file=sys.stderr)
            if given.keep:
                (place / "samples").write_text("".join(f"{each}\n" for each in soaked.samples))
                shutil.copytree(place, given.keep / full)
    lines = ["# A soak of the recorder", "", *header, "", EXPLAINED, "", *HEADING, *map(line, table), ""]
    sys.exit(publish("\n".join(lines), given.record, table))


if __name__ == "__main__":
    main()
