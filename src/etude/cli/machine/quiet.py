"""`etude quiet`: make the machine quiet, and put it back exactly."""

from __future__ import annotations

import argparse

from etude.errors import UsageError
from etude.machine.quiet.apply_restore import apply, file, left_over, quiet_status, restore
from etude.machine.quiet.operation import Request
from etude.machine.quiet.table import USUAL, all_of, parse
from etude.present.section import Sentence
from etude.present.sections.machine import (
    outcome_document,
    quiet_blocks,
    rehearsal_blocks,
    status_blocks,
    status_document,
)
from etude.present.terminal import show, show_aside
from etude.present.to_json import print_json


def run(options: argparse.Namespace) -> int:
    """Do it; 1 where something that was named cannot be done on this machine."""
    if options.way != "on" and (options.dry_run or options.without):
        raise UsageError(f"--dry-run and --except are for on, not for {options.way}")
    if options.way == "off":
        if options.what:
            raise UsageError("off puts everything back: it takes no operations")
        return _off(as_json=options.json)
    if options.way == "status":
        return _status(parse(options.what) if options.what else all_of(), as_json=options.json)
    asked = parse(options.what or [USUAL], options.without)
    return _rehearse(asked, as_json=options.json) if options.dry_run else _on(asked, as_json=options.json)


def _on(asked: Request, *, as_json: bool) -> int:
    outcome = apply(asked)
    if as_json:
        print_json(outcome_document(outcome))
    else:
        show(quiet_blocks(outcome))
    return int(any(name in asked.named for name in outcome.unavailable))


def _off(*, as_json: bool) -> int:
    names = restore()
    if as_json:
        print_json({"format": "etude-quiet", "version": 1, "put_back": names})
    else:
        line = f"As it was before: {', '.join(names)}." if names else "Nothing was to be put back."
        show([Sentence(line)])
    return 0


def _rehearse(asked: Request, *, as_json: bool) -> int:
    rows = quiet_status(asked)
    if as_json:
        print_json(status_document(rows))
    else:
        show(rehearsal_blocks(rows))
        show_aside(Sentence("Nothing was changed."))
    return 0


def _status(asked: Request, *, as_json: bool) -> int:
    rows = quiet_status(asked)
    if as_json:
        print_json(status_document(rows))
        return 0
    show(status_blocks(rows))
    if file().exists():
        show([Sentence(), Sentence(f"The previous state is in {file()}; etude quiet off restores it.")])
    if stale := left_over():
        show([Sentence(f"Of a former boot, and reset by the restart: {', '.join(stale)}.")])
    return 0
