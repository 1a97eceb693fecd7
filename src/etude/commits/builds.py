"""Builds of commits, kept by commit and build line in a directory of bounded size.

A build is at its place from the start, since many builds hold their own path; its record is written last and at once.
A tree without a record was not finished. All trees have paths of the same length, which moves the stack of a measured
program by the same amount.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from etude.commits.build import Build, Recipe, State, read_build, record_of
from etude.commits.build_run import can_be_read_only, read_only, run_build, stop_build
from etude.commits.checkout import check_out
from etude.commits.commit_range import Commit
from etude.commits.git import Repository, git_free_environment
from etude.commits.tree_state import TreeState, build_state, changed_paths, packed, tree_state
from etude.errors import MachineRefuses, cannot_write
from etude.osutil.files import replace_file, try_lock

DEFAULT_LIMIT_BYTES = 10 * 10**9
_SIGNS = 3
"""Places outside of the tree that a build names at most."""
_LINE_LENGTH = 200
_LOG_BYTES = 1 << 20
"""Length of the end of a log that is read."""
_POLL_S = 0.1
_FREE_BYTES = 1 << 20
"""Less free space than this after a failure: the disk is full."""


class BuildCache:
    """Builds of one recipe in a directory; several processes may use it at once.

    The least recently used builds are removed when all together take more than `limit_bytes`, except those in use.
    """

    def __init__(
        self,
        repository: Repository,
        directory: Path,
        recipe: Recipe,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        retry_failed: bool = False,
        protect: bool = True,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the directory; end and remove what a killed Étude has left in it.

        retry_failed: builds that failed before are tried once more. protect: the user's checkout and other builds are
        read-only for builds, where the kernel allows it; otherwise they are compared before and after. check: called
        again and again during builds, and while another process's is waited for; what it raises ends them.

        Raises:
            MachineRefuses: the directory cannot be made.
        """
        self.repository, self.recipe, self.limit_bytes = repository, recipe, limit_bytes
        self._digest = recipe.digest()
        self._retry, self._tried, self._check = retry_failed, set[Path](), check
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self.directory = directory.resolve()
            self._remove_unfinished()
        except OSError as error:
            raise cannot_write(directory, error) from None
        self.protected = protect and can_be_read_only(self._others(), self.directory)
        """Other trees are read-only for builds."""

    def lookup(self, commit: Commit) -> Build | None:
        """The build of a commit, also a failed one; None if it has to be built."""
        found = read_build(self._tree(commit))
        return None if found is None or self._is_again(found) else found

    def build(self, commit: Commit) -> Build:
        """The build of a commit, from the cache or made now. Another process that makes the same is waited for.

        Never call it while something is measured.

        Raises:
            InputError: the commit cannot be checked out.
            MachineRefuses: the directory cannot be written, the disk is full, or git is not installed.
        """
        tree = self._tree(commit)
        try:
            if found := self.lookup(commit):
                _touch(tree)
                return found
            with _lock(tree, check=self._check):
                if found := self.lookup(commit):  # another process has made it
                    return found
                made = self._make(tree, commit)
                self._evict(but=tree)
                return made
        except OSError as error:
            raise cannot_write(self.directory, error) from None

    def prefetch(
        self, commits: Iterable[Commit], notify: Callable[[Build], None] = lambda build: None
    ) -> tuple[Build, ...]:
        """Builds of commits, one by one; ends early when they alone take more than the cache may.

        notify: called with each. Raises: as `build`.
        """
        done: list[Build] = []
        with ExitStack() as held:
            for commit in commits:
                (build,) = held.enter_context(self.using(commit))
                done.append(build)
                notify(build)
                if sum(each.size_bytes for each in done) > self.limit_bytes:
                    break
        return tuple(done)

    @contextmanager
    def using(self, *commits: Commit) -> Iterator[tuple[Build, ...]]:
        """Builds of commits, made now where they are missing; none of them is removed within the block.

        Raises: as `build`.
        """
        with ExitStack() as held:
            yield tuple(held.enter_context(self._pinned(commit)) for commit in commits)

    def size_bytes(self) -> int:
        """Disk space of all builds, of other recipes too."""
        return sum(build.size_bytes for build in self._all())

    @contextmanager
    def _pinned(self, commit: Commit) -> Iterator[Build]:
        while True:
            self.build(commit)
            with _lock(self._tree(commit), shared=True, check=self._check):
                if found := read_build(self._tree(commit)):  # else it was removed just now
                    yield found
                    return

    def _tree(self, commit: Commit) -> Path:
        return self.directory / f"{commit.sha}-{self._digest[:12]}"

    def _is_again(self, build: Build) -> bool:
        """True for a failed build that is to be tried once more."""
        if build.state == "built" or build.directory in self._tried:
            return False
        limit_s = self.recipe.limit_s
        longer = build.limit_s is not None and (limit_s is None or limit_s > build.limit_s)
        return self._retry or (build.state == "timed out" and longer)

    def _make(self, tree: Path, commit: Commit) -> Build:
        _remove(tree)
        self._tried.add(tree)
        try:
            check_out(self.repository, commit.sha, tree)
            build = self._run(tree, commit)
            if build.state != "built":
                if self._is_disk_full(build):
                    raise MachineRefuses(
                        f"{tree}: the disk is full: make room, or name another directory by -o"
                    )
                _remove_tree(tree)
            # What is measured later shall not wait for the build's dirty pages; nor may a crash leave a record of less.
            os.sync()
            replace_file(tree.with_suffix(".json"), record_of(build))
        except BaseException:
            _remove(tree)
            raise
        return build

    def _run(self, tree: Path, commit: Commit) -> Build:
        variables = git_free_environment() | dict(self.recipe.variables)
        variables |= {"ETUDE_COMMIT": commit.sha, "SOURCE_DATE_EPOCH": str(commit.commit_time_s)}
        watched = {} if self.protected else self._states(but=tree)
        before = read_only(self._others(), tree) if self.protected else ()
        log, limit_s = tree.with_suffix(".log"), self.recipe.limit_s
        end = run_build(
            self.recipe.line, tree, log, variables, limit_s=limit_s, before=before, check=self._check
        )
        lines = _end_of(log)
        outside = _refused(lines) if self.protected else _changed(watched, self._states(but=tree))
        said = next((line[:_LINE_LENGTH] for line in reversed(lines) if line), "")
        state: State = "timed out" if end.status is None else "failed" if end.status else "built"
        size_bytes = 0
        if state == "built":
            content, size_bytes = build_state(tree)
            replace_file(tree.with_suffix(".state"), packed(content), sync=False)
        ended = (state, end.status, end.elapsed_s, limit_s, said, size_bytes)
        return Build(commit.sha, self._digest, *ended, outside, tree)

    def _is_disk_full(self, build: Build) -> bool:
        """True for a build that failed since there was no space: compilers remove what they could not write."""
        reported = any(os.strerror(errno.ENOSPC) in line for line in _end_of(build.log))
        return reported or shutil.disk_usage(self.directory).free < _FREE_BYTES

    def _checkout(self) -> list[Path]:
        """The user's work tree and git directory, unless that is in it."""
        top, common = self.repository.path, self.repository.common_directory
        return [top] if common == top or top in common.parents else [top, common]

    def _others(self) -> list[Path]:
        """Trees that a build has no business in."""
        found = self._checkout()
        return found if any(place in self.directory.parents for place in found) else [*found, self.directory]

    def _states(self, but: Path) -> dict[Path, TreeState]:
        trees = [
            build.directory for build in self._all() if build.state == "built" and build.directory != but
        ]
        return {place: tree_state(place, skip=self.directory) for place in (*self._checkout(), *trees)}

    def _all(self) -> list[Build]:
        files = self.directory.glob("*-*.json")
        return [build for file in files if (build := read_build(file.with_suffix("")))]

    def _remove_unfinished(self) -> None:
        """Remove trees that have no record and are not being made."""
        for file in self.directory.glob("*-*.lock"):
            tree = file.with_suffix("")
            if tree.exists() and read_build(tree) is None:
                with _lock(tree, waits=False) as taken:
                    if taken and read_build(tree) is None:
                        _remove(tree)

    def _evict(self, but: Path) -> None:
        """Remove the builds that were not used for the longest time until the rest is small enough."""
        found = [build for build in self._all() if build.state == "built"]
        total = sum(build.size_bytes for build in found)
        for build in sorted(found, key=_used_s):
            if total <= self.limit_bytes:
                return
            if build.directory != but:
                with _lock(build.directory, waits=False) as taken:
                    if taken:
                        _remove(build.directory)
                        total -= build.size_bytes


@contextmanager
def _lock(
    tree: Path, *, shared: bool = False, waits: bool = True, check: Callable[[], None] = lambda: None
) -> Iterator[bool]:
    """The lock of a build: shared while it is used, else while it is made or removed. Yields False if it is taken and
    this does not wait."""
    file = os.open(tree.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        while not (taken := try_lock(file, shared=shared)) and waits:
            check()
            time.sleep(_POLL_S)
        yield taken
    finally:
        os.close(file)


def _touch(tree: Path) -> None:
    with suppress(OSError):  # removed just now
        os.utime(tree.with_suffix(".json"))


def _used_s(build: Build) -> float:
    """Time of its last use, s since 1970."""
    try:
        return build.directory.with_suffix(".json").stat().st_mtime
    except OSError:
        return 0.0


def _remove(tree: Path) -> None:
    """Remove a build, its record first; the caller has its lock."""
    tree.with_suffix(".json").unlink(missing_ok=True)
    stop_build(tree)
    _remove_tree(tree)
    for suffix in (".state", ".log"):
        tree.with_suffix(suffix).unlink(missing_ok=True)


def _remove_tree(tree: Path) -> None:
    """Remove a directory, with read-only directories in it, such as Go's module cache. Raises OSError."""
    shutil.rmtree(tree, ignore_errors=True)
    if tree.exists():
        for place, _, _ in os.walk(tree):
            os.chmod(place, stat.S_IRWXU)
        shutil.rmtree(tree)


def _changed(before: Mapping[Path, TreeState], after: Mapping[Path, TreeState]) -> tuple[str, ...]:
    """Files that changed; trees that are not in both were removed or made by another process."""
    both = [place for place in before if place in after]
    found = [str(place / path) for place in both for path in changed_paths(before[place], after[place])]
    return tuple(found[:_SIGNS])


def _refused(lines: list[str]) -> tuple[str, ...]:
    reason = os.strerror(errno.EROFS)
    return tuple(line[:_LINE_LENGTH] for line in lines if reason in line)[:_SIGNS]


def _end_of(log: Path) -> list[str]:
    """Lines at the end of a log, without blanks around them."""
    with log.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_BYTES))
        return [line.strip() for line in file.read().decode("utf-8", "replace").split("\n")]
