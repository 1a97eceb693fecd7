"""`etude store add`: add results to a store, with their commit."""

from __future__ import annotations

import argparse

from etude.errors import UsageError
from etude.escaping import escaped
from etude.store.content import read_content
from etude.store.database import open_store
from etude.store.entry import AddOutcome
from etude.store.insert import Origin
from etude.store.repository import commit_of


def run(options: argparse.Namespace) -> int:
    """Add each, and say what became of it."""
    origin = _origin(options)
    with open_store(options.store) as store:
        for directory in options.directories:
            content = read_content(directory, options.machine)
            added = store.put(content, origin)
            tests = len({point.test for point in content.points})
            machines = ", ".join(sorted({point.machine.name for point in content.points}))
            of = f" of commit {origin.commit[:12]}" if origin.commit else ""
            became = f"{_became(added)}{of} ({tests} {'test' if tests == 1 else 'tests'}, on {machines})"
            print(escaped(f"{directory}: {became}", lines=False))
    return 0


def _origin(options: argparse.Namespace):  # type: ignore[no-untyped-def]  # its module loads SQLAlchemy
    if options.repository is None:
        if options.dirty:
            raise UsageError("--dirty is about a repository; name it by --repository DIR")
        return Origin(options.commit, options.committed, options.branch, tuple(options.tag))
    if options.committed is not None:
        raise UsageError("--committed: git knows that in a repository; leave it out")
    found = commit_of(options.repository, options.commit, dirty=options.dirty)
    tags = (*options.tag, *found.tags)
    return Origin(found.commit, found.committed, options.branch or found.branch, tags)


def _became(added: AddOutcome) -> str:
    return {
        "added": f"added as result {added.result}",
        "already": f"was there already, as result {added.result}",
        "replaced": f"has grown since, and replaced result {added.result}",
        "older": f"is older than result {added.result}, in which there is more of it: nothing was added",
    }[added.how]
