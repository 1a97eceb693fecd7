"""The eight programs that are replayed: what each finds in its directory, its command, and what a run leaves there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recorded_work import inserts, tree
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


BENCH = Size(10_000, 16_000, 600, 120_000, 20_000, 4, 50, 120_000, 1_200_000, 72, 28, 2_000, 5_000)
"""Warm, 0.3 to 0.6 s each on an idle machine: there is a recording of its own for each replay."""
SMALL = Size(40, 3_000, 20, 400, 100, 2, 4, 200, 3_000, 12, 6, 12, 400)
"""For tests: fractions of a second."""
THREADS = 4
AT_ONCE = 2


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

    def fresh(self) -> None:
        """Make the directory as it was at the beginning."""
        for pattern in self.leaves:
            for path in list(self.directory.glob(pattern)):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.before()


def made(place: Path, name: str) -> Path:
    """A new directory."""
    path = place / name
    path.mkdir(parents=True)
    return path


def tar(place: Path, size: Size) -> Workload:
    """Many small files into one."""
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
    directory = made(place, "gcc")
    generate = ROOT / "examples" / "lib" / "generate-tree.sh"
    subprocess.run([generate, directory, str(size.units), str(size.functions)], check=True)
    subprocess.run(["./configure"], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    what = f"make and gcc, {size.units} sources of {size.functions} functions"
    # The compiler's own temporary files belong to what is replayed, too.
    variables = {"TMPDIR": str(directory)}
    return Workload("gcc", what, ["make", "-s"], directory, ["**/*.o", "generated", "cc*"], variables)


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
    """Threads with files of their own and a shared one."""
    directory = made(place, "threads")
    command = [peer("thread_files", "-pthread"), str(THREADS), str(size.blocks)]
    what = f"{THREADS} threads, {size.blocks:,} blocks each"
    return Workload("threads", what, command, directory, ["own-*", "shared"], parallel=True)


def processes(place: Path, size: Size) -> Workload:
    """A shell, xargs, and under each of its shells a tar whose output a gzip takes from a pipe."""
    directory = made(place, "processes")
    tree(directory / "tree", size.packed, size.file_bytes)
    pack = "tar -cf - tree/$1 | gzip -1 > $1.tar.gz"
    # Sorted: in the same order wherever the directory is.
    line = f"ls tree | xargs -n 1 -P {AT_ONCE} sh -c '{pack}' pack"
    what = f"xargs -P {AT_ONCE}, tar and gzip, {size.packed:,} files"
    command = ["sh", "-c", line]
    return Workload("processes", what, command, directory, ["part*.tar.gz"], parallel=True)


MAKERS: Mapping[str, Callable[[Path, Size], Workload]] = {
    "tar": tar,
    "sqlite3": sqlite,
    "gcc": gcc,
    "git": git,
    "graph": graph,
    "fortran": fortran,
    "threads": threads,
    "processes": processes,
}
PROGRAMS: Mapping[str, Sequence[str]] = {
    "sqlite3": ("sqlite3",),
    "gcc": ("gcc", "make"),
    "git": ("git",),
    "fortran": ("gfortran",),
}
"""What has to be installed, besides what every Debian has and a C compiler."""


def missing(name: str) -> list[str]:
    """Programs of a workload that are not installed."""
    return [program for program in PROGRAMS.get(name, ()) if shutil.which(program) is None]
