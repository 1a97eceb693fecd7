"""The source tree of a commit in a repository of its own, which borrows the objects of the user's.

The user's repository is only read: a work tree of git's (`git worktree`) would be entered in it.
"""

from __future__ import annotations

import os
from pathlib import Path

from etude.commits.git import Repository, git, printable, try_git
from etude.errors import InputError


def check_out(repository: Repository, sha: str, tree: Path) -> None:
    """Make the directory `tree` with the files of a commit, and a `.git` for builds that read it: the history up to
    the commit, all tags, HEAD detached, the user's URL as `origin`, which relative URLs of submodules start from.

    Submodules are empty directories. Settings, hooks and branches of the user's repository are not taken over.

    Raises:
        InputError: objects of the commit are missing, or git cannot write the files.
        MachineRefuses: git is not installed.
        OSError: the directory cannot be made, or it exists.
    """
    tree.mkdir()
    own = tree / ".git"
    kind = git(repository.path, "rev-parse", "--show-object-format")
    words = ("init", "--quiet", "--template=", f"--object-format={kind}")
    git(tree, "-c", "init.defaultBranch=main", *words)
    objects = git(repository.path, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    (own / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(_quoted(os.fsencode(objects)) + b"\n")
    tags = git(repository.path, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags")
    if tags:
        (own / "packed-refs").write_bytes(os.fsencode(f"# pack-refs with: sorted \n{tags}\n"))
    shallow = repository.common_directory / "shallow"
    if shallow.is_file():
        (own / "shallow").write_bytes(shallow.read_bytes())
    url = try_git(repository.path, "config", "--get", "remote.origin.url")
    origin = os.fsdecode(url.output).removesuffix("\n") if not url.status else str(repository.path)
    for name, value in (("gc.auto", "0"), ("advice.detachedHead", "false"), ("remote.origin.url", origin)):
        git(tree, "config", name, value)
    done = try_git(tree, "checkout", "--quiet", "--detach", "--force", "--no-recurse-submodules", sha)
    said = done.errors.decode("utf-8", "replace")
    if done.status or any(line.startswith(("error:", "fatal:")) for line in said.splitlines()):
        raise InputError(
            f"--repository {printable(repository.path)}: commit {sha[:12]} cannot be checked out: "
            f"{printable(done.why)}; git fsck shows objects that are missing"
        )


def _quoted(path: bytes) -> bytes:
    """A path as git reads it in C's notation: no byte in it ends the line, or is taken for a comment."""
    plain = bytes(range(0x20, 0x7F)).replace(b'"', b"").replace(b"\\", b"")
    return b'"%s"' % b"".join(bytes([byte]) if byte in plain else b"\\%03o" % byte for byte in path)
