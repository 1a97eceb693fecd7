"""A build of a commit as data, and the recipe that it was made by."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from etude import codec
from etude.commits.tree_state import build_state, changed_paths, unpacked
from etude.errors import InputError, UsageError

State: TypeAlias = Literal["built", "failed", "timed out"]
FORMAT = 1
"""Version of records; part of each digest."""
_READ_BY_TOOLS = re.compile(
    r"(?!MAKEFLAGS|MFLAGS)\w*FLAGS|(AR|AS|CC|CPP|CXX|FC|LD|LIBS|LDLIBS|NM|RANLIB|CPATH|LIBRARY_PATH)"
    r"|(C|CPLUS)_INCLUDE_PATH|GO(AMD64|ARCH|OS|TOOLCHAIN)|(CARGO|CGO|CMAKE|PKG_CONFIG|RUSTC|RUSTUP)(_\w+)?"
)
"""Variables that change what compilers and build tools make. MAKEFLAGS names files that are open below `make`; PATH is
another in each shell."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How commits are built. Raises UsageError: the line is empty."""

    line: str
    """For /bin/sh, in the top directory of the source tree."""
    limit_s: float | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """Set in addition to Étude's own environment."""

    def __post_init__(self) -> None:
        if not self.line.strip() or "\0" in self.line:
            raise UsageError("--build: the line is empty: expected a command that builds a source tree")

    def digest(self) -> str:
        """Digest of the line, the variables given here, and those of the environment that build tools read."""
        around = {name: value for name, value in os.environ.items() if _READ_BY_TOOLS.fullmatch(name)}
        told = json.dumps([FORMAT, self.line, sorted({**around, **self.variables}.items())])
        return hashlib.sha256(told.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Build:
    """A build of a commit."""

    commit: str
    """SHA."""
    recipe: str
    """`Recipe.digest`."""
    state: State
    status: int | None
    """Exit status of the line; minus the number of a signal; None if it timed out."""
    elapsed_s: float
    limit_s: float | None
    last_line: str
    """Last line of the log; empty if there is none."""
    size_bytes: int
    """Disk space of the source tree."""
    outside: tuple[str, ...]
    """Signs that it writes outside of its tree, at most three: files of the user's checkout or of other builds that
    changed while it ran (others may have changed them), or lines of the log about a read-only file system."""
    directory: Path
    """Top of the source tree; gone unless it was built."""

    @property
    def log(self) -> Path:
        """File with the output and errors of the line."""
        return self.directory.with_suffix(".log")

    def changed(self) -> tuple[str, ...]:
        """Files of the tree that have changed, or are gone, since the build ended; new ones do not count.

        Raises:
            InputError: the state at its end cannot be read.
        """
        if self.state != "built":
            return ()
        file = self.directory.with_suffix(".state")
        try:
            before = unpacked(file.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(
                f"{file}: cannot be read: {error}; remove {self.directory} to build anew"
            ) from None
        return changed_paths(before, build_state(self.directory)[0], new=False)


@dataclass(frozen=True)
class _Record:
    """A build in a file: without paths, so that the directory may be moved."""

    format: int
    commit: str
    recipe: str
    state: State
    status: int | None
    elapsed_s: codec.From0
    limit_s: codec.From0 | None
    last_line: str
    size_bytes: codec.Count
    outside: list[str]


def read_build(tree: Path) -> Build | None:
    """The finished build in a source tree, from its record beside it; None if there is none, or of another version."""
    try:
        record = codec.read(tree.with_suffix(".json"), _Record)
    except InputError:
        return None
    if record.format != FORMAT or (record.state == "built" and not tree.is_dir()):
        return None
    told: dict[str, Any] = asdict(record) | {"outside": tuple(record.outside), "directory": tree}
    del told["format"]
    return Build(**told)


def record_of(build: Build) -> bytes:
    """Content of the record beside a build's source tree."""
    told = {name: value for name, value in asdict(build).items() if name != "directory"}
    return json.dumps({"format": FORMAT, **told}).encode("ascii")
