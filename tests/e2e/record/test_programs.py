"""50 programs of /usr/bin: recorded, they do what they do otherwise, and every read and write is there.

Each is run twice plainly and once recorded, each time in a new directory with the same files. What is compared: both
outputs, the exit status, and all that stands in the directory afterwards.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.places import ROOT
from support.recordings import complete, environment, record

pytestmark = pytest.mark.beside

MARKS = {"fork", "thread", "input", "error", "signal"}


@dataclass(frozen=True)
class Program:
    """One of them."""

    words: tuple[str, ...]
    input: str | None = None
    """The file that is its standard input; none: it has none."""
    kinds: tuple[str, ...] = ()
    package: str | None = None
    """The Debian package that it is in; none: one that every Debian has."""


@dataclass(frozen=True)
class Done:
    """What a run leaves."""

    status: int
    stdout: bytes
    stderr: bytes
    files: Mapping[str, bytes]


def run(text: str, *kinds: str, input: str | None = None, package: str | None = None) -> Program:
    return Program(tuple(text.split()), input, kinds, package)


def sh(
    text: str, *kinds: str, input: str | None = None, shell: str = "sh", package: str | None = None
) -> Program:
    return Program((shell, "-c", text), input, kinds, package)


PERL_FORKS = (
    'for (1..5) { if (!fork) { open F, "text"; my @l = <F>; exit @l % 7 } wait; print $? >> 8, "\\n" }'
)
PYTHON_THREADS = """
import subprocess, threading
sizes = [0] * 8
def work(n):
    with open("text") as file:
        sizes[n] = sum(map(len, file)) + len(subprocess.check_output(["cat", "text"]))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sizes)
"""

PROGRAMS = [
    # plain readers and writers
    run("cat text tree/a tree/b"),
    run("sort -r text"),
    run("uniq -c text"),
    run("wc text tree/a"),
    run("sha256sum text tree/a tree/b"),
    run("base64 text"),
    run("od -A d -t x1z text"),
    run("tac text"),
    run("cut -c 2-9 text"),
    run("sed -n -e s/7/seven/p text"),
    run("grep -rn 99 tree"),
    run("mawk {s+=$2}END{print(s)} text", package="mawk"),
    run("find tree -type f -size +1k -printf %p:%s\\n"),
    run("ls -l --time-style=+%s tree"),
    run("stat -c %n:%s:%f text tree"),
    run("tar -c -f - --sort=name tree"),
    run("gzip -9 -n text"),
    run("cp -r tree copy"),
    run("split -l 100 text part-"),
    run("csplit -s text /500/ /900/"),
    run("dd if=text of=out bs=7 count=1000 conv=swab status=none"),
    run("shuf --random-source=text text"),
    run("join text text"),
    run("bzip2 -k text", package="bzip2"),
    run("perl -ne print(scalar(reverse)) text"),
    # standard input
    run("tr 0-9 a-j", "input", input="text"),
    run("head -c 100", "input", input="text"),
    run("tee copy-1 copy-2", "input", input="text"),
    run("sh -s a b", "input", "fork", input="script"),
    run("xargs -n 50 echo", "input", "fork", input="text"),
    run("diff - tree/a", "input", "error", input="text"),
    # children and threads
    sh("cat text | sort | uniq -d | wc -l; (cd tree; echo *) | tr a-z A-Z", "fork"),
    sh(
        "while read a b; do echo $((b * 2)); done < text | tail -5; diff <(cat text) <(tac text | tac)",
        "fork",
        shell="bash",
    ),
    run("find tree -type f -exec cksum {} ;", "fork"),
    run("tar -c -z -f out.tar.gz --sort=name --mtime=@0 tree", "fork"),
    run("sort --parallel=4 -S 64k -T . text", "thread"),
    run("timeout 20 md5sum text", "fork"),
    run("zgrep -c 11 text.gz", "fork"),
    run("flock lock sort -n -k 2 text", "fork"),
    run("setsid --wait wc -l text", "fork"),
    Program(("perl", "-e", PERL_FORKS), kinds=("fork",)),
    Program(("/usr/bin/python3", "-c", PYTHON_THREADS), kinds=("fork", "thread"), package="python3-venv"),
    run("gcc -O1 -o program program.c", "fork", package="gcc"),
    run("make -s -j 2", "fork", package="make"),
    run("groff -T ascii -man page.1", "fork", package="groff-base"),
    run("shellcheck script", "thread", "error", package="shellcheck"),
    # errors and signals
    run("cat text missing", "error"),
    run("cmp text tree/a", "error"),
    sh("cat text > /dev/null; kill -KILL $$", "signal"),
    sh("ulimit -c 0; kill -SEGV $$", "signal"),
    sh("yes | head -n 3; yes > /dev/full", "signal", "error", "fork", shell="bash"),
    run("perl -e open(F,q(text));<F>;abort()if(0);kill(15,$$);sleep(9)", "signal"),
    run("timeout -s INT 0.2 sleep 20", "signal", "error", "fork"),
    run("env no-such-program", "error"),
]


def named(program: Program) -> str:
    return " ".join(program.words)[:40].replace("\n", " ")


def marked(program: Program) -> object:
    name = Path(program.words[0]).name
    mark = pytest.mark.needs_program(name, package=program.package or "(every Debian has it)")
    return pytest.param(program, marks=mark, id=named(program))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What each program finds in its directory."""
    place = tmp_path_factory.mktemp("files")
    lines = [f"{n * 7919 % 1000:03} {n * n % 4099}" for n in range(2000)]
    (place / "text").write_text("".join(f"{line}\n" for line in lines))
    (place / "tree").mkdir()
    for n, name in enumerate("abcde"):
        (place / "tree" / name).write_text("".join(f"{line}\n" for line in lines[n * 100 : n * 400]))
    subprocess.run(["gzip", "-k", "-n", "text"], cwd=place, check=True)
    (place / "script").write_text(
        '#!/bin/sh\nfor f in tree/*; do wc -l < $f; done\necho "$@"\ncat text | tail -1\nexit 4\n'
    )
    (place / "program.c").write_text('#include <stdio.h>\nint main(void) { return puts("made") < 0; }\n')
    (place / "Makefile").write_text(
        "all: one two three\none two three:\n\tsort -n text > $@ && wc -c $@ > $@.count\n"
    )
    (place / "page.1").write_text(
        ".TH PAGE 1\n.SH NAME\npage \\- a page\n.SH TEXT\n" + "Words of it.\n" * 200
    )
    for path in place.rglob("*"):
        os.utime(path, (1e9, 1e9))
    return place


def copy(files: Path, to: Path) -> Path:
    """The same place each time: names of directories reach outputs."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(files, to, copy_function=shutil.copy2)
    for path in to.rglob("*"):
        os.utime(path, (1e9, 1e9))
    return to


def left(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def plainly(program: Program, files: Path, place: Path, env: Mapping[str, str]) -> Done:
    copy(files, place)
    with open(place / program.input if program.input else os.devnull, "rb") as file:
        done = subprocess.run(
            program.words, stdin=file, capture_output=True, cwd=place, env=env, timeout=60, check=False
        )
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Done(status, done.stdout, done.stderr, left(place))


@pytest.mark.parametrize("program", [marked(program) for program in PROGRAMS])
def test_a_recorded_program_does_what_it_does_otherwise(
    program: Program, files: Path, tmp_path: Path
) -> None:
    env = environment(files.parent / "sites")
    place = tmp_path / "place"
    first, second = (plainly(program, files, place, env) for _ in range(2))
    assert first == second, "its two plain runs do not agree"
    copy(files, place)
    with open(place / program.input if program.input else os.devnull, "rb") as file:
        done = record(*program.words, at=tmp_path / "t", stdin=file, cwd=place, env=env)
    assert Done(done.status, done.stdout, done.stderr, left(place)) == first
    trace = done.trace()
    assert trace.partial == ""
    assert complete(trace)
    assert not [each for each in trace.meta if each["what"] in ("dropped", "unrecorded")]


def test_the_programs_are_50_of_all_kinds() -> None:
    assert len({program.words for program in PROGRAMS}) >= 50
    kinds = [set(program.kinds) for program in PROGRAMS]
    assert all(each <= MARKS for each in kinds)
    assert sum(bool(each & {"fork", "thread"}) for each in kinds) >= 10
    assert sum("input" in each for each in kinds) >= 5
    assert sum(bool(each & {"error", "signal"}) for each in kinds) >= 5


def test_the_packages_of_the_programs_are_installed_for_tests() -> None:
    path = ROOT / "packaging" / "debian-packages.txt"
    listed = {line.split()[0] for line in path.read_text().splitlines() if line.strip() and line[0] != "#"}
    required = {"mawk"}  # Priority required
    assert {program.package for program in PROGRAMS if program.package} <= listed | required
