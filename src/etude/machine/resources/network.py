"""Bandwidth or delay of a network: a queueing discipline at the root of an interface (tc(8)).

Only outgoing packets of the interface are shaped: for both directions, or a remote server, shape both ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from etude.errors import EtudeError, MachineRefuses
from etude.machine.resources import levels
from etude.machine.resources.ledger import Ledger, netns_words
from etude.machine.resources.levels import UNLIMITED
from etude.machine.resources.resource import Setting
from etude.osutil.commands import first_missing_tool, tool

SHAPES = ("tbf", "netem")
HANDLE = "e7de:"
"""Handle of our discipline; the kernel's own have 0: or count up from 8001:."""


@dataclass(frozen=True)
class Network:
    """tbf: the level is a rate, such as 10mbit. netem: a delay, such as 10ms. Level `max` leaves the interface
    unchanged."""

    name: ClassVar[str] = "network"
    is_cgroup: ClassVar[bool] = False

    interface: str
    shape: str = "tbf"
    namespace: str = ""
    """File of the network namespace of the interface, such as /run/netns/a; empty for the machine's own."""
    burst_bytes: int | None = None
    """Maximum burst (tbf); default 10 ms at the rate, and at least two packets."""
    latency: str = "50ms"
    """Maximum delay of a packet before it is dropped (tbf)."""

    def accept(self, level: str) -> None:
        """Raises InputError for an invalid rate or time."""
        if level != UNLIMITED:
            levels.bits_per_s(level) if self.shape == "tbf" else levels.tc_time(level)

    def check(self) -> str | None:
        """Reason why it is unavailable: tools, the interface and its discipline; ours is tried in a temporary
        namespace."""
        if why := first_missing_tool(("ip", "tc", "unshare", "nsenter")):
            return why
        options = (
            ("rate", "1mbit", "burst", "1mb", "latency", "50ms") if self.shape == "tbf" else ("delay", "1ms")
        )
        try:
            self._mtu_bytes()
            self._as_found()
            tool("unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", self.shape, *options)
        except EtudeError as error:
            said = str(error)
            return f"the kernel has no {self.shape}: {said}" if "kind is unknown" in said else said
        return None

    def apply(self, level: str, so_far: Setting, ledger: Ledger) -> Setting:
        """Replace the kernel's default discipline by ours."""
        self.accept(level)
        if level == UNLIMITED:
            return Setting()
        options = self._tbf(level) if self.shape == "tbf" else ("delay", levels.tc_time(level))
        self._as_found()
        ledger.record_undo("remove_qdisc", interface=self.interface, namespace=self.namespace, handle=HANDLE)
        where = ("dev", self.interface, "root", "handle", HANDLE)
        ledger.tool(*netns_words(self.namespace), "tc", "qdisc", "add", *where, self.shape, *options)
        return Setting()

    def _tbf(self, rate: str) -> tuple[str, ...]:
        """Options of tbf: a bucket smaller than a packet would let none through; one of less than a timer tick is too
        slow."""
        bits = levels.bits_per_s(rate)
        burst = self.burst_bytes or max(round(bits / 8 / 100), 2 * self._mtu_bytes())
        return ("rate", f"{bits:.0f}bit", "burst", f"{burst}b", "latency", levels.tc_time(self.latency))

    def _as_found(self) -> None:
        """Refuse an interface with a discipline of its own: only the kernel's default is restored by itself."""
        found: list[dict[str, Any]] = json.loads(
            self._tc("-j", "qdisc", "show", "dev", self.interface) or "[]"
        )
        for each in found:
            if each.get("root") and each.get("handle", "0:") != "0:":
                own = f"{each.get('kind')} {each['handle']}"
                raise MachineRefuses(
                    f"{self.interface} has a queueing discipline already ({own}), which could not be put back: "
                    f"tc qdisc del dev {self.interface} root"
                )

    def _mtu_bytes(self) -> int:
        links = json.loads(
            tool(*netns_words(self.namespace), "ip", "-j", "link", "show", "dev", self.interface)
        )
        return int(links[0]["mtu"])

    def _tc(self, *words: str) -> str:
        return tool(*netns_words(self.namespace), "tc", *words)
