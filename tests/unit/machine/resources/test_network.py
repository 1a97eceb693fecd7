"""Shaping, as far as it can be told without a network."""

import json
from typing import Any

import pytest

from etude.errors import InputError, MachineRefuses
from etude.machine.resources import ledger as ledgers
from etude.machine.resources import network
from etude.machine.resources.ledger import Ledger
from etude.machine.resources.network import HANDLE, Network
from etude.machine.resources.resource import Setting

DEFAULT = {"kind": "fq_codel", "handle": "0:", "root": True}


class Machine:
    """What its tools were told; it has one interface."""

    def __init__(self, *qdiscs: dict[str, Any]) -> None:
        self.said: list[str] = []
        self.qdiscs = list(qdiscs)

    def tool(self, *words: str, **_: object) -> str:
        self.said.append(" ".join(words))
        if "link" in words:
            return json.dumps([{"ifname": "eth0", "mtu": 1500}])
        return json.dumps(self.qdiscs) if "show" in words else ""

    def changes(self) -> list[str]:
        return [line for line in self.said if " add " in line or " del " in line]


def on(monkeypatch: pytest.MonkeyPatch, *qdiscs: dict[str, Any]) -> Machine:
    machine = Machine(*qdiscs)
    for module in (ledgers, network):
        monkeypatch.setattr(module, "tool", machine.tool)
    return machine


def test_a_rate_has_a_bucket_of_ten_milliseconds(monkeypatch, ledger: Ledger) -> None:
    machine = on(monkeypatch, DEFAULT)
    Network("eth0").apply("100mbit", Setting(), ledger)
    assert machine.changes() == [
        "tc qdisc add dev eth0 root handle e7de: tbf rate 100000000bit burst 125000b latency 50ms"
    ]


def test_a_bucket_holds_two_packets_at_least(monkeypatch, ledger: Ledger) -> None:
    machine = on(monkeypatch, DEFAULT)
    Network("eth0").apply("1mbit", Setting(), ledger)
    assert " burst 3000b " in machine.changes()[0]


def test_a_delay_is_of_netem_in_the_namespace(monkeypatch, ledger: Ledger) -> None:
    machine = on(monkeypatch, DEFAULT)
    Network("eth0", shape="netem", namespace="/run/netns/a").apply("10ms", Setting(), ledger)
    assert machine.changes() == [
        "nsenter --net=/run/netns/a tc qdisc add dev eth0 root handle e7de: netem delay 10ms"
    ]


def test_an_interface_that_is_shaped_already_is_left_alone(monkeypatch, ledger: Ledger) -> None:
    machine = on(monkeypatch, {"kind": "htb", "handle": "1:", "root": True})
    with pytest.raises(MachineRefuses, match="htb 1:"):
        Network("eth0").apply("1mbit", Setting(), ledger)
    assert machine.changes() == []
    assert ledger.steps == []


@pytest.mark.parametrize(("handle", "removed"), [(HANDLE, True), ("1:", False), ("0:", False)])
def test_only_our_discipline_is_removed(monkeypatch, handle: str, removed: bool) -> None:
    machine = on(monkeypatch, {"kind": "tbf", "handle": handle, "root": True})
    ledgers.remove_qdisc("eth0", "", HANDLE)
    assert machine.changes() == (["tc qdisc del dev eth0 root"] if removed else [])


def test_a_namespace_that_is_gone_took_the_discipline_with_it(monkeypatch) -> None:
    machine = on(monkeypatch)
    ledgers.remove_qdisc("eth0", "/run/netns/gone", HANDLE)
    assert machine.changes() == []


def test_level_max_leaves_the_interface_as_it_is(monkeypatch, ledger: Ledger) -> None:
    machine = on(monkeypatch, DEFAULT)
    Network("eth0").apply("max", Setting(), ledger)
    assert machine.said == []


def test_levels_are_rates_or_delays_by_the_shape() -> None:
    Network("eth0").accept("10mbit")
    Network("eth0", shape="netem").accept("10ms")
    with pytest.raises(InputError, match="rate"):
        Network("eth0").accept("10ms")
    with pytest.raises(InputError, match="time"):
        Network("eth0", shape="netem").accept("10mbit")
