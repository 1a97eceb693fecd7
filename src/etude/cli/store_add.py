"""Add results to the store, with the commit that they are of.

DIR is a results directory, or a file that `etude stats` reads. The same one is not added twice; of one that has grown
since, the larger replaces the smaller. Each is added whole or not at all (docs/store.md).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from etude.cli import parser as kinds
from etude.cli.store import add_place

if TYPE_CHECKING:
    from etude.store.entry import Added


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude store add`."""
    add = parser.add_argument
    add("directories", nargs="+", metavar="DIR", help="a results directory, or a file that etude stats reads")
    add("--repository", metavar="DIR", help="ask git there for the commit, its time, branch and tags")
    add(
        "--dirty",
        action="store_true",
        help="also where files there are not committed: the result has the tag dirty",
    )
    add("--commit", metavar="COMMIT", help="of which they are; with --repository one of it, else any word")
    add(
        "--committed",
        type=kinds.moment,
        metavar="TIME",
        help="when that commit was made, such as 2026-11-23T08:00Z (without --repository)",
    )
    add("--branch", metavar="NAME", help="of which they are")
    add(
        "--tag",
        action="append",
        default=[],
        metavar="WORD",
        help="a word to find them by; repeat for several",
    )
    add(
        "--machine",
        metavar="NAME",
        help="what the machine is called (default: its host's name); needed for files that do not say",
    )
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Add each, and say what became of it."""
    from etude.store.content import read_content
    from etude.store.database import open_store

    origin = _origin(options)
    with open_store(options.store) as store:
        for directory in options.directories:
            content = read_content(directory, options.machine)
            added = store.put(content, origin)
            tests = len({point.test for point in content.points})
            machines = ", ".join(sorted({point.machine.name for point in content.points}))
            of = f" of commit {origin.commit[:12]}" if origin.commit else ""
            print(
                f"{directory}: {_became(added)}{of} ({tests} {'test' if tests == 1 else 'tests'}, on {machines})"
            )
    return 0


def _origin(options: argparse.Namespace):  # type: ignore[no-untyped-def]  # its module loads SQLAlchemy
    from etude.errors import UsageError
    from etude.store.adding import Origin

    if options.repository is None:
        if options.dirty:
            raise UsageError("--dirty is about a repository; name it by --repository DIR")
        return Origin(options.commit, options.committed, options.branch, tuple(options.tag))
    if options.committed is not None:
        raise UsageError("--committed: git says that in a repository; leave it out")
    from etude.store.repository import commit_of

    found = commit_of(options.repository, options.commit, dirty=options.dirty)
    tags = (*options.tag, *found.tags)
    return Origin(found.commit, found.committed, options.branch or found.branch, tags)


def _became(added: Added) -> str:
    return {
        "added": f"added as result {added.result}",
        "already": f"was there already, as result {added.result}",
        "replaced": f"has grown since, and replaced result {added.result}",
        "older": f"is older than result {added.result}, in which there is more of it: nothing was added",
    }[added.how]
