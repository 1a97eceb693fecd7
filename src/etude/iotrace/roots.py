"""The directory that files are told from, a program's own or that of a replay: so a file is found in both."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from etude.iotrace.profile import Profile


def is_replay(argv: Sequence[str]) -> bool:
    """Whether these are the words of `etude replay`."""
    return len(argv) > 1 and posixpath.basename(argv[0]) in ("etude", "etude-engine") and argv[1] == "replay"


def root_of(profile: Profile) -> str:
    """Of a replay the directory among its words that most of its files are in; else that in which it was started."""
    header = profile.trace.header
    argv, own = list(header["argv"]), str(header["cwd"])
    if not is_replay(argv):
        return own
    roots = [posixpath.normpath(posixpath.join(own, word)) for word in argv[2:]]
    best = max(roots, key=lambda root: _below(profile, root), default=own)
    return best if _below(profile, best) else own


def _below(profile: Profile, root: str) -> int:
    return sum(each.path.startswith(_with_slash(root)) for each in profile.files)


def _with_slash(root: str) -> str:
    return root if root.endswith("/") else f"{root}/"


def inner_path(path: str, root: str) -> str:
    """A path as a script has it: without the root in front, and without the slash of the file system's own root."""
    if path == root:
        return "."
    return path.removeprefix(_with_slash(root)).removeprefix("/")
