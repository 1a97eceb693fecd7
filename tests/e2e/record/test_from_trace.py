"""Traces of real programs become scripts; what these need is built; and played there, all comes out as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import TESTS
from support.played import Made, Player, prepare, script_of
from support.recordings import record

pytestmark = pytest.mark.beside

TREE = TESTS


def made(tmp_path: Path, *words: str, at: Path, options: tuple[str, ...] = (), **more: object) -> Made:
    done = record(*words, at=tmp_path / "it.trace", cwd=at, **more)
    assert done.status == 0, done.stderr
    return script_of(tmp_path / "it.trace", *options)


def played(made: Made, tmp_path: Path) -> Player:
    done = prepare(made.path, tmp_path / "replay")
    assert done.returncode == 0, done.stderr
    player = Player(tmp_path / "replay")
    player.play(made.steps)
    assert player.wrong == []
    return player


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with some of everything."""
    at = tmp_path / "work"
    (at / "src" / "sub").mkdir(parents=True)
    (at / "src" / "a.c").write_text("int main;\n" * 100)
    (at / "src" / "sub" / "b").write_bytes(os.urandom(70_000))
    (at / "src" / "sub" / "up").symlink_to("../a.c")
    (at / "src" / "empty").touch()
    os.link(at / "src" / "a.c", at / "src" / "again")
    with (at / "src" / "sparse").open("wb") as file:
        file.truncate(1 << 20)
    return at


LONG = """
import os
for name in ("a/" * 940, "a/" * 1000, "a/" * 2500):
    os.path.exists(name)
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
os.listdir(".")
for _ in range(30):
    os.chdir("..") if _ == 0 else os.mkdir("n" * 200)
    os.chdir("n" * 200) if _ else None
open("deep", "w").close()
"""


@pytest.mark.parametrize("technique", ["rewrite", "ptrace"])
def test_what_no_script_can_name_is_left_out_and_said(technique: str, tmp_path: Path, place: Path) -> None:
    words = [sys.executable, "-S", "-E", "-c", LONG]
    done = record(*words, at=tmp_path / "it.trace", options=["--technique", technique], cwd=place)
    assert done.status == 0, done.stderr
    script = script_of(tmp_path / "it.trace")
    whys = ("path of which only the beginning is recorded", "path in a directory that was removed")
    for why in (*whys, "path of more than 4095 bytes"):
        assert f'"{why}"' in script.text
    assert max(len(line) for line in script.text.splitlines()) < 4300
    played(script, tmp_path)


def test_a_copied_tree_can_be_played_where_only_what_it_needs_is(tmp_path: Path, place: Path) -> None:
    script = made(tmp_path, "cp", "-r", "src", "dst", at=place)
    assert 'file "src/sub/b" 70000' in script.text
    assert 'file "src/sparse" 1048576 sparse 0' in script.text
    assert 'link "src/sub/up" to "../a.c"' in script.text
    assert 'name "src/again" of "src/a.c"' in script.text or 'name "src/a.c" of "src/again"' in script.text
    assert str(tmp_path) not in script.text
    player = played(script, tmp_path)
    assert player.played > 100
    assert (tmp_path / "replay" / "etude_tmp1" / "sub" / "b").stat().st_size == 70_000
    assert any("renamed (created)" in line and line.endswith("= etude_tmp1") for line in script.said)


def test_tar_reads_what_was_there_and_makes_what_was_not(tmp_path: Path, place: Path) -> None:
    script = made(tmp_path, "tar", "cf", "x.tar", "src", at=place)
    assert '"etude_tmp1"' in "\n".join(script.steps)
    assert "x.tar" not in "\n".join(script.steps)
    played(script, tmp_path)
    assert (tmp_path / "replay" / "etude_tmp1").stat().st_size == (place / "x.tar").stat().st_size


def test_a_database_keeps_its_length_before_it_was_written(tmp_path: Path, place: Path) -> None:
    database = (
        "import sqlite3; c = sqlite3.connect('d.db'); c.execute('create table if not exists t(a)');"
        "c.executemany('insert into t values(?)', [(i,) for i in range(5000)]); c.commit()"
    )
    subprocess.run([sys.executable, "-c", database], cwd=place, check=True)
    before = (place / "d.db").stat().st_size
    python = sys.executable
    script = made(tmp_path, python, "-I", "-S", "-c", database, at=place)
    assert (place / "d.db").stat().st_size > before
    (line,) = [line for line in script.text.splitlines() if line.startswith('file "d.db"')]
    length = int(line.split()[-1])
    assert length == before if "at least" not in line else length <= before
    played(script, tmp_path)


@pytest.mark.needs_program("git", package="git")
def test_git_adds_a_tree(tmp_path: Path, place: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=place, check=True)
    script = made(tmp_path, "git", "add", "src", at=place)
    assert 'directory ".git/objects"' in script.text
    played(script, tmp_path)


def test_a_pipeline_becomes_processes_that_are_waited_for(tmp_path: Path, place: Path) -> None:
    command = "cat src/a.c | wc -l > n; (cd src/sub; cat ../empty b > ../../m); mv m k; rm n"
    script = made(tmp_path, "sh", "-c", command, at=place)
    forks = [line for line in script.steps if "fork(" in line]
    assert len(forks) == sum("wait(" in line for line in script.steps) >= 5
    assert any("pipe2(" in line for line in script.steps)
    assert sum("exec()" in line for line in script.steps) >= 4
    played(script, tmp_path)
    assert not any(line.endswith("etude_tmp1") for line in os.listdir(tmp_path / "replay"))


def test_threads_share_descriptors(tmp_path: Path, place: Path) -> None:
    program = """
import os, threading
def work(n):
    for i in range(200):
        fd = os.open("src/a.c", os.O_RDONLY)
        assert os.read(fd, 100)
        os.close(fd)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
"""
    script = made(tmp_path, sys.executable, "-I", "-S", "-c", program, at=place)
    assert sum("start(" in line for line in script.steps) == 4
    played(script, tmp_path)


def test_hashed_names_tell_nothing_and_can_be_played(tmp_path: Path, place: Path) -> None:
    secret = place / "secretly"
    shutil.copytree(place / "src", secret, symlinks=True)
    script = made(tmp_path, "cp", "-r", "secretly", "elsewhere", at=place, options=("--hash-names",))
    for word in ("secretly", "elsewhere", "/usr", "usr/", "a.c", "sparse ", "etude_tmp", "cp "):
        assert word not in script.text.replace(" sparse 0", ""), word
    played(script, tmp_path)


def test_a_directory_can_be_mapped(tmp_path: Path, place: Path) -> None:
    script = made(
        tmp_path, "cat", str(place / "src" / "a.c"), at=Path("/"), options=("--map", f"{place}=in/here")
    )
    assert 'file "in/here/src/a.c" 1000' in script.text
    played(script, tmp_path)


def test_without_a_snapshot_lengths_are_those_that_reads_imply(tmp_path: Path, place: Path) -> None:
    program = "import os; f = os.open('src/sub/b', 0); os.pread(f, 1000, 5000)"
    trace = tmp_path / "it.trace"
    words = (sys.executable, "-I", "-S", "-c", program)
    assert record(*words, at=trace, cwd=place, options=["--no-snapshot"]).status == 0
    script = script_of(trace)
    (line,) = (line for line in script.text.splitlines() if line.startswith('file "src/sub/b"'))
    assert line.endswith("at least 6000")
    assert any("been longer" in line for line in script.said)
    assert 'file "src/sub/b" 70000' not in script.text
    record(*words, at=tmp_path / "with.trace", cwd=place)
    assert 'file "src/sub/b" 70000' in script_of(tmp_path / "with.trace").text


def test_prepare_says_in_one_line_what_it_refuses(tmp_path: Path) -> None:
    script = tmp_path / "s"

    def refused(text: str, at: Path, code: int, word: str) -> None:
        script.write_text(text)
        done = prepare(script, at)
        lines = done.stderr.splitlines()
        assert (done.returncode, lines[0][:15]) == (code, "etude prepare: "), done.stderr
        assert word in lines[0], done.stderr
        assert code == 3 or len(lines) == 1, done.stderr

    used = tmp_path / "used"
    used.mkdir()
    (used / "x").touch()
    new = tmp_path / "new"
    head = "etude script 1\n"
    refused(head, used, 5, "not empty")
    refused(head, used / "x" / "y", 5, "cannot be made")
    refused("etude", new, 3, "script")
    refused(head + 'file "../x" 5\n', new, 3, "..")
    refused(head + 'file "/x" 5\n', new, 3, "directory of the replay")
    refused(head + 'link "l" to "../../x"\n', new, 3, "outside")
    refused(head + f'file "x" {1 << 60}\n', new, 5, "free")
    assert not new.exists()
    assert prepare(tmp_path / "none", new).returncode == 3
    assert subprocess.run(prepare(script, new, "--so").args, capture_output=True, check=False).returncode == 2


@pytest.mark.needs_root
def test_prepare_leaves_a_directory_of_another_user_alone(tmp_path: Path) -> None:
    (tmp_path / "s").write_text('etude script 1\nfile "x" 5\n')
    other = tmp_path / "other"
    other.mkdir()
    os.chown(other, 65534, 65534)
    done = prepare(tmp_path / "s", other)
    assert done.returncode == 5
    assert "another user" in done.stderr
    assert list(other.iterdir()) == []
