"""How much longer a recorded program runs: workloads of some seconds, a program that ends at once, and an exec."""

from __future__ import annotations

import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from etude.iotrace.reader import read_trace
from recordings.recorder import Scratch, run
from rows import (
    ROOT,
    Row,
    Spread,
    at_most,
    interleave,
    on_cpus,
    peer,
    progress,
    ratios,
    shown,
    spread,
    wall_s,
)

REACH, BUSY_REACH = 1.02, 1.05
MODERATE_PER_S = 5e4
"""Below so many calls a second, a run may take `REACH` times as long; above, `BUSY_REACH` times."""
CPU_REACH = {"tar": 1.3, "git": 1.2}
"""CPU time of program and recorder together, over that of the program alone."""
EXEC_MS = 1.0
EXECS = 200
STRACE = ("strace", "-f", "-ttt", "-T", "-o", "/dev/null")

FILES, FILE_BYTES, PASSES, GZIPS = 6000, 20_000, 20, 3
UNITS, FUNCTIONS = 8, 350
ROWS, TOGETHER, CACHE_KIB = 800_000, 40_000, 65_536
COMMITS, LOGS = 2500, 4
THREADS, BLOCKS = 4, 6_000
AT_ONCE = 2
PACK = f"xargs -n 1 -P {AT_ONCE} sh -c 'tar -cf - tree/$1 | gzip -1 > $1.tar.gz' pack"
"""Several shells at a time, under each a tar whose output a gzip takes from a pipe; it reads what to pack."""


@dataclass(frozen=True)
class Workload:
    """A shell command, run in its directory after what makes it start alike each time; `short` is less of the same."""

    what: str
    command: str
    directory: Path
    fresh: Callable[[], None] = lambda: None
    short: str = ""


@dataclass
class Found:
    """Wall and CPU seconds by party, aligned by round, and strace over plain of the short command."""

    plain: list[float]
    recorded: list[float]
    plain_cpu: list[float]
    recorded_cpu: list[float]
    """Of all processes, the recorder's among them."""
    events: int
    execs: int
    """That the last trace holds."""
    strace: float


def recorded_work(rounds: int, place: Scratch) -> list[Row]:
    found = []
    for make in (tar, gzipped, sqlite, git, compile_tree, threads, packed):
        workload = make(place.memory)
        seen = measured(workload, rounds, place)
        found += [work_row(workload.what, seen), cpu_row(workload, seen)]
        if make is gzipped:
            found.append(list_row(workload, rounds, place))
        shutil.rmtree(workload.directory)
    return [*found, *exec_rows(rounds, place), start_row(rounds, place)]


def measured(workload: Workload, rounds: int, place: Scratch) -> Found:
    """Plain and recorded in random order, after one recorded run that is not counted: it fills the caches."""

    cpu: dict[str, list[float]] = {"plain": [], "recorded": []}

    def party(name: str, *before: str) -> float:
        begun = cpu_s()
        took_s = elapsed_s([*before, "/bin/sh", "-c", workload.command], workload, place)
        cpu[name].append(cpu_s() - begun)
        return took_s

    def recorded() -> float:
        return party("recorded", *place.recorder("-q", "--no-snapshot"))

    recorded()
    cpu["recorded"].clear()
    progress(workload.what)
    found = interleave({"plain": lambda: party("plain"), "recorded": recorded}, rounds)
    last = read_trace(place.memory / "next.trace")
    execs = sum(each["what"] == "exec" for each in last.meta)
    spent = cpu["plain"], cpu["recorded"]
    return Found(found["plain"], found["recorded"], *spent, last.events, execs, strace_ratio(workload, place))


def cpu_s() -> float:
    """CPU time of all processes that were started here and have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def list_row(workload: Workload, rounds: int, place: Scratch) -> Row:
    """What the list of files takes that the recorder makes when the program has ended."""

    def recorded(*options: str) -> float:
        words = [*place.recorder("-q", *options), "/bin/sh", "-c", workload.command]
        return elapsed_s(words, workload, place)

    found = interleave({"with": recorded, "without": lambda: recorded("--no-snapshot")}, rounds)
    took = spread([1e3 * (a - b) for a, b in zip(found["with"], found["without"], strict=True)])
    return shown(f"ms after the program's end, for the list of files: {workload.what}", "–", f"{took} ms")


def strace_ratio(workload: Workload, place: Scratch) -> float:
    """Once, on one CPU, where strace is quickest: it takes as much as a hundred times longer."""
    words = ["/bin/sh", "-c", workload.short or workload.command]
    with on_cpus({max(os.sched_getaffinity(0))}):
        plain = elapsed_s(words, workload, place)
        return elapsed_s([*STRACE, *words], workload, place) / plain


def elapsed_s(words: Sequence[str], workload: Workload, place: Scratch) -> float:
    workload.fresh()
    return wall_s(words, cwd=workload.directory, env=place.environment)


def work_row(what: str, found: Found) -> Row:
    plain, ratio = spread(found.plain), ratios(found.recorded, found.plain)
    rate = found.events / plain.median
    most = REACH if rate < MODERATE_PER_S else BUSY_REACH
    base = f"plain, {plain.median:.3g} s; strace {found.strace:.3g} ×"
    about = f"{rate:,.0f} I/O calls/s, {found.execs} execs"
    what = f"run time recorded / plain: {what}; {about}"
    return at_most(what, base, ratio, most)


def cpu_row(workload: Workload, found: Found) -> Row:
    plain, ratio = spread(found.plain_cpu), ratios(found.recorded_cpu, found.plain_cpu)
    most = CPU_REACH.get(workload.directory.name)
    what, base = f"CPU time, program and recorder / plain: {workload.what}", f"plain, {plain.median:.3g} s"
    return at_most(what, base, ratio, most) if most else shown(what, base, f"{ratio} ×")


def tree(directory: Path, files: int = FILES, file_bytes: int = FILE_BYTES) -> None:
    """Files of many sizes, 200 to a directory."""
    generator = random.Random(1)
    for number in range(files):
        path = directory / f"part{number // 200}" / f"file-{generator.randrange(10**6)}-{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = " ".join(f"{generator.randrange(10**5):x}" for _ in range(generator.randrange(20)))
        size = int(generator.expovariate(1 / file_bytes))
        path.write_text((text * (size // max(len(text), 1) + 1))[:size])


def made(memory: Path, name: str) -> Path:
    path = memory / name
    path.mkdir()
    return path


def tar(memory: Path) -> Workload:
    """Nothing but reading files and writing them to one."""
    directory = made(memory, "tar")
    tree(directory / "tree")
    one = "tar -cf tree.tar tree"
    command = f"for i in $(seq {PASSES}); do {one}; done"
    return Workload(f"tar of {FILES} files, {PASSES} times", command, directory, short=one)


def gzipped(memory: Path) -> Workload:
    """The same through gzip, as most are made."""
    directory = made(memory, "tar.gz")
    tree(directory / "tree")
    one = "tar -c tree | gzip -9 > tree.tar.gz"
    command = f"for i in $(seq {GZIPS}); do {one}; done"
    return Workload(f"tar and gzip -9 of {FILES} files, {GZIPS} times", command, directory, short=one)


def inserts(path: Path, rows: int, together: int) -> None:
    """Statements that fill an indexed table, so many rows to a transaction."""
    generator = random.Random(1)
    with path.open("w") as file:
        file.write(f"pragma cache_size = -{CACHE_KIB};\n")
        file.write("create table t (id integer primary key, key text, value real);\n")
        file.write("create index i on t (key);\n")
        for number in range(rows):
            file.write("begin;\n" if number % together == 0 else "")
            key, value = generator.randrange(10**9), generator.random()
            file.write(f"insert into t (key, value) values ('{key:x}', {value:.6f});\n")
            file.write("commit;\n" if number % together == together - 1 or number == rows - 1 else "")


def sqlite(memory: Path) -> Workload:
    """Inserts into an indexed table, forty thousand to a transaction, with a cache that holds it."""
    directory = made(memory, "sqlite3")
    inserts(directory / "inserts.sql", ROWS, TOGETHER)

    def fresh() -> None:
        for path in directory.glob("t.db*"):
            path.unlink()

    short = f"head -n {ROWS // 10} inserts.sql | sqlite3 t.db"
    return Workload(f"sqlite3, {ROWS:,} inserts", "sqlite3 t.db < inserts.sql", directory, fresh, short)


def git(memory: Path) -> Workload:
    """The differences of all commits of a repository."""
    directory = made(memory, "git")
    generator = random.Random(1)
    texts = [[f"line {line} of {file}" for line in range(200)] for file in range(100)]
    stream = ["blob\nmark :1\ndata 0\n"]
    for commit in range(COMMITS):
        stream.append(f"commit refs/heads/main\ncommitter A <a@example.org> {1_500_000_000 + commit} +0000\n")
        stream.append("data 7\ncommit\n\n")
        for file in generator.sample(range(len(texts)), 3):
            texts[file][generator.randrange(200)] = f"line changed by {commit}: {generator.randrange(10**6)}"
            text = "\n".join(texts[file]) + "\n"
            stream.append(f"M 100644 inline d{file % 10}/file{file}\ndata {len(text)}\n{text}\n")
    subprocess.run(["git", "init", "-q", "-b", "other", "."], cwd=directory, check=True)
    feed = ["git", "fast-import", "--quiet"]
    subprocess.run(feed, cwd=directory, input="".join(stream), text=True, check=True)
    one = "git --no-pager log -p --stat main"
    command = f"for i in $(seq {LOGS}); do {one}; done"
    return Workload(f"git log -p of {COMMITS:,} commits, {LOGS} times", command, directory, short=one)


def compile_tree(memory: Path) -> Workload:
    """The package that examples/compile compiles, with fewer and longer sources."""
    directory = made(memory, "make")
    generate = ROOT / "examples" / "lib" / "generate-tree.sh"
    subprocess.run([generate, directory, str(UNITS), str(FUNCTIONS)], check=True)
    subprocess.run(["./configure"], cwd=directory, check=True, stdout=subprocess.DEVNULL)

    def fresh() -> None:
        for path in [*directory.rglob("*.o"), directory / "generated"]:
            path.unlink(missing_ok=True)

    return Workload(f"make and gcc, {UNITS} sources of {FUNCTIONS} functions", "make -s", directory, fresh)


def threads(memory: Path) -> Workload:
    directory = made(memory, "threads")
    program = shlex.join(threads_program())
    what = f"{THREADS} threads, {BLOCKS:,} blocks each"
    return Workload(what, f"{program} {BLOCKS}", directory, short=f"{program} {BLOCKS // 10}")


def threads_program() -> list[str]:
    return [peer("thread_files", "-pthread"), str(THREADS)]


def packed(memory: Path) -> Workload:
    """Many short programs that use the same directories."""
    directory = made(memory, "packed")
    tree(directory / "tree")
    what = f"xargs -P {AT_ONCE}, tar and gzip -1, {FILES:,} files"
    return Workload(what, f"ls tree | {PACK}", directory, short=f"ls tree | head -n 6 | {PACK}")


def exec_rows(rounds: int, place: Scratch) -> list[Row]:
    """A loop of posix_spawn and wait4."""
    loop = [peer("spawn_loop"), str(EXECS), "/bin/true"]

    def each_ms(*before: str) -> float:
        text = run([*before, *loop], place).stdout
        return float(re.findall(r"mean ([\d.]+)", text)[0]) / 1e3

    def on_one_cpu() -> float:
        with on_cpus({max(os.sched_getaffinity(0))}):
            return each_ms(*STRACE)

    parties: dict[str, Callable[[], float]] = {
        "plain": each_ms,
        "recorded": lambda: each_ms(*place.recorder("-q")),
        "strace": on_one_cpu,
    }
    parties["recorded"]()
    found = interleave(parties, rounds)
    plain = spread(found["plain"])
    ours, theirs = (added(found[name], found["plain"]) for name in ("recorded", "strace"))
    base = f"plain, {plain.median:.3g} ms; strace adds {theirs.median:.3g} ms"
    what = f"ms added to an exec: {EXECS} × /bin/true by posix_spawn, its code scanned before"
    return [Row(what, base, str(ours), f"≤ {EXEC_MS:g}", ours.median <= EXEC_MS)]


def start_row(rounds: int, place: Scratch) -> Row:
    def whole_ms(*before: str) -> float:
        start = time.perf_counter()
        run([*before, "/bin/true"], place)
        return 1e3 * (time.perf_counter() - start)

    found = interleave({"plain": whole_ms, "recorded": lambda: whole_ms(*place.recorder("-q"))}, rounds)
    plain = spread(found["plain"])
    ours = added(found["recorded"], found["plain"])
    return shown("ms added to a whole run: /bin/true", f"plain, {plain.median:.3g} ms", str(ours))


def added(values: Sequence[float], plain: Sequence[float]) -> Spread:
    return spread([a - b for a, b in zip(values, plain, strict=True)])
