"""`etude bundle`: pack results for publication, or verify a bundle."""

from __future__ import annotations

import argparse
import hashlib
from contextlib import ExitStack
from pathlib import Path

from etude.errors import UsageError
from etude.present.bundle import Contents, gather
from etude.present.terminal import Terminal
from etude.results.bundle import SUFFIXES, no_writer, suffix_of, verify, write_bundle

MOST_LISTED = 10
REFUSED = (".zip", ".7z", ".gz", ".zst", ".xz", ".bz2", ".txz", ".tbz2", ".rar")
"""Endings of archives that are not written; anything else names a directory."""


def run(options: argparse.Namespace) -> int:
    """Pack, or verify."""
    screen = Terminal()
    if options.verify is not None:
        if options.directories or options.output or options.no_logs or options.anonymous or options.mask:
            raise UsageError("--verify packs nothing: leave out all else")
        return _verify(Path(options.verify), screen)
    if not options.directories:
        raise UsageError("nothing to pack: name results directories, or a bundle with --verify")
    _pack(options, screen)
    return 0


def _verify(path: Path, screen: Terminal) -> int:
    problems = verify(path)
    for problem in problems:
        screen.say(problem)
    if problems:
        screen.say(f"{path}: is not as it was packed ({len(problems)} found).")
        return 1
    screen.say(f"{path}: every file is as it was packed, none is missing and none was added.")
    return 0


def _pack(options: argparse.Namespace, screen: Terminal) -> None:
    directories = [Path(directory) for directory in options.directories]
    with ExitStack() as stack:
        for directory in dict.fromkeys(directories):
            stack.enter_context(no_writer(directory))
        contents = gather(
            directories, logs=not options.no_logs, anonymous=options.anonymous, masks=options.mask
        )
        target = _target(options.output, contents.root)
        write_bundle(target, contents.root, contents.members, contents.time_s)
    _tell(contents, options, screen)
    if target.is_file():
        screen.say_path("SHA-256", _digest(target))
    screen.say_path("Bundle", str(target), "bold")


def _target(output: str | None, root: str) -> Path:
    target = Path(output or f"{root}.tar.gz")
    if suffix_of(target) is None and target.name.endswith(REFUSED):
        raise UsageError(f"-o {output}: expected a name that ends in {', '.join(SUFFIXES)}, or a directory")
    return target


def _tell(contents: Contents, options: argparse.Namespace, screen: Terminal) -> None:
    for path in contents.left_out[:MOST_LISTED]:
        screen.say(f"Not packed: {path}: nothing that Étude publishes")
    if len(contents.left_out) > MOST_LISTED:
        screen.say(f"Not packed: {len(contents.left_out) - MOST_LISTED} files more")
    identity = contents.identity
    if not options.anonymous:
        told = [f"host name {host}" for host in identity.hosts] + [f"home {home}" for home in identity.homes]
        if told:
            screen.say(f"It names the machine and its user: {', '.join(told)}; --anonymous replaces them.")
        return
    for host in identity.doubtful:
        screen.say(
            f"! The host name {host} is also part of other words: it was replaced only where a host is named as such; "
            "look for it in commands and logs",
            "yellow",
        )
    screen.say(
        "Replaced: host names and home directories. Look for other names yourself: users, projects, disks."
    )


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
