"""Reads a user's git repository: nothing in it is written, none of its hooks is run, and nothing is fetched."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from etude.errors import InputError, MachineRefuses
from etude.escaping import escaped
from etude.osutil.commands import Done, run_to_end
from etude.osutil.trust import tool_words

_OF_ONE_REPOSITORY = re.compile(
    r"GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|PREFIX|NAMESPACE"
    r"|GRAFT_FILE|SHALLOW_FILE|IMPLICIT_WORK_TREE|REPLACE_REF_BASE|QUARANTINE_PATH|NO_REPLACE_OBJECTS)"
)
"""Variables that git's hooks and aliases have in their environment: git would read another repository."""
_GUARDS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository on this machine."""

    path: Path
    """Top of its work tree; its git directory if it is bare."""
    git_directory: Path
    common_directory: Path
    """Differs from `git_directory` in a linked work tree."""
    bare: bool


def open_repository(place: Path | str) -> Repository:
    """The repository that a directory is in.

    Raises:
        InputError: there is none, or git refuses to read it.
        MachineRefuses: git is not installed.
    """
    if not os.path.isdir(place):
        raise InputError(f"--repository {printable(place)}: there is no such directory")
    asked = ("--is-bare-repository", "--git-dir", "--git-common-dir")
    bare, own, common = (git(place, "rev-parse", "--path-format=absolute", word) for word in asked)
    top = own if bare == "true" else git(place, "rev-parse", "--show-toplevel")
    return Repository(Path(top), Path(own), Path(common), bare == "true")


def git(place: Path | str, *words: str, given: bytes = b"") -> str:
    """Output of a git command that only reads, without its last line end.

    Raises:
        InputError: it failed; MachineRefuses: git is not installed.
    """
    done = try_git(place, *words, given=given)
    if done.status:
        said = " ".join(done.errors.decode("utf-8", "replace").split()) or f"git: {done.why}"
        raise InputError(f"--repository {printable(place)}: git reports {said}")
    return os.fsdecode(done.output).removesuffix("\n")


def try_git(
    place: Path | str,
    *words: str,
    given: bytes = b"",
    settings: Sequence[tuple[str, str]] = (),
) -> Done:
    """The same command with its exit status. settings: of git's configuration, before those of files.

    Raises:
        MachineRefuses: git is not installed.
    """
    # The list of allowed protocols is empty: a partial clone does not fetch what it lacks.
    environment = git_free_environment() | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    if settings:
        environment["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (name, value) in enumerate(settings):
            environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    try:
        command = tool_words(["git", "-C", os.fspath(place), *_GUARDS, *words])
        return run_to_end(command, given=given, environment=environment)
    except FileNotFoundError:
        raise MachineRefuses(
            "builds of commits need git, which is not installed: install the Debian package git"
        ) from None


def git_free_environment() -> dict[str, str]:
    """This process's environment without variables that lead git to another repository."""
    return {name: value for name, value in os.environ.items() if not _OF_ONE_REPOSITORY.fullmatch(name)}


def commit_sha(repository: Repository, name: str) -> str | None:
    """Full name of the commit that a branch, a tag or any other name of git's stands for; None if there is none."""
    if not name or "\0" in name:
        return None
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    found = try_git(repository.path, *words).text.strip()
    return found if _SHA.fullmatch(found) else None  # ^NAME prints an excluded commit


def printable(name: object) -> str:
    """A name for an error's line: shortened, control characters and line ends escaped."""
    text = escaped(os.fsdecode(name) if isinstance(name, str | os.PathLike) else str(name), lines=False)
    return text if len(text) <= 120 else f"{text[:119]}…"
