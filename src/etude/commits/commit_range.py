"""Commits from GOOD to BAD, or those of a list, as data: read from a repository that is not changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from etude.commits.git import Repository, commit_sha, git, open_repository, printable, try_git
from etude.errors import InputError, UsageError

_FORMAT = "--format=%H%x00%at%x00%ct%x00%P%x00%s"
_SEPARATOR = re.compile(r"[\s,]+")
_SUBMODULE = "160000 "
"""Mode of a submodule's entry in a tree."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of git."""

    sha: str
    author_time_s: int
    """Seconds since 1970; 0 if git cannot read it. Neither time rises along all histories."""
    commit_time_s: int
    subject: str
    """First line of its message: any text, control characters too."""
    parents: tuple[str, ...]
    """SHAs; the first is the branch that was merged into."""
    name: str = ""
    """Name by which it was given, such as a tag; empty if it was found between two others."""

    @property
    def committed(self) -> datetime:
        """Time of the commit; the nearest one that a date can have."""
        return datetime.fromtimestamp(min(max(self.commit_time_s, 0), 253_402_300_799), UTC)


@dataclass(frozen=True, slots=True)
class CommitRange:
    """Commits of a repository in order: GOOD first and BAD last, or as listed."""

    repository: Repository
    commits: tuple[Commit, ...]
    ancestry: bool
    """All commits in topological order; otherwise those along first parents."""
    dirty: bool | None
    """Files differ from the checked-out commit: only commits are built. None: unknown, as in a bare repository."""
    submodules: tuple[str, ...]
    """Their paths in the first or last commit: empty directories unless the build line initialises them."""

    @property
    def good(self) -> Commit:
        """The first commit."""
        return self.commits[0]

    @property
    def bad(self) -> Commit:
        """The last commit."""
        return self.commits[-1]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """`GOOD..BAD`."""

    good: str
    bad: str


def parse_range(text: str) -> Endpoints | tuple[str, ...]:
    """Parsed RANGE: `A..B`, `A..` up to HEAD, or a list of names, separated by blanks or commas.

    Raises:
        UsageError: it is neither.
    """
    names = tuple(filter(None, _SEPARATOR.split(text)))
    if not names:
        raise UsageError("RANGE is empty: expected GOOD..BAD, or a list of commits or tags")
    if not any(".." in name for name in names):
        return tuple(dict.fromkeys(names))
    good, _, bad = names[0].partition("..")
    if len(names) > 1 or not good or ".." in bad or bad.startswith("."):
        raise UsageError(
            f"RANGE {printable(text)}: expected one GOOD..BAD with two dots, or a list of commits or tags"
        )
    return Endpoints(good, bad or "HEAD")


def read_range(place: Path | str, text: str, *, ancestry: bool = False) -> CommitRange:
    """Commits of a RANGE (`parse_range`).

    Raises:
        UsageError: as `parse_range`; InputError, MachineRefuses: as `commit_range`.
    """
    parsed = parse_range(text)
    if isinstance(parsed, Endpoints):
        return commit_range(place, parsed.good, parsed.bad, ancestry=ancestry)
    return listed_commits(place, parsed)


def commit_range(place: Path | str, good: str, bad: str, *, ancestry: bool = False) -> CommitRange:
    """Commits from GOOD to BAD, both included: along first parents, or with `ancestry` all that BAD has and GOOD
    lacks, parents first.

    Raises:
        InputError: no repository; no such commit; GOOD is BAD, no ancestor of it, or not on its line of first parents;
            the history between them is cut (a shallow clone), or objects are missing (a partial clone).
        MachineRefuses: git is not installed.
    """
    repository = open_repository(place)
    first, last = (_known_commit(repository, name) for name in (good, bad))
    if first == last:
        raise InputError(f"GOOD {printable(good)} and BAD {printable(bad)} are the same commit {first[:12]}")
    _check_ancestor(repository, (good, first), (bad, last))
    along = () if ancestry else ("--first-parent",)
    told = git(repository.path, "rev-list", "--topo-order", "--reverse", *along, f"{first}..{last}", "--")
    found = told.split("\n")
    _check_complete(repository, found)
    commits = _read_commits(repository, [first, *found])
    if not ancestry and (fork := commits[1].parents[:1]) != (first,):
        instead = f"give {fork[0][:12]}, which is, as GOOD; or " if fork else "give "
        raise InputError(
            f"GOOD {printable(good)} is not on the line of first parents of BAD {printable(bad)}: {instead}--ancestry "
            "for all commits"
        )
    return _made(repository, commits, ancestry)


def listed_commits(place: Path | str, names: Sequence[str]) -> CommitRange:
    """Commits by their names, in the order given; a commit with several names has the first.

    Raises:
        InputError: no repository, no such commit, no name at all, or objects are missing.
        MachineRefuses: git is not installed.
    """
    repository = open_repository(place)
    by_sha: dict[str, str] = {}
    for name in names:
        by_sha.setdefault(_known_commit(repository, name), name)
    if not by_sha:
        raise InputError(f"--repository {printable(place)}: the list has no commit")
    return _made(repository, _read_commits(repository, list(by_sha), by_sha.values()), ancestry=False)


def _known_commit(repository: Repository, name: str) -> str:
    if sha := commit_sha(repository, name):
        return sha
    deeper = ": the clone is shallow; git fetch --unshallow it" if _boundary(repository) else ""
    raise InputError(
        f"--repository {printable(repository.path)}: has no commit {printable(name) or '(empty)'}{deeper}"
    )


def _check_ancestor(repository: Repository, good: tuple[str, str], bad: tuple[str, str]) -> None:
    done = try_git(repository.path, "merge-base", "--is-ancestor", good[1], bad[1])
    if not done.status:
        return
    if done.status != 1:
        raise InputError(f"--repository {printable(repository.path)}: git reports {done.why}")
    unrelated = f"GOOD {printable(good[0])} is not an ancestor of BAD {printable(bad[0])}"
    if _boundary(repository):
        raise InputError(f"{unrelated}: the clone is shallow; git fetch --unshallow it")
    bases = try_git(repository.path, "merge-base", "--all", good[1], bad[1]).text.split()
    if not bases:
        raise InputError(f"{unrelated}: their histories have no commit in common")
    if bases == [bad[1]]:
        raise InputError(f"{unrelated}, but a descendant: exchange them")
    named = " and ".join(base[:12] for base in bases)
    raise InputError(f"{unrelated}: they branched at {named} (merge base); give that as GOOD")


def _boundary(repository: Repository) -> frozenset[str]:
    """Commits whose parents a shallow clone lacks."""
    try:
        return frozenset((repository.common_directory / "shallow").read_text("ascii").split())
    except (OSError, UnicodeDecodeError):
        return frozenset()


def _check_complete(repository: Repository, shas: Sequence[str]) -> None:
    if cut := _boundary(repository).intersection(shas):
        raise InputError(
            f"--repository {printable(repository.path)}: a shallow clone, whose history ends within the range, at "
            f"{min(cut, key=shas.index)[:12]}: git fetch --unshallow it"
        )


def _check_objects(repository: Repository, shas: Sequence[str]) -> None:
    """Refuses commits of a partial clone whose files are not all here; in other clones all are."""
    partial = r"^(extensions\.partialclone|remote\..*\.promisor)$"
    if try_git(repository.path, "config", "--get-regexp", partial).status:
        return
    words = ("rev-list", "--objects", "--no-walk", "--missing=print", "--stdin")
    told = git(repository.path, *words, given="\n".join(shas).encode())
    missing = sum(line.startswith("?") for line in told.split("\n"))
    if missing:
        raise InputError(
            f"--repository {printable(repository.path)}: a partial clone that lacks objects of these commits "
            f"({missing}): git fetch --refetch --no-filter them, or name a full clone"
        )


def _read_commits(
    repository: Repository, shas: Sequence[str], names: Iterable[str] = ()
) -> tuple[Commit, ...]:
    words = ("rev-list", "--no-walk=unsorted", "--encoding=UTF-8", _FORMAT, "--stdin")
    told = os.fsencode(git(repository.path, *words, given="\n".join(shas).encode())).decode(
        "utf-8", "replace"
    )
    called = dict(zip(shas, names, strict=False))
    found = []
    for line in told.split("\n")[1::2]:  # each is below a line `commit SHA`
        sha, author, committer, parents, subject = line.split("\0", 4)
        times = _seconds(author), _seconds(committer)
        found.append(Commit(sha, *times, subject, tuple(parents.split()), called.get(sha, "")))
    return tuple(found)


def _seconds(text: str) -> int:
    return int(text) if text.lstrip("-").isdecimal() else 0


def _made(repository: Repository, commits: tuple[Commit, ...], ancestry: bool) -> CommitRange:
    _check_objects(repository, [commit.sha for commit in commits])
    ends = dict.fromkeys((commits[0].sha, commits[-1].sha))
    submodules = dict.fromkeys(path for sha in ends for path in _submodules(repository, sha))
    return CommitRange(repository, commits, ancestry, _is_dirty(repository), tuple(submodules))


def _submodules(repository: Repository, sha: str) -> list[str]:
    entries = git(repository.path, "ls-tree", "-r", "-z", "--full-tree", sha).split("\0")
    return [entry.partition("\t")[2] for entry in entries if entry.startswith(_SUBMODULE)]


def _is_dirty(repository: Repository) -> bool | None:
    """None for a bare repository, and with a split index, whose shared file git would touch."""
    if repository.bare or any(repository.git_directory.glob("sharedindex.*")):
        return None
    # Programs of the repository's own configuration that git would run on the content of files.
    filters = r"^filter\..*\.(clean|process)$"
    told = try_git(repository.path, "config", "--local", "--name-only", "-z", "--get-regexp", filters)
    off = [(name, "") for name in os.fsdecode(told.output).split("\0") if name]
    words = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
    done = try_git(repository.path, *words, settings=off)
    return bool(done.output) if not done.status else None
