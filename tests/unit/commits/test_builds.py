"""Builds are made once, kept within bounds, and stay within their trees."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from etude.commits.build import Build, Recipe
from etude.commits.build_run import MARK, stop_build
from etude.commits.builds import BuildCache
from etude.commits.commit_range import CommitRange, commit_range
from etude.errors import InputError, UsageError
from etude.machine.leftovers import is_gone, marked_processes
from etude.osutil.commands import wait_until
from support.untouched import snapshot

pytestmark = pytest.mark.needs_program("git")
PATIENCE_S = 60.0


@pytest.fixture
def commits(repository: Path) -> CommitRange:
    return commit_range(repository, "v1", "main")


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    """Each build adds a line."""
    return tmp_path / "count"


Opened = Callable[..., BuildCache]


@pytest.fixture
def opened(commits: CommitRange, tmp_path: Path, counter: Path) -> Iterator[Opened]:
    """A cache in the same directory each time, whose builds are counted."""

    def make(line: str = "cp n out", limit_s: float | None = None, **options: object) -> BuildCache:
        recipe = Recipe(f"echo >> {counter}; {line}", limit_s)
        return BuildCache(commits.repository, tmp_path / "builds", recipe, **options)  # type: ignore[arg-type]

    yield make
    for lock in (tmp_path / "builds").glob("*.lock"):
        stop_build(lock.with_suffix(""))


def count(counter: Path) -> int:
    return counter.read_text().count("\n") if counter.exists() else 0


def test_a_build_has_the_files_and_variables_of_its_commit(opened: Opened, commits: CommitRange) -> None:
    line = f"cp n out; echo $ETUDE_COMMIT $SOURCE_DATE_EPOCH ${MARK}; pwd; echo; echo  last"
    build = opened(line).build(commits.commits[1])
    assert (build.state, build.status, build.last_line, build.outside) == ("built", 0, "last", ())
    assert (build.directory / "out").read_text() == "2\n"
    sha = commits.commits[1].sha
    assert build.log.read_text().split() == [
        sha,
        "1767225602",
        str(build.directory),
        str(build.directory),
        "last",
    ]
    assert (build.commit, build.size_bytes > 0, build.changed()) == (sha, True, ())


def test_a_build_is_made_once(opened: Opened, commits: CommitRange, counter: Path) -> None:
    first = opened().build(commits.bad)
    assert opened().lookup(commits.bad) == opened().build(commits.bad) == first
    assert count(counter) == 1
    assert opened("cp n other").lookup(commits.bad) is None
    assert opened().lookup(commits.good) is None


@pytest.mark.parametrize(("name", "matters"), [("CFLAGS", True), ("CC", True), ("COLUMNS", False)])
def test_variables_of_build_tools_matter(
    opened: Opened, commits: CommitRange, name: str, matters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name, raising=False)
    before = opened()
    before.build(commits.bad)
    monkeypatch.setenv(name, "other")
    assert (opened().lookup(commits.bad) is None) is matters


def test_variables_of_a_recipe_are_set_and_matter() -> None:
    assert Recipe("x", variables={"A": "1"}).digest() != Recipe("x").digest()
    assert Recipe("x", limit_s=3.0).digest() == Recipe("x").digest()
    assert Recipe("\udcff", variables={"A": "\udcff"}).digest()


def test_variables_of_a_recipe_are_seen(commits: CommitRange, tmp_path: Path) -> None:
    recipe = Recipe("echo $A-$GIT_DIR", variables={"A": "x y"})
    assert BuildCache(commits.repository, tmp_path / "b", recipe).build(commits.bad).last_line == "x y-"


def test_a_failed_build_is_remembered(opened: Opened, commits: CommitRange, counter: Path) -> None:
    line = "echo cannot; exit 3"
    build = opened(line).build(commits.bad)
    assert (build.state, build.status, build.last_line, build.size_bytes) == ("failed", 3, "cannot", 0)
    assert not build.directory.exists()
    assert opened(line).build(commits.bad) == build
    assert count(counter) == 1
    again = opened(line, retry_failed=True)
    assert again.lookup(commits.bad) is None
    again.build(commits.bad)
    again.build(commits.bad)
    with again.using(commits.bad) as (used,):
        assert used.state == "failed"
    assert count(counter) == 2, "tried once more, not for ever"


def test_a_build_is_ended_by_a_signal(opened: Opened, commits: CommitRange) -> None:
    build = opened("kill -SEGV $$").build(commits.bad)
    assert (build.state, build.status) == ("failed", -signal.SIGSEGV)


def test_a_build_that_takes_too_long_is_ended(opened: Opened, commits: CommitRange, counter: Path) -> None:
    line = "setsid sleep 1000 & sleep 1000"
    build = opened(line, 0.3).build(commits.bad)
    assert (build.state, build.status, build.limit_s) == ("timed out", None, 0.3)
    assert marked_processes(MARK, str(build.directory)) == []
    assert opened(line, 0.3).lookup(commits.bad) == build
    assert opened(line, 0.2).lookup(commits.bad) == build
    assert opened(line, 0.4).lookup(commits.bad) is None, "a longer limit may be enough"
    assert opened(line).lookup(commits.bad) is None


def test_what_a_build_starts_ends_with_it(opened: Opened, commits: CommitRange, tmp_path: Path) -> None:
    hidden = "env -i sleep 1001 & echo $!"
    build = opened(f"setsid sleep 1000 & {hidden} > {tmp_path}/pid").build(commits.bad)
    assert build.state == "built"
    assert marked_processes(MARK, str(build.directory)) == []
    assert wait_until(PATIENCE_S, lambda: is_gone(int((tmp_path / "pid").read_text())))


def test_the_least_recently_used_are_removed(opened: Opened, commits: CommitRange) -> None:
    line = "head -c 1000000 /dev/zero > out"
    cache = opened(line, limit_bytes=2_500_000)
    one, two, three, four = commits.commits
    for number, commit in enumerate((one, two)):
        record = cache.build(commit).directory.with_suffix(".json")
        os.utime(record, (number, number))
    cache.build(one)
    cache.build(three)
    assert [cache.lookup(commit) is not None for commit in commits.commits] == [True, False, True, False]
    with cache.using(one, three) as pinned:
        cache.build(four)
        assert [each.directory.is_dir() for each in pinned] == [True, True]
        assert cache.size_bytes() > 2_500_000
    cache.build(two)
    assert cache.size_bytes() <= 2_500_000
    assert cache.lookup(two) is not None


def test_a_build_in_use_by_another_process_is_not_removed(opened: Opened, commits: CommitRange) -> None:
    line = "head -c 1000000 /dev/zero > out"
    with opened(line).using(commits.good) as (held,):
        opened(line, limit_bytes=1).build(commits.bad)
        assert (held.directory / "out").stat().st_size == 1_000_000
    opened(line, limit_bytes=1).build(commits.commits[1])
    assert not held.directory.exists()


def test_a_tree_that_nobody_may_write_is_removed(opened: Opened, commits: CommitRange) -> None:
    line = "mkdir -p a/b; touch a/b/c; chmod 500 a/b a"
    first = opened(line, limit_bytes=1).build(commits.good)
    opened(line, limit_bytes=1).build(commits.bad)
    assert not first.directory.exists()


def test_builds_are_made_ahead_while_there_is_room(opened: Opened, commits: CommitRange) -> None:
    seen: list[Build] = []
    line = "case $(cat n) in 2) exit 1;; *) head -c 1000000 /dev/zero > out;; esac"
    found = opened(line, limit_bytes=1_500_000).prefetch(commits.commits, seen.append)
    assert [build.state for build in found] == ["built", "failed", "built"]
    assert list(found) == seen
    assert all(build.directory.is_dir() == (build.state == "built") for build in found)


def test_a_damaged_record_is_no_build(opened: Opened, commits: CommitRange, counter: Path) -> None:
    cache = opened()
    build = cache.build(commits.bad)
    record = build.directory.with_suffix(".json")
    good = record.read_bytes()
    for content in (b"", good[:-5], b"{}", good.replace(b'"format": 1', b'"format": 99')):
        record.write_bytes(content)
        assert cache.lookup(commits.bad) is None
    assert opened().build(commits.bad).state == "built"
    assert count(counter) == 2


def test_a_moved_directory_is_still_a_cache(opened: Opened, commits: CommitRange, tmp_path: Path) -> None:
    cache = opened()
    cache.build(commits.bad)
    (tmp_path / "builds").rename(tmp_path / "moved")
    found = BuildCache(cache.repository, tmp_path / "moved", cache.recipe).lookup(commits.bad)
    assert found is not None
    assert (found.directory / "out").read_text() == "4\n"
    assert found.changed() == ()


@pytest.mark.parametrize("protect", [True, False])
def test_a_build_that_writes_outside_is_found(opened: Opened, commits: CommitRange, protect: bool) -> None:
    user = commits.repository.path
    cache = opened(f"echo x > {user}/n", protect=protect)
    before = snapshot(user)
    build = cache.build(commits.bad)
    if cache.protected:
        assert snapshot(user) == before
        assert (build.state, len(build.outside)) == ("failed", 1)
        assert str(user / "n") in build.outside[0]
    else:
        assert (build.state, build.outside) == ("built", (str(user / "n"),))
    assert read_again(cache, commits) == build


def read_again(cache: BuildCache, commits: CommitRange) -> Build | None:
    return BuildCache(cache.repository, cache.directory, cache.recipe).lookup(commits.bad)


@pytest.mark.parametrize("protect", [True, False])
def test_a_build_that_writes_to_another_is_found(opened: Opened, commits: CommitRange, protect: bool) -> None:
    line = f"for each in ../{commits.good.sha}-*/out; do test ! -f $each || echo x > $each; done; cp n out"
    cache = opened(line, protect=protect)
    first = cache.build(commits.good)
    second = cache.build(commits.bad)
    assert len(second.outside) == 1
    assert first.changed() == (() if cache.protected else ("out",))


def test_builds_may_stand_in_the_checkout(commits: CommitRange) -> None:
    place = commits.repository.path / "results" / "builds"
    for protect in (True, False):
        cache = BuildCache(commits.repository, place, Recipe(f"cp n out; : {protect}"), protect=protect)
        build = cache.build(commits.bad)
        assert (build.state, build.outside) == ("built", ())


def test_a_benchmark_that_changes_the_tree_is_found(opened: Opened, commits: CommitRange) -> None:
    build = opened("cp n out; mkdir d; touch d/x").build(commits.bad)
    tree = build.directory
    subprocess.run(["git", "-C", tree, "status"], check=True, capture_output=True)
    (tree / "results.txt").touch()
    assert build.changed() == ()
    (tree / "out").write_text("longer")
    (tree / "d" / "x").unlink()
    assert build.changed() == ("d/x", "out")
    subprocess.run(["git", "-C", tree, "checkout", "-q", "HEAD~1"], check=True)
    assert build.changed() == (".git/HEAD", "d/x", "n", "out")
    tree.with_suffix(".state").unlink()
    with pytest.raises(InputError):
        build.changed()


def test_two_at_once_build_once(opened: Opened, commits: CommitRange, counter: Path) -> None:
    line = "sleep 0.5; cp n out"
    found: list[Build] = []
    caches = [opened(line) for _ in range(3)]
    threads = [threading.Thread(target=lambda c=c: found.append(c.build(commits.bad))) for c in caches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 3
    assert count(counter) == 1


@pytest.mark.parametrize("line", ["", " \n", "a\0b"])
def test_an_empty_line_is_refused(commits: CommitRange, tmp_path: Path, line: str) -> None:
    with pytest.raises(UsageError):
        BuildCache(commits.repository, tmp_path / "b", Recipe(line))


PROGRAM = """
import sys
from pathlib import Path
from etude.commits.build import Recipe
from etude.commits.builds import BuildCache
from etude.commits.commit_range import commit_range
found = commit_range(sys.argv[1], "v1", "main")
BuildCache(found.repository, Path(sys.argv[2]), Recipe(sys.argv[3])).build(found.bad)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_build_is_none(
    opened: Opened, commits: CommitRange, tmp_path: Path, counter: Path, number: signal.Signals
) -> None:
    line = f"cp n out; if test ! -e {tmp_path}/go; then touch {tmp_path}/began; sleep 1000 & sleep 1000; fi"
    cache = opened(line)
    user = commits.repository.path
    before = snapshot(user)
    words = [sys.executable, "-c", PROGRAM, str(user), str(cache.directory), cache.recipe.line]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    assert wait_until(PATIENCE_S, (tmp_path / "began").exists)
    process.send_signal(number)
    process.wait()
    assert cache.lookup(commits.bad) is None
    tree = cache._tree(commits.bad)
    assert tree.exists() is (number == signal.SIGKILL)
    (tmp_path / "go").touch()
    later = opened(line)
    assert marked_processes(MARK, str(tree)) == []
    assert not tree.exists(), "removed as soon as the directory is opened"
    assert later.build(commits.bad).state == "built"
    assert count(counter) == 2
    assert snapshot(user) == before


def test_a_build_in_the_making_is_left_alone(opened: Opened, commits: CommitRange, tmp_path: Path) -> None:
    line = f"touch {tmp_path}/began; until test -e {tmp_path}/go; do sleep 0.05; done; cp n out"
    cache = opened(line)
    found: list[Build] = []
    thread = threading.Thread(target=lambda: found.append(cache.build(commits.bad)))
    thread.start()
    assert wait_until(PATIENCE_S, (tmp_path / "began").exists)
    opened(line)
    time.sleep(0.2)
    (tmp_path / "go").touch()
    thread.join()
    assert found[0].state == "built"
