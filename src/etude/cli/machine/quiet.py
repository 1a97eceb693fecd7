"""`etude quiet`: make the machine quiet, and put it back exactly."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from etude.errors import UsageError
from etude.machine.quiet.apply_restore import Outcome, apply, file, restore
from etude.machine.quiet.operation import Request
from etude.machine.quiet.status import Row, left_over, quiet_status
from etude.machine.quiet.table import USUAL, all_of, parse


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
        print(json.dumps(_document(outcome), indent=1, ensure_ascii=False))
    else:
        print("\n".join(_told(outcome)))
    return int(any(name in asked.named for name in outcome.unavailable))


def _off(*, as_json: bool) -> int:
    names = restore()
    if as_json:
        print(json.dumps({"format": "etude-quiet", "version": 1, "put_back": names}))
    elif names:
        print(f"As it was before: {', '.join(names)}.")
    else:
        print("Nothing was to be put back.")
    return 0


def _rehearse(asked: Request, *, as_json: bool) -> int:
    rows = quiet_status(asked)
    if as_json:
        _print_rows(rows)
        return 0
    for row in rows:
        if row.why_not:
            print(f"{row.name}: not here: {row.why_not}")
        for change in row.changes:
            if change.was != change.put:
                print(f"{row.name}: {_item(change.item)}: {change.was} -> {change.put or 'as it comes'}")
    print("Nothing was changed.", file=sys.stderr)
    return 0


def _status(asked: Request, *, as_json: bool) -> int:
    rows = quiet_status(asked)
    if as_json:
        _print_rows(rows)
        return 0
    print(_table(rows))
    if file().exists():
        print(f"\nWhat was before is in {file()}; etude quiet off puts it back.")
    if stale := left_over():
        print(f"Of a former boot, and reset by the restart: {', '.join(stale)}.")
    return 0


def _document(outcome: Outcome) -> dict[str, Any]:
    return {
        "format": "etude-quiet",
        "version": 1,
        "done": {
            name: {each.item: [each.was, each.put] for each in changes}
            for name, changes in outcome.done.items()
        },
        "already": outcome.already,
        "unavailable": outcome.unavailable,
        "refused": {name: items for name, items in outcome.refused.items() if items},
    }


def _print_rows(rows: Sequence[Row]) -> None:
    operations = [
        {
            "name": row.name,
            "meaning": row.meaning,
            "usual": row.usual,
            "state": row.state,
            "why_not": row.why_not,
            "items": {change.item: [change.was, change.put] for change in row.changes},
            "held": {change.item: [change.was, change.put] for change in row.held},
        }
        for row in rows
    ]
    document = {"format": "etude-quiet", "version": 1, "operations": operations}
    print(json.dumps(document, indent=1, ensure_ascii=False))


def _told(outcome: Outcome) -> list[str]:
    lines = [f"{name}: {_counted(changes)}" for name, changes in outcome.done.items()]
    lines += [
        f"{name}: refused by the kernel, and left: {len(of)}" for name, of in outcome.refused.items() if of
    ]
    lines += [f"{name}: quiet already" for name in outcome.already]
    lines += [f"{name}: not here: {why}" for name, why in outcome.unavailable.items()]
    return [*lines, "etude quiet off puts it back." if outcome.done else "Nothing was changed."]


def _counted(changes: Sequence[Any]) -> str:
    """Each change where they are few; how many there were where they are many."""
    if len(changes) > 3:
        return f"{len(changes)} changed"
    return "; ".join(f"{_item(each.item)} {each.was} -> {each.put}" for each in changes)


def _item(item: str) -> str:
    return f"/{item}" if item.startswith(("proc/", "sys/", "run/", "etc/")) else item


def _table(rows: Sequence[Row]) -> str:
    """Columns as wide as they need."""
    cells = [("operation", "now", "quiet", "state")]
    cells += [(row.name, row.now, row.quiet, row.told) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]).rstrip()
        for line in cells
    )
