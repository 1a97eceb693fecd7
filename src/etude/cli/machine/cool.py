"""`etude cool`: make caches cold or warm, and show what is cached."""

from __future__ import annotations

import argparse
import json

from etude.cli.machine.options import COOL_STATUS
from etude.errors import UsageError
from etude.machine.cool.dataset import DataSet, Residency, difference_from_declared, measure_residency
from etude.machine.cool.methods import Cooled, cool, read_all
from etude.machine.cool.steps import restore_mounts
from etude.osutil.files import scratch_directory
from etude.units.formatting import quantity


def run(options: argparse.Namespace) -> int:
    """Cool, and say what came of it; 1 where the caches are not as the way says."""
    if options.way == COOL_STATUS:
        return _status(options)
    if options.way in ("warm", "none") and not options.data:
        raise UsageError(f"cool {options.way}: name the data set")
    with scratch_directory() as directory:
        data = DataSet(tuple(options.data), directory / "dataset") if options.data else None
        done = _cooled(options.way, data)
    if options.json:
        print(json.dumps(done.members()))
    else:
        print("\n".join(_words(done)))
    return 1 if done.wrong else 0


def _status(options: argparse.Namespace) -> int:
    """Mount what was left unmounted, and name it.

    Raises:
        UsageError: there is a data set; MachineRefuses: it cannot be mounted.
    """
    if options.data:
        raise UsageError("cool status: takes no data set; to look at one: etude cool none PATH")
    found = restore_mounts()
    if options.json:
        print(json.dumps({"mounted_again": found}))
    else:
        print("\n".join(f"mounted again: {target}" for target in found) or "nothing was left unmounted")
    return 0


def _cooled(way: str, data: DataSet | None) -> Cooled:
    if data is None or way not in ("warm", "none"):
        return cool(way, data)
    data.list()
    before = measure_residency(data)
    after = read_all(data) if way == "warm" else before
    return Cooled(way, way, before=before, after=after, wrong=difference_from_declared(way, after))


def _words(done: Cooled) -> list[str]:
    lines = list(done.said)
    if done.seconds:
        lines.append(f"took {done.seconds:.2f} s")
    if done.before is not None and done.before is not done.after:
        lines.append(f"before: {_seen(done.before)}")
    if done.after is not None:
        lines.append(f"now: {_seen(done.after)}")
    return [*lines, *([f"not {done.declared}: {done.wrong}"] if done.wrong else [])]


def _seen(seen: Residency) -> str:
    names = "" if seen.names_cached is None else f", {seen.names_cached} of {seen.files} names"
    names += "" if seen.inodes_cached is None else f", {seen.inodes_cached} inodes"
    backing = seen.backing_resident_bytes
    below = f"; of the loop device's own file {quantity(backing, 'B')}" if backing else ""
    return f"{quantity(seen.resident_bytes, 'B')} of {quantity(seen.bytes, 'B')} in memory{names}{below}"
