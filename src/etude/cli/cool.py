"""Bring the caches into a state, and say how much of a data set is in memory before and after.

WAY is warm (read the data set), chill (use up memory until the kernel has given up its caches), drop (the kernel's
drop_caches), remount (of the file systems that the data set lies on), or remount+chill; none only looks. status mounts
again what a remount that was killed has left unmounted, as the next session of root does, and names it. Nothing here
restarts the machine: CACHE reboot in a script and etude bench --cool reboot do (docs/reboot.md).
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from etude.results.model import CACHE_WAYS

if TYPE_CHECKING:
    from etude.testbed.cool.dataset import DataSet, Residency
    from etude.testbed.cool.ways import Cooled


STATUS = "status"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude cool`."""
    ways = [*(way for way in CACHE_WAYS if not way.startswith("reboot")), STATUS]
    parser.add_argument("way", choices=ways, metavar="WAY", help=", ".join(ways))
    parser.add_argument("data", nargs="*", metavar="PATH", help="files and directories: the data set")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object on standard output (docs/formats.md)"
    )


def run(options: argparse.Namespace) -> int:
    """Cool, and say what came of it; 1 where the caches are not as the way says."""
    from etude.errors import UsageError
    from etude.scratch import scratch_directory
    from etude.testbed.cool.dataset import DataSet

    if options.way == STATUS:
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
    from etude.errors import UsageError
    from etude.testbed.cool.remounts import finish

    if options.data:
        raise UsageError("cool status: takes no data set; to look at one: etude cool none PATH")
    found = finish()
    if options.json:
        print(json.dumps({"mounted_again": found}))
    else:
        print("\n".join(f"mounted again: {target}" for target in found) or "nothing was left unmounted")
    return 0


def _cooled(way: str, data: DataSet | None) -> Cooled:
    from etude.testbed.cool.dataset import look, not_as_declared
    from etude.testbed.cool.ways import Cooled, cool, read_all

    if data is None or way not in ("warm", "none"):
        return cool(way, data)
    data.list()
    before = look(data)
    after = read_all(data) if way == "warm" else before
    return Cooled(way, way, before=before, after=after, wrong=not_as_declared(way, after))


def _words(done: Cooled) -> list[str]:
    """What was done, and what it came to."""
    lines = list(done.said)
    if done.seconds:
        lines.append(f"took {done.seconds:.2f} s")
    if done.before is not None and done.before is not done.after:
        lines.append(f"before: {_seen(done.before)}")
    if done.after is not None:
        lines.append(f"now: {_seen(done.after)}")
    return [*lines, *([f"not {done.declared}: {done.wrong}"] if done.wrong else [])]


def _seen(seen: Residency) -> str:
    from etude.units.formatting import quantity

    names = "" if seen.names_cached is None else f", {seen.names_cached} of {seen.files} names"
    names += "" if seen.inodes_cached is None else f", {seen.inodes_cached} inodes"
    backing = seen.backing_resident_bytes
    below = f"; of the loop device's own file {quantity(backing, 'B')}" if backing else ""
    return f"{quantity(seen.resident_bytes, 'B')} of {quantity(seen.bytes, 'B')} in memory{names}{below}"
