"""Quiet where systemd runs: units and what triggers them, timers, zram, threads of a whole machine, a power cut."""

from __future__ import annotations

import json

import pytest

from support.guest.machine import BOOTED, SECOND, Machine

KEPT = "/var/lib/etude/quiet.json"
NOLOGIN = "/run/nologin"
STATES = (
    "systemctl list-units --all --plain --no-legend --type=service,socket,timer,path | awk '{print $1, $3}'"
)
MOVES = (
    "systemd-fsckd.",
    "systemd-hostnamed",
    "user@",
    "user-runtime",
    "qemu-guest-agent",
    "systemd-tmpfiles-clean.service",
    "stranger",
)
"""Units that come and go by themselves."""

UNITS = {
    "cron.service": "[Service]\nExecStart=/bin/sleep infinity\n",
    "cups.service": "[Service]\nExecStart=/bin/sleep infinity\n",
    "cups.socket": "[Socket]\nListenStream=/run/cups.sock\n",
    "cups.path": "[Path]\nPathExists=/etc/hostname\n",
    "stubborn.service": "[Service]\nExecStart=/bin/sh -c \"trap '' TERM; while :; do sleep 1; done\"\n"
    "TimeoutStopSec=12\nKillMode=process\n",
    "mine.timer": "[Timer]\nOnActiveSec=1h\n[Install]\nWantedBy=timers.target\n",
    "mine.service": "[Service]\nExecStart=/bin/true\n",
}


@pytest.fixture(scope="module")
def busy(machine: Machine) -> str:
    """A state with a cron, a cups behind a socket and a path, a service that does not stop, a timer, and zram."""
    machine.restore(BOOTED)
    for name, text in UNITS.items():
        machine.write(f"/etc/systemd/system/{name}", text)
    machine.check(
        "systemctl daemon-reload && systemctl enable mine.timer && "
        "systemctl start cups.socket cups.service cups.path cron stubborn mine.timer"
    )
    machine.check(
        "modprobe zram && echo 32M >/sys/block/zram0/disksize && mkswap /dev/zram0 && swapon -p 9 /dev/zram0"
    )
    machine.save("busy")
    return "busy"


@pytest.fixture
def guest(machine: Machine, busy: str) -> Machine:
    machine.restore(busy)
    return machine


def states(guest: Machine) -> dict[str, str]:
    lines = (line.split() for line in guest.check(STATES).splitlines())
    return {name: state for name, state in lines if not name.startswith(MOVES)}


def swaps(guest: Machine) -> list[str]:
    return guest.check("awk 'NR > 1 {print $1, $5}' /proc/swaps").splitlines()


def exists(guest: Machine, path: str) -> bool:
    return guest.run(f"test -e {path}").status == 0


def affinities(guest: Machine) -> set[str]:
    """Of all threads that may be moved, but for those of the test's own commands."""
    line = "grep -h Cpus_allowed_list /proc/1/status /proc/$(systemctl show -P MainPID cron)/status"
    return set(guest.check(line).split()[1::2])


def test_units_and_their_triggers_stop_and_run_again(guest: Machine) -> None:
    before = states(guest)
    assert {before[name] for name in ("cron.service", "cups.socket", "cups.path", "mine.timer")} == {"active"}
    document = json.loads(guest.check("etude quiet on services swap thp aslr logins --json"))
    stopped = set(document["done"]["services"])
    assert {
        "unit:cron.service",
        "unit:cups.service",
        "unit:cups.socket",
        "unit:cups.path",
        "unit:mine.timer",
    } <= stopped
    quiet = states(guest)
    assert not [name for name, state in quiet.items() if name.endswith(".timer") and state == "active"]
    assert quiet.get("cups.service", "inactive") == "inactive", "nothing has started it again"
    assert quiet["stubborn.service"] == "active", "nobody asked for that"
    assert swaps(guest) == []
    assert exists(guest, NOLOGIN)
    said = guest.check("etude quiet on services swap thp aslr logins; etude quiet status")
    assert KEPT in said
    guest.check("etude quiet off")
    after = states(guest)
    assert {name: after.get(name) for name in before} == before
    assert swaps(guest) == ["/dev/zram0 9"]
    assert not exists(guest, NOLOGIN)
    assert not exists(guest, KEPT)


def test_a_service_that_does_not_stop_is_bounded_and_undone(guest: Machine) -> None:
    before = states(guest)
    patience = "import etude.machine.quiet.operation as operation; operation.TOOL_S = 4.0"
    program = f"{patience}; from etude.cli.main import main; main(['quiet', 'on', 'aslr', 'services=cron,stubborn'])"
    answer = guest.run(f'/opt/etude/bin/python -c "{program}"', within_s=300)
    assert "systemctl stop stubborn.service" in answer.err
    guest.check("for i in $(seq 60); do etude quiet off && break; sleep 1; done", within_s=300)
    guest.check(
        "for i in $(seq 60); do test $(systemctl is-active stubborn) = active && break; sleep 1; done"
    )
    after = states(guest)
    assert {name: after.get(name) for name in before} == before


def test_a_shield_moves_a_whole_machine_and_what_was_born_behind_it(guest: Machine) -> None:
    guest.check(f"echo 1 >{SECOND}")
    assert affinities(guest) == {"0-1"}
    guest.check("etude quiet on shield irqs cpus=1")
    assert affinities(guest) == {"0"}
    guest.check("systemd-run --unit=stranger sleep 1000")
    born = "grep -h Cpus_allowed_list /proc/$(systemctl show -P MainPID stranger)/status"
    assert guest.check(born).split()[1] == "0"
    assert guest.check("cat /proc/irq/default_smp_affinity").strip() == "1"
    guest.check("etude quiet off")
    assert affinities(guest) == {"0-1"}
    assert guest.check(born).split()[1] == "0-1"
    guest.check("systemctl stop stranger")


def test_a_killed_on_is_undone_in_the_same_boot(guest: Machine) -> None:
    before = states(guest)
    kill = f"while ! test -e {KEPT}; do :; done; sleep 0.3; kill -9 $!"
    guest.run(f"etude quiet on & {kill}; wait")
    guest.check("etude quiet off")
    after = states(guest)
    assert {name: after.get(name) for name in before} == before
    assert swaps(guest) == ["/dev/zram0 9"]


def test_after_a_power_cut_off_writes_nothing_old(guest: Machine) -> None:
    guest.check("echo 1 >/proc/sys/kernel/randomize_va_space; etude quiet on services aslr logins perf")
    guest.power_cut()
    guest.start()
    guest.wait_started()
    settings = "sysctl -a 2>/dev/null | grep -E 'randomize_va|perf_event_max'"
    before = guest.check(settings)
    assert guest.check("systemctl is-active mine.timer") == "active\n"  # By the boot.
    *_, last = guest.check("etude quiet status").splitlines()
    assert last.partition(": ")[2].rstrip(".").split(", ") == ["logins", "services", "aslr", "perf"]
    guest.check("etude quiet off")
    assert guest.check(settings) == before
    assert not exists(guest, NOLOGIN)
    assert not exists(guest, KEPT)
