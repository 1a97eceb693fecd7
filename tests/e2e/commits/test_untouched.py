"""The user's checkout is the same byte for byte, whatever its builds do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.commits.build import Recipe
from etude.commits.builds import BuildCache
from etude.commits.commit_range import commit_range
from etude.errors import MachineRefuses
from etude.osutil.commands import wait_until
from support.c_history import BUILD, PROGRAM, QUIET, CHistory, c_history, git
from support.untouched import snapshot

pytestmark = [
    pytest.mark.beside,
    pytest.mark.needs_program("git"),
    pytest.mark.needs_program("gcc"),
    pytest.mark.needs_program("make"),
]
PATIENCE_S = 120.0
KILLED = """
import sys
from pathlib import Path
from etude.commits.build import Recipe
from etude.commits.builds import BuildCache
from etude.commits.commit_range import commit_range
found = commit_range(sys.argv[1], "v1", "main")
cache = BuildCache(found.repository, Path(sys.argv[2]), Recipe(sys.argv[3]))
cache.prefetch(found.commits, lambda build: print(build.commit, flush=True))
"""


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CHistory:
    """With a changed file, a new one, a stash, and hooks that would show."""
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    made = c_history(tmp_path / "repository", commits=20)
    place = made.repository
    (place / "notes.txt").write_text("stashed\n")
    git(place, "-c", "user.name=A", "-c", "user.email=a@example.org", "stash", "--quiet")
    (place / "notes.txt").write_text("changed\n")
    (place / "new.txt").write_text("new\n")
    hooks = place / ".git" / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {place}/hooked\n")
        (hooks / name).chmod(0o755)
    return made


def test_all_commits_are_built_and_nothing_is_touched(history: CHistory, tmp_path: Path) -> None:
    before = snapshot(history.repository)
    found = commit_range(history.repository, "v1", "main", ancestry=True)
    assert found.dirty is True
    cache = BuildCache(found.repository, tmp_path / "builds", Recipe(f"git describe --tags && {BUILD}"))
    builds = cache.prefetch(found.commits)
    failed = {build.commit for build in builds if build.state == "failed"}
    assert failed == {history.commits[at] for at in history.broken}
    assert len(builds) == len(history.commits) + len(history.side)
    # What changes only text makes the same program; one round for each number.
    programs = {b.commit: (b.directory / PROGRAM).read_bytes() for b in builds if b.state == "built"}
    rounds = {sha: each for sha, each in zip(history.commits, history.rounds, strict=True) if sha in programs}
    assert len({(programs[sha], each) for sha, each in rounds.items()}) == len(set(rounds.values()))
    assert all(build.changed() == () and build.outside == () for build in builds)
    assert snapshot(history.repository) == before


def test_killed_again_and_again_it_builds_each_once(history: CHistory, tmp_path: Path) -> None:
    before = snapshot(history.repository)
    count = tmp_path / "count"
    line = f"{BUILD} && echo $ETUDE_COMMIT >> {count}"
    words = [sys.executable, "-c", KILLED, str(history.repository), str(tmp_path / "builds"), line]
    done: list[str] = []
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            for _ in range(len(done) + 3):
                sha = process.stdout.readline().strip()
                done += [sha] if sha not in done else []
            process.send_signal(number)
        assert process.returncode != 0
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    built = count.read_text().split()
    expected = {sha for at, sha in enumerate(history.commits) if at not in history.broken}
    assert set(built) == expected
    # The one that was being built when the signal came may have been built twice.
    assert len(built) <= len(expected) + 3
    assert all(built.count(sha) == 1 for sha in done if sha in expected)
    assert snapshot(history.repository) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.parametrize(
    "line",
    ["cat /dev/zero > big", "said=$(cat /dev/zero 2>&1 > big); rm big; echo $said; exit 1"],
    ids=["full", "freed"],
)
def test_a_full_disk_is_no_failed_build(history: CHistory, small_disk: Path, line: str) -> None:
    found = commit_range(history.repository, "v1", "main")
    cache = BuildCache(found.repository, small_disk, Recipe(line))
    with pytest.raises(MachineRefuses):
        cache.build(found.bad)
    assert cache.lookup(found.bad) is None
    assert os.statvfs(small_disk).f_bavail * 4096 > 2_000_000, "what it had written is gone"


def test_processes_share_the_builds(history: CHistory, tmp_path: Path) -> None:
    count = tmp_path / "count"
    words = [sys.executable, "-c", KILLED, str(history.repository), str(tmp_path / "builds")]
    words.append(f"{BUILD} && echo $ETUDE_COMMIT >> {count}")
    running = [subprocess.Popen(words, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert wait_until(PATIENCE_S, lambda: all(each.poll() is not None for each in running))
    assert [each.returncode for each in running] == [0, 0]
    built = count.read_text().split()
    assert len(built) == len(set(built)) == len(history.commits) - len(history.broken)
