"""The programs that are replayed: what each finds in its directory, its command, and what a run leaves there."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recordings.work import AT_ONCE, PACK, THREADS, inserts, threads_program, tree
from rows import ROOT, peer


@dataclass(frozen=True)
class Size:
    """How much there is to do."""

    files: int
    file_bytes: int
    objects: int
    rows: int
    together: int
    units: int
    functions: int
    vertices: int
    edges: int
    cells: int
    steps: int
    blocks: int
    packed: int
    """Files, in directories of 200 that are each packed by a process."""
    transactions: int
    """Of each client of a database."""
    direct_bytes: int
    """Of the file that fio reads and writes past the cache."""


BENCH = Size(
    10_000, 16_000, 600, 120_000, 20_000, 4, 50, 120_000, 1_200_000, 72, 28, 2_000, 5_000, 150, 64 << 20
)
"""Warm, 0.3 to 0.6 s each on an idle machine: there is a recording of its own for each replay."""
SMALL = Size(40, 3_000, 20, 400, 100, 2, 4, 200, 3_000, 12, 6, 12, 400, 2, 1 << 20)
"""For tests: fractions of a second."""
CLIENTS = 2
DEPTH = 8


@dataclass(frozen=True)
class Workload:
    """A program that is run in its directory, after what makes it start alike each time."""

    name: str
    what: str
    command: Sequence[str]
    directory: Path
    leaves: Sequence[str]
    """Patterns of what a run makes, which is removed before the next one."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of its environment, besides the usual ones."""
    before: Callable[[], None] = lambda: None
    """What else is done before a run, after that."""
    parallel: bool = False
    """Whether several threads or processes do I/O at a time: fio plays one log by one job."""
    alike: bool = True
    """Whether a run leaves the same files as the one before: a database writes the time of day."""

    def fresh(self) -> None:
        for pattern in self.leaves:
            for path in list(self.directory.glob(pattern)):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.before()


def made(place: Path, name: str) -> Path:
    path = place / name
    path.mkdir(parents=True)
    return path


def tar(place: Path, size: Size) -> Workload:
    directory = made(place, "tar")
    tree(directory / "tree", size.files, size.file_bytes)
    what = f"tar of {size.files:,} files"
    return Workload("tar", what, ["tar", "-cf", "tree.tar", "tree"], directory, ["tree.tar"])


def sqlite(place: Path, size: Size) -> Workload:
    """Inserts into an indexed table, with its journal."""
    directory = made(place, "sqlite3")
    inserts(directory / "inserts.sql", size.rows, size.together)
    command = ["sqlite3", "t.db", ".read inserts.sql"]
    return Workload("sqlite3", f"sqlite3, {size.rows:,} inserts", command, directory, ["t.db*"])


def gcc(place: Path, size: Size) -> Workload:
    """The package that examples/compile compiles: make, sh, gcc, cc1, as."""
    return compiled(place, size, "gcc", 1)


def make(place: Path, size: Size) -> Workload:
    return compiled(place, size, "make", AT_ONCE)


def compiled(place: Path, size: Size, name: str, jobs: int) -> Workload:
    directory = made(place, name)
    generate = ROOT / "examples" / "lib" / "generate-tree.sh"
    subprocess.run([generate, directory, str(size.units), str(size.functions)], check=True)
    subprocess.run(["./configure"], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    what = (
        f"make{f' -j{jobs}' if jobs > 1 else ''} and gcc, {size.units} sources of {size.functions} functions"
    )
    # The compiler's own temporary files belong to what is replayed, too.
    variables = {"TMPDIR": str(directory)}
    command = ["make", "-s", f"-j{jobs}"]
    leaves = ["**/*.o", "generated", "cc*"]
    return Workload(name, what, command, directory, leaves, variables, parallel=jobs > 1)


def git(place: Path, size: Size) -> Workload:
    """Many files into objects of a new repository, each compressed, under a name of its own."""
    directory = made(place, "git")
    files = size.objects
    tree(directory / "tree", files, size.file_bytes)
    variables = {"HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}

    def start() -> None:
        command = ["git", "init", "-q", "-b", "main", "."]
        subprocess.run(command, cwd=directory, check=True, env={**os.environ, **variables})

    command = ["git", "add", "tree"]
    return Workload("git", f"git add of {files:,} files", command, directory, [".git"], variables, start)


def graph(place: Path, size: Size) -> Workload:
    """A loader of graphs in C: buffered reads of text, blocks of binary."""
    directory = made(place, "graph")
    program = peer("graph_ingest")
    numbers = [str(size.vertices), str(size.edges)]
    subprocess.run([program, "make", *numbers, "edges"], cwd=directory, check=True)
    command = [program, "ingest", "edges", "rows"]
    return Workload("graph", f"graph loader, {size.edges:,} edges", command, directory, ["rows"])


def fortran(place: Path, size: Size) -> Workload:
    """The I/O of a hydrodynamics code, by the library of gfortran."""
    directory = made(place, "fortran")
    command = [peer("hydro_kernel"), str(size.cells), str(size.steps)]
    what = f"Fortran kernel, {size.steps} steps of {size.cells}³ cells"
    return Workload("fortran", what, command, directory, ["dump-*", "restart", "history"])


def threads(place: Path, size: Size) -> Workload:
    directory = made(place, "threads")
    command = [*threads_program(), str(size.blocks)]
    what = f"{THREADS} threads, {size.blocks:,} blocks each"
    return Workload("threads", what, command, directory, ["own-*", "shared"], parallel=True)


def processes(place: Path, size: Size) -> Workload:
    """A shell, xargs, and under each of its shells a tar whose output a gzip takes from a pipe."""
    directory = made(place, "processes")
    tree(directory / "tree", size.packed, size.file_bytes)
    # Sorted: in the same order wherever the directory is.
    line = f"ls tree | {PACK}"
    what = f"xargs -P {AT_ONCE}, tar and gzip, {size.packed:,} files"
    command = ["sh", "-c", line]
    return Workload("processes", what, command, directory, ["part*.tar.gz"], parallel=True)


def grep(place: Path, size: Size) -> Workload:
    """A search of a tree by several processes, each of which writes to a pipe once, and no more than it takes whole."""
    directory = made(place, "grep")
    tree(directory / "tree", size.packed, size.file_bytes)
    line = f"find tree -type f | xargs -P {AT_ONCE} -n 100 grep -Hc 1a | sort > found"
    what = f"find, xargs -P {AT_ONCE} grep, {size.packed:,} files"
    return Workload("grep", what, ["sh", "-c", line], directory, ["found"], parallel=True)


def fio(place: Path, size: Size) -> Workload:
    """Reads and writes at random places by io_uring, several on their way, past the cache."""
    directory = made(place, "fio")
    given = {
        "name": "direct",
        "filename": "data",
        "ioengine": "io_uring",
        "iodepth": DEPTH,
        "rw": "randrw",
        "bs": "4k",
        "size": size.direct_bytes,
        "direct": 1,
        "randseed": 1,
        "buffer_pattern": "0x5a5a5a5a",
    }
    command = ["fio", "--thread", *(f"--{name}={value}" for name, value in given.items())]
    what = f"fio, io_uring, depth {DEPTH}, {size.direct_bytes >> 20} MiB"
    return Workload("fio", what, command, directory, ["data"], parallel=True)


def postgres(place: Path, size: Size) -> Workload:
    """A server that is started, serves clients that update rows, and is stopped."""
    directory = made(place, "postgres")
    data, pristine = directory / "data", directory / "pristine"
    before = as_server(directory)
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    initdb, pg_ctl, pgbench = map(postgres_program, ("initdb", "pg_ctl", "pgbench"))
    initialise = [*before, initdb, "-D", pristine, *shlex.split("-U etude -A trust -N -E UTF8")]
    subprocess.run(initialise, cwd=directory, **quiet)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = f"-c port={port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
    client = f"-h 127.0.0.1 -p {port} -U etude postgres"

    def serve(line: str) -> list[str]:
        start, stop = f"start -s -w -D data -l log -o '{settings}'", "stop -s -w -m fast -D data"
        return [*before, "sh", "-c", f"{pg_ctl} {start} && {pgbench} {line} {client}; {pg_ctl} {stop}"]

    def fresh() -> None:
        subprocess.run(["cp", "-a", pristine, data], check=True)

    fresh()
    subprocess.run(serve("-q -i -s 1"), cwd=directory, stderr=subprocess.DEVNULL, **quiet)
    shutil.rmtree(pristine)
    data.rename(pristine)
    what = f"PostgreSQL and pgbench, {CLIENTS} clients of {size.transactions} transactions"
    command = serve(f"-n -c {CLIENTS} -t {size.transactions} --random-seed 1")
    leaves = ["data", "log"]
    return Workload("postgres", what, command, directory, leaves, {}, fresh, parallel=True, alike=False)


def postgres_program(name: str) -> str:
    """Its path: Debian links some of them alone into the usual places."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    return str(found[-1]) if found else name


def as_server(directory: Path) -> list[str]:
    """Words before a command that refuses to run as root: as the user of the server, who may enter any directory."""
    if os.geteuid() != 0:
        return []
    shutil.chown(directory, "postgres", "postgres")
    caps = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *caps]


MAKERS: Mapping[str, Callable[[Path, Size], Workload]] = {
    "tar": tar,
    "sqlite3": sqlite,
    "gcc": gcc,
    "git": git,
    "graph": graph,
    "fortran": fortran,
    "threads": threads,
    "processes": processes,
    "make": make,
    "grep": grep,
    "fio": fio,
    "postgres": postgres,
}
PROGRAMS: Mapping[str, Sequence[str]] = {
    "sqlite3": ("sqlite3",),
    "gcc": ("gcc", "make"),
    "git": ("git",),
    "fortran": ("gfortran",),
    "make": ("gcc", "make"),
    "fio": ("fio",),
    "postgres": (postgres_program("initdb"), "pgbench"),
}
"""What has to be installed, besides what every Debian has and a C compiler."""


def missing(name: str) -> list[str]:
    return [program for program in PROGRAMS.get(name, ()) if shutil.which(program) is None]
