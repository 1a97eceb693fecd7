"""What is recorded is what the kernel saw of the same run: each thread's calls, with arguments, paths and results.

A program is recorded as always, while bpftrace watches the same processes at the kernel's own tracepoints. Both are the
same but for what the launcher does, which is told apart so:

- what the first process does before it has executed the program is the launcher's;
- what a thread does with one odd set of signals blocked is the launcher's: it sets that while a stopped thread maps the
  hook and room for code, and programs never do.
"""

import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from etude.iotrace.reader import Trace, read_trace
from etude.program import engine_path
from support.recordings import DETERMINISTIC, environment, furnish, tidy, words_of
from support.seen_by_kernel import PAIRS, STRING, Kernel, Program, Row, Seen, table, watching

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_program("bpftrace"),
    pytest.mark.needs_program("gcc"),
    pytest.mark.usefixtures("tracing"),
]

TABLE = table()
O_CREAT, TMPFILE, MREMAP_FIXED = 0o100, 0o20000000, 2
# What the argument of an fcntl is, by the command (man 2 fcntl).
NUMBER = {0, 2, 8, 10, 1024, 1030, 1031}
NOTHING = {1, 3, 9, 11, 1025, 1032, 1034}
UNSIGNED = {4, 1026, 1033}

Call = tuple[str, tuple[int, ...], tuple[bytes, ...], int]
"""Name, arguments, texts, result."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which all of them find what they need."""
    place = tmp_path_factory.mktemp("place")
    furnish(place)
    return place


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with watching(tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel


def signed(value: int, bits: int = 64) -> int:
    """A register's lowest bits as a number with a sign."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def normalised(row: Row, registers: Sequence[int]) -> list[int]:
    """Arguments as docs/reference/trace-format.md says that they stand in a trace."""
    found = []
    for kind, value in zip(row.kinds, registers, strict=False):
        if kind == "Command":
            command = registers[1] & 0xFFFFFFFF
            kind = "Int" if command in NUMBER else "Count" if command in UNSIGNED else "Pointer"
            kind = "Unused" if command in NOTHING else kind
        if kind in ("Fd", "DirFd", "Int", "Id"):
            found.append(signed(value, 32))
        elif kind in ("Count", "Device") or kind.startswith(("Flags", "Choice")):
            found.append(value & 0xFFFFFFFF)
        elif kind == "Mode":
            found.append(value & 0xFFFF)
        else:
            found.append(0 if kind == "Unused" else signed(value))
    if row.kinds[-2:] == ["Flags(Set::Open)", "Mode"] and not found[-2] & (O_CREAT | TMPFILE):
        found[-1] = 0
    if row.name == "mremap" and not found[3] & MREMAP_FIXED:
        found[-1] = 0
    return found + [0] * (6 - len(found))


def seen_call(seen: Seen, recorded: Call) -> Call:
    """What the kernel saw as it stands in a trace; what one of the two does not know is as in the other."""
    row, known = TABLE[seen.number], list(recorded[2])
    arguments, texts = normalised(row, seen.arguments), []
    for index, text in sorted(seen.texts.items()):
        if arguments[index] == recorded[1][index]:  # it could not be read (EFAULT), or nobody did (ENOSYS)
            continue
        arguments[index] = 0
        mine = known.pop(0) if known else b""
        if len(text) == STRING - 1:  # bpftrace has no more of it
            text += mine[len(text) :]
        texts.append(text)
    if row.name in PAIRS and recorded[2]:
        arguments[row.kinds.index("Pair")] = 0
        texts.append(seen.pair)
    return row.name, tuple(arguments), tuple(texts), seen.result


def recorded_programs(trace: Trace) -> Mapping[int, Sequence[Sequence[Call]]]:
    """By tid, in order of execs: of what is executed the calls are another thread's."""
    calls: dict[int, list[tuple[int, Call]]] = defaultdict(list)
    for row in range(trace.events):
        texts = tuple(trace.text(int(column[row])) for column in trace.texts if column[row])
        arguments = tuple(int(column[row]) for column in trace.arguments)
        call = (trace.names[trace.call[row]], arguments, texts, int(trace.result[row]))
        calls[int(trace.thread[row])].append((int(trace.start_ns[row] + trace.duration_ns[row]), call))
    found: dict[int, list[Sequence[Call]]] = defaultdict(list)
    for meta in trace.meta:
        if meta["what"] == "thread":
            found[meta["tid"]].append([call for _, call in calls[meta["thread"]]])
    return found


def programs_own(program: Program) -> list[Seen]:
    """Those of the recorder's calls that are not made by the launcher."""
    return [seen for seen in program if seen.number in TABLE and not seen.by_launcher]


@pytest.mark.parametrize(
    ("technique", "program"),
    [
        *(("rewrite", program) for program in DETERMINISTIC),
        *(("ptrace", program) for program in DETERMINISTIC[::3]),
    ],
)
def test_the_calls_are_those_that_the_kernel_saw(
    technique: str, program: str, kernel: Kernel, place: Path, tmp_path: Path
) -> None:
    tidy(place)
    options = ["-q", "--technique", technique, "-o", str(tmp_path / "t")]
    command = [engine_path(), "record", *options, *words_of(program, place)]
    env = environment(place / "sites")
    done = subprocess.run(
        command, cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    assert b"etude record:" not in done.stderr, done.stderr
    assert done.returncode < 126, done.stderr
    trace = read_trace(tmp_path / "t")
    recorded = recorded_programs(trace)
    first = next(meta["pid"] for meta in trace.meta if meta["what"] == "process")
    compared = 0
    seen_programs = kernel.programs(set(recorded))
    for tid, mine in recorded.items():
        theirs = [programs_own(calls) for calls in seen_programs[tid]]
        if tid == first:
            theirs[0] = []
        assert len(mine) == len(theirs), tid
        for calls, seen in zip(mine, theirs, strict=True):
            names = [TABLE[each.number].name for each in seen]
            assert [call[0] for call in calls] == names
            assert list(calls) == [seen_call(*both) for both in zip(seen, calls, strict=True)]
            compared += len(calls)
    assert compared == trace.events > 5
