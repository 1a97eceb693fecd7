"""Probe `network`: traffic of network interfaces, of the machine or its network namespace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from etude.machine import tree
from etude.probes.probe import Context, CounterProbe, ProbeBlock, Reading, growth, to_ints, value

LOOPBACK = "lo"


class Traffic(NamedTuple):
    """Counters of one interface since its creation."""

    received_bytes: int
    received_packets: int
    sent_bytes: int
    sent_packets: int


class Network(CounterProbe[dict[str, Traffic]]):
    """Sums over interfaces without an interface below, and without the loopback, which is separate."""

    name = "network"
    gives: ClassVar[Mapping[str, str]] = {
        "network_received_bytes": "B",
        "network_sent_bytes": "B",
        "network_received_packets": "1",
        "network_sent_packets": "1",
        "loopback_bytes": "B",
        "loopback_packets": "1",
    }

    def unavailable(self) -> str | None:
        return None if tree.read_text(self._root, "proc/net/dev") else "/proc/net/dev cannot be read"

    def end(self, state: dict[str, Traffic], context: Context) -> Reading:
        grown = {name: Traffic(*row) for name, row in growth(state, self._read()).items()}
        left_out = {name: why_not_counted(self._root, name) for name in grown}
        counted = [traffic for name, traffic in grown.items() if left_out[name] is None]
        loopback = grown.get(LOOPBACK, Traffic(0, 0, 0, 0))
        metrics = {
            "network_received_bytes": value(sum(t.received_bytes for t in counted), "B"),
            "network_sent_bytes": value(sum(t.sent_bytes for t in counted), "B"),
            "network_received_packets": value(sum(t.received_packets for t in counted), "1"),
            "network_sent_packets": value(sum(t.sent_packets for t in counted), "1"),
            "loopback_bytes": value(loopback.sent_bytes, "B"),
            "loopback_packets": value(loopback.sent_packets, "1"),
        }
        lines = tuple(_line(name, traffic, left_out[name]) for name, traffic in grown.items())
        return Reading(metrics, (ProbeBlock("network", lines),) if lines else ())

    def _read(self) -> dict[str, Traffic]:
        return parse_dev(tree.read_text(self._root, "proc/net/dev") or "")


def parse_dev(text: str) -> dict[str, Traffic]:
    """Interfaces of /proc/net/dev by name; invalid lines are skipped."""
    found = {}
    for line in text.splitlines():
        name, colon, rest = line.rpartition(":")  # an old alias may contain a colon
        numbers = to_ints(rest.split())
        if colon and numbers is not None and len(numbers) >= 10:
            found[name.strip()] = Traffic(numbers[0], numbers[1], numbers[8], numbers[9])
    return found


def why_not_counted(root: Path, name: str) -> str | None:
    """Reason why an interface is not in the sums: packets of a bridge, bond or VLAN are counted at the one below."""
    if name == LOOPBACK:
        return "the loopback"
    below = [link[6:] for link in tree.names(root, f"sys/class/net/{name}") if link.startswith("lower_")]
    return f"stands on {', '.join(below)}" if below else None


def _line(name: str, traffic: Traffic, left_out: str | None) -> str:
    return (
        f"{name} = received {traffic.received_bytes} B in {traffic.received_packets} packets, "
        f"sent {traffic.sent_bytes} B in {traffic.sent_packets} packets "
        f"({f'not counted: {left_out}' if left_out else 'counted'})"
    )
