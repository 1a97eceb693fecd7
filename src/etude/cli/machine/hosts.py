"""`etude hosts`: check that other hosts can be used."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor

from etude.errors import MachineRefuses
from etude.escaping import escaped
from etude.machine.remote.host import Host
from etude.machine.remote.hosts import Entry, read_hosts


def run(options: argparse.Namespace) -> int:
    """Print a line for each host; 5 where one cannot be had."""
    entries = read_hosts(options.file)
    with ThreadPoolExecutor(len(entries)) as pool:
        found = list(pool.map(_tried, entries.values()))
    width = max(map(len, entries))
    for entry, (good, text) in zip(entries.values(), found, strict=True):
        print(escaped(f"{entry.name:<{width}}  {'ok' if good else 'FAILED':<6}  {text}", lines=False))
    return 0 if all(good for good, _ in found) else 5


def _tried(entry: Entry) -> tuple[bool, str]:
    host = Host(entry)
    try:
        host.connect()
        found = host.info()
        measured = host.processes() if entry.measure else []
    except MachineRefuses as error:
        return False, str(error).removeprefix(f"{entry.shown}: ")
    finally:
        host.close()
    facts, offset = found.facts, found.offset
    free = "" if facts.free_bytes is None else f", {facts.free_bytes / 1e9:.1f} GB free in {entry.directory}"
    stale = f", {facts.removed} left by killed runs removed" if facts.removed else ""
    names = {name: sum(process.name == name[:15] for process in measured) for name in entry.measure}
    seen = "".join(f", {count} x {name}" for name, count in names.items())
    return True, (
        f"{facts.nodename}, Linux {facts.release}, {facts.machine}, {found.cpus} CPUs{free}; "
        f"clock {offset.offset_ns / 1e6:+.3f} ms \u00b1 {offset.error_ns / 1e6:.3f} ms, "
        f"round trip {2 * offset.error_ns / 1e6:.3f} ms{seen}{stale}"
    )
