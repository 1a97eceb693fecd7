"""What recording adds to a call, in nanoseconds: three loops, plain and under each recorder in turn."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from recordings.recorder import Scratch, run
from rows import BUILD, Row, Spread, on_cpus, peer, progress, shown, spread


@dataclass(frozen=True)
class Loop:
    """A loop of `call_loops.c`: how many calls a run makes, and what may be added to one, by the clock."""

    what: str
    calls: int
    reach: Mapping[str, float]


LOOPS = {
    "pread": Loop("P, pread of 64 cached bytes", 300_000, {"tsc": 35, "vdso": 60}),
    "mixed": Loop("M, stdio and direct calls, 15 a loop", 150_000, {"tsc": 45, "vdso": 60}),
    "getppid": Loop("G, getppid, no I/O", 1_000_000, {"tsc": 3, "vdso": 3}),
}
SLOW_CALLS, SLOW_BLOCKS = 20_000, 5
"""A run under a recorder that stops the program at each call, or traces the machine: how many calls, how often."""
BELOW_STRACE = 100

STRACE = "strace -f -ttt -T -o FILE"
SECCOMP = "strace --seccomp-bpf, I/O calls"
BPFTRACE = "bpftrace, I/O calls printed"
NAMES = {
    "tsc": "etude record --clock tsc",
    "vdso": "etude record --clock vdso",
    "preload_tsc": "LD_PRELOAD of symbols, time stamp counter",
    "preload_vdso": "LD_PRELOAD of symbols, vdso clock",
    "strace": STRACE,
    "strace_seccomp": SECCOMP,
    "bpftrace": BPFTRACE,
}
SLOW = ("strace", "strace_seccomp", "bpftrace")
IO_CALLS = (0, 1, 3, 5, 8, 17, 18, 257, 262)
"""read, write, close, fstat, lseek, pread64, pwrite64, openat, newfstatat on x86-64: what the loops make."""
WANTED = " || ".join(f"args->id == {number}" for number in IO_CALLS)
BPF = (
    f"tracepoint:raw_syscalls:sys_enter /pid == cpid && ({WANTED})/ "
    "{ @begun[tid] = nsecs; @first[tid] = args->args[0]; @second[tid] = args->args[1]; @third[tid] = args->args[2]; } "
    "tracepoint:raw_syscalls:sys_exit /@begun[tid]/ "
    '{ printf("%d %llu %llu %d %lx %lx %lx %ld\\n", tid, @begun[tid], nsecs, args->id, @first[tid], @second[tid], '
    "@third[tid], args->ret); delete(@begun[tid]); }"
)

Added = Mapping[str, Mapping[str, Sequence[float]]]
"""By loop and party, ns a call more than the plain run of the same block; `again` is another plain run."""


def recorded_calls(rounds: int, place: Scratch) -> list[Row]:
    return rows(measured(rounds, place))


def measured(rounds: int, place: Scratch) -> Added:
    """Each block is one run of every party, in random order; the program stays on one CPU, recorders beside it."""
    generator = random.Random(1)
    plan = [name for name in LOOPS for _ in range(rounds)]
    generator.shuffle(plan)
    found: dict[str, dict[str, list[float]]] = {name: {} for name in LOOPS}
    for done, name in enumerate(plan):
        runs = parties(name, place)
        if len(found[name].get("strace", [])) >= SLOW_BLOCKS:
            runs = {party: call for party, call in runs.items() if party not in SLOW}
        block = {party: runs[party]() for party in generator.sample(list(runs), len(runs))}
        for party in set(block) - {"plain"}:
            found[name].setdefault(party, []).append(block[party] - block["plain"])
        found[name].setdefault("plain", []).append(block["plain"])
        progress(f"{done + 1}/{len(plan)} blocks of calls")
    progress("")
    return found


def parties(name: str, place: Scratch) -> dict[str, Callable[[], float]]:
    """The runs of one loop, each a call that returns nanoseconds a call."""
    allowed = os.sched_getaffinity(0)
    cpu = max(allowed)
    # The program moves itself to its own CPU; all else is started on the others.
    others = allowed - {cpu} or allowed

    def loop(calls: int) -> list[str]:
        return [peer("call_loops"), name, str(calls), str(cpu), str(place.memory)]

    def plain(before: Sequence[str] = (), calls: int = LOOPS[name].calls, **variables: str) -> float:
        with on_cpus(others):
            return one_number(run([*before, *loop(calls)], place, **variables).stdout)

    def strace(*options: str) -> float:
        # Where both have one CPU a stop costs it the least: nobody has to be woken on another one.
        words = ["strace", "-f", "-ttt", "-T", "-o", str(place.memory / "strace.txt"), *options]
        with on_cpus({cpu}):
            return one_number(run([*words, *loop(SLOW_CALLS)], place).stdout)

    def bpftrace() -> float:
        words = ["bpftrace", "-q", "-o", str(place.memory / "bpf.txt"), "-e", BPF, "-c"]
        with on_cpus(others):
            return one_number(run([*words, " ".join(loop(SLOW_CALLS))], place).stdout)

    found: dict[str, Callable[[], float]] = {"plain": plain, "again": plain}
    for clock in ("tsc", "vdso"):
        library = preload(clock)
        found[clock] = lambda clock=clock: plain(place.recorder("-q", "--clock", clock))  # type: ignore[misc]
        found[f"preload_{clock}"] = lambda library=library: plain(LD_PRELOAD=library)  # type: ignore[misc]
    found["strace"] = strace
    found["strace_seccomp"] = lambda: strace("--seccomp-bpf", "-e", "trace=%file,%desc")
    if shutil.which("bpftrace"):
        found["bpftrace"] = bpftrace
    return found


def preload(clock: str) -> str:
    """The interposer, compiled for a clock."""
    flags = ["-shared", "-fPIC", *(["-DCLOCK_TSC"] if clock == "tsc" else [])]
    return peer("preload_symbols", *flags)


def symbols_seen() -> str:
    """How many of the calls of M the interposer sees, by a loop more and a loop less."""

    def records(loops: int) -> int:
        words = [peer("call_loops"), "mixed", str(15 * loops), "-1", str(BUILD)]
        place = Scratch(BUILD, BUILD)
        done = run(words, place, LD_PRELOAD=preload("vdso"), PRELOAD_COUNT="1")
        return int(done.stderr)

    return f"{(records(19) - records(10)) / 9:g} of 15 calls seen"


def one_number(text: str) -> float:
    found = re.findall(r"^\d+\.\d+$", text, re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"{len(found)} numbers instead of one in {text[-300:]!r}")
    return float(found[0])


def rows(added: Added) -> list[Row]:
    """What is to be reached, loop by loop, with the peers of the same blocks below."""
    found = []
    for name, loop in LOOPS.items():
        values = added[name]
        bare = f"plain, {spread(values['plain']).median:.4g} ns"
        what = f"ns added to a call: {loop.what}"
        found.append(shown(f"{what}; nothing", bare, told(spread(values["again"]))))
        for clock, reach in loop.reach.items():
            here = spread(values[clock])
            reached = here.median <= reach
            found.append(Row(f"{what}; {NAMES[clock]}", bare, told(here), f"≤ {reach:g}", reached))
        for party in ("preload_tsc", "preload_vdso", *SLOW):
            found.append(shown(f"{what}; {NAMES[party]}", bare, peer_value(name, party, values.get(party))))
        if name != "getppid":
            found.append(below_strace(what, values))
    return found


def peer_value(loop: str, party: str, values: Sequence[float] | None) -> str:
    if values is None:
        return "not installed (packaging/debian-packages.txt)"
    seen = f"; {symbols_seen()}" if party.startswith("preload") and loop == "mixed" else ""
    return told(spread(values)) + seen


def told(values: Spread) -> str:
    """Nanoseconds to a tenth."""
    return f"{values.median:,.1f} (quartiles {values.low:,.1f}–{values.high:,.1f})"


def below_strace(what: str, values: Mapping[str, Sequence[float]]) -> Row:
    """How many times less is added than strace adds; a figure that is not above 0 by its median counts as 1 ns."""
    strace = spread(values["strace"]).median
    tsc, vdso = (strace / max(spread(values[clock]).median, 1) for clock in ("tsc", "vdso"))
    value = f"1/{tsc:.0f} (tsc), 1/{vdso:.0f} (vdso)"
    return Row(what, STRACE, value, f"< 1/{BELOW_STRACE}", min(tsc, vdso) > BELOW_STRACE)
