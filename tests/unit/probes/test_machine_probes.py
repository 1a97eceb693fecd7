"""The probes that read a file of /proc or /sys twice, on machines that are laid out."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.probes import disk, energy, interrupts, network, pressure
from etude.probes.disk import Disk
from etude.probes.energy import Energy
from etude.probes.interrupts import Interrupts
from etude.probes.memory import Memory
from etude.probes.network import Network
from etude.probes.others import machine_ticks
from etude.probes.pressure import Pressure
from etude.probes.probe import Context, ProbeFailed, Reading, growth, to_ints
from support.golden import Golden

Lay = Callable[[Mapping[str, str]], Path]
ALL = [Disk, Energy, Interrupts, Memory, Network, Pressure]
HERE = Context()


def between(probe: Any, lay: Lay, before: Mapping[str, str], after: Mapping[str, str]) -> Reading:
    """What a probe finds between two states of a machine."""
    probe = probe(lay(before))
    assert probe.unavailable() is None
    state = probe.start(HERE)
    lay(after)
    reading: Reading = probe.end(state, HERE)
    return reading


def lines(reading: Reading) -> list[str]:
    (block,) = reading.blocks
    return list(block.lines)


# --- disk ---------------------------------------------------------------------------------------------

VDA = "254 0 vda {} 5 {} 7 {} 5 {} 7 0 {} 9 {} 0 8 0 {} 1\n"
QUIET = "7 7 loop7 0 0 0 0 0 0 0 0 0 0 0\n"


def diskstats(reads: int, sectors: int, name: str = "vda", flushes: int = 0) -> str:
    line = VDA.format(reads, sectors, reads + 1, sectors + 8, 40 * reads, 3, flushes)
    return line.replace("vda", name)


def test_requests_and_bytes_of_a_disk_are_counted_in_sectors_of_512(lay: Lay, golden: Golden) -> None:
    before = {"proc/diskstats": QUIET + diskstats(10, 80), "sys/class/block/vda/slaves/": ""}
    reading = between(
        Disk, lay, before, {"proc/diskstats": QUIET + diskstats(12, 96, flushes=4), "proc/x": ""}
    )
    assert reading.metrics == {
        "disk_reads": [2, "1"],
        "disk_writes": [2, "1"],
        "disk_read_bytes": [16 * 512, "B"],
        "disk_write_bytes": [16 * 512, "B"],
    }
    (line,) = lines(reading)
    assert re.findall(r"\d+(?:\.\d+)?", line) == ["2", "8192", "2", "8192", "0", "4", "0.080"]
    golden(line)


def test_what_stands_on_another_device_is_shown_but_not_summed(lay: Lay, golden: Golden) -> None:
    names = ["vda", "vda1", "loop0", "dm-0", "zram0", "nvme0n1"]
    before = {"proc/diskstats": "".join(diskstats(1, 8, name) for name in names)}
    before |= {f"sys/class/block/{name}/slaves/": "" for name in names}
    before |= {"sys/class/block/vda1/partition": "1", "sys/class/block/dm-0/slaves/vda1/": ""}
    after = {"proc/diskstats": "".join(diskstats(2, 16, name) for name in names)}
    reading = between(Disk, lay, before, after)
    assert reading.metrics["disk_reads"] == [2, "1"]
    assert reading.metrics["disk_write_bytes"] == [2 * 8 * 512, "B"]
    assert [line.split()[0] for line in lines(reading) if "(counted)" in line] == ["vda", "nvme0n1"]
    golden("\n".join(lines(reading)))


def test_a_disk_that_was_made_anew_counts_from_nothing(lay: Lay) -> None:
    before = {"proc/diskstats": diskstats(100, 800), "sys/class/block/vda/": ""}
    reading = between(Disk, lay, before, {"proc/diskstats": diskstats(3, 24) + diskstats(4, 32, "vdb")})
    assert reading.metrics["disk_reads"] == [7, "1"]


def test_where_nothing_was_done_there_is_no_block(lay: Lay) -> None:
    same = {"proc/diskstats": diskstats(5, 5), "sys/class/block/vda/": ""}
    assert between(Disk, lay, same, same).blocks == ()


def test_an_older_kernel_tells_less_of_a_disk() -> None:
    assert disk.parse_diskstats("8 0 sda 1 0 2 0 3 0 4 0 0 5 6") == {
        "sda": disk.Counts(1, 1024, 3, 2048, 5, 0, 0)
    }


# --- memory -------------------------------------------------------------------------------------------


def meminfo(free: int, available: int | None, dirty: int) -> dict[str, str]:
    middle = "" if available is None else f"MemAvailable: {available} kB\n"
    text = f"MemTotal: 1000 kB\nMemFree: {free} kB\n{middle}Dirty: {dirty} kB\nHugePages_Total: 0\n"
    return {"proc/meminfo": text}


def test_memory_is_what_is_left_afterwards_and_how_it_changed(lay: Lay) -> None:
    reading = between(Memory, lay, meminfo(500, 700, 10), meminfo(400, 650, 15))
    assert reading.metrics == {
        "memory_free": [400 * 1024, "B"],
        "memory_available": [650 * 1024, "B"],
        "memory_obtainable": [None, "B", "no AnonPages in /proc/meminfo"],
        "memory_available_change": [-50 * 1024, "B"],
    }
    assert lines(reading) == [f"Dirty = {15 * 1024} B (+{5 * 1024} B)"]


def test_free_pages_that_cpus_keep_in_stock_are_free(lay: Lay) -> None:
    """They go there and come back, up to an eighth of the memory: as much of a leak would not be seen."""
    page = os.sysconf("SC_PAGESIZE")
    zones = (
        "Node 0, zone Normal\n  pages free 1\n  pagesets\n    cpu: 0\n        count:    {}\n        high: 9\n"
    )
    before = meminfo(500, 700, 10) | {"proc/zoneinfo": zones.format(4) + zones.format(7)}
    after = meminfo(500, 700, 10) | {"proc/zoneinfo": zones.format(0) + zones.format(7)}
    reading = between(Memory, lay, before, after)
    assert reading.metrics == {
        "memory_free": [500 * 1024 + 7 * page, "B"],
        "memory_available": [700 * 1024 + 7 * page, "B"],
        "memory_obtainable": [None, "B", "no AnonPages in /proc/meminfo"],
        "memory_available_change": [-4 * page, "B"],
    }


def test_what_processes_hold_can_be_had_when_they_end(lay: Lay) -> None:
    """A process that grows by 30 kB, and 20 kB that are lost."""

    def machine(free: int, anonymous: int) -> dict[str, str]:
        found = meminfo(free, free, 0)
        found["proc/meminfo"] += f"AnonPages: {anonymous} kB\nPageTables: 3 kB\nKernelStack: 4 kB\n"
        return found

    readings = [between(Memory, lay, now, now) for now in (machine(500, 100), machine(450, 130))]
    before, after = (reading.metrics["memory_obtainable"][0] for reading in readings)
    assert (before, before - after) == (607 * 1024, 20 * 1024)


def test_an_older_kernel_does_not_say_what_is_available(lay: Lay) -> None:
    reading = between(Memory, lay, meminfo(500, None, 10), meminfo(400, None, 15))
    assert reading.metrics["memory_free"] == [400 * 1024, "B"]
    assert reading.metrics["memory_available"] == [None, "B", "no MemAvailable in /proc/meminfo"]


# --- network ------------------------------------------------------------------------------------------

HEAD = "Inter-|   Receive  |  Transmit\n face |bytes    packets errs|bytes    packets\n"


def dev(**received: int) -> dict[str, str]:
    rows = (
        f"{name}:{bytes_:9} {bytes_ // 100} 0 0 0 0 0 0 {bytes_ * 2} {bytes_ // 50} 0 0 0 0 0 0\n"
        for name, bytes_ in received.items()
    )
    return {"proc/net/dev": HEAD + "".join(rows)}


def test_traffic_is_summed_without_the_loopback_and_what_stands_on_another(lay: Lay, golden: Golden) -> None:
    before = dev(lo=1000, eth0=5000, eth1=0, br0=5000) | {"sys/class/net/br0/lower_eth0/": ""}
    reading = between(Network, lay, before, dev(lo=1500, eth0=7000, eth1=100, br0=7000, veth9=300))
    assert reading.metrics == {
        "network_received_bytes": [2400, "B"],
        "network_sent_bytes": [4800, "B"],
        "network_received_packets": [24, "1"],
        "network_sent_packets": [48, "1"],
        "loopback_bytes": [1000, "B"],
        "loopback_packets": [10, "1"],
    }
    golden("\n".join(lines(reading)))


# --- pressure -----------------------------------------------------------------------------------------


def psi(resource: str, some: int, full: int | None) -> dict[str, str]:
    text = f"some avg10=1.00 avg60=0.47 avg300=0.14 total={some}\n"
    if full is not None:
        text += f"full avg10=0.93 avg60=0.45 avg300=0.13 total={full}\n"
    return {f"proc/pressure/{resource}": text}


def test_pressure_is_seconds_of_waiting(lay: Lay) -> None:
    before = psi("cpu", 1_000_000, None) | psi("io", 5, 5) | psi("memory", 0, 0)
    after = psi("cpu", 3_500_000, None) | psi("io", 5, 5) | psi("memory", 7, 1)
    metrics = between(Pressure, lay, before, after).metrics
    assert metrics["pressure_cpu_some"] == [2.5, "s"]
    *none, why = metrics["pressure_cpu_full"]
    assert none == [None, "s"]
    assert why
    assert metrics["pressure_io_full"] == [0.0, "s"]
    assert metrics["pressure_memory_some"] == [7e-6, "s"]


# --- interrupts ---------------------------------------------------------------------------------------

TABLE = """\
           CPU0       CPU1
 36:          0      {}  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
LOC:      {}      100   Local timer interrupts
ERR:          {}
"""


def irq(a: int, b: int, c: int, total: int, switches: int) -> dict[str, str]:
    stat = f"cpu  1 2 3 4 5 6 7 8 9 10\nintr {total} 0 0 5\nctxt {switches}\nbtime 1\n"
    return {"proc/stat": stat, "proc/interrupts": TABLE.format(a, b, c)}


def test_interrupts_that_came_are_listed_most_frequent_first(lay: Lay) -> None:
    reading = between(Interrupts, lay, irq(5, 100, 0, 1000, 50), irq(7, 400, 1, 1303, 90))
    assert reading.metrics == {"machine_interrupts": [303, "1"], "machine_switches": [40, "1"]}
    assert lines(reading) == [
        "LOC = 300 (Local timer interrupts)",
        "36 = 2 (PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0)",
        "ERR = 1",
    ]


def test_without_its_table_interrupts_are_still_counted(lay: Lay) -> None:
    before, after = ({"proc/stat": irq(0, 0, 0, total, 5)["proc/stat"]} for total in (7, 9))
    reading = between(Interrupts, lay, before, after)
    assert (reading.metrics["machine_interrupts"], reading.blocks) == ([2, "1"], ())


# --- energy -------------------------------------------------------------------------------------------

ZONES = {
    "intel-rapl": "",
    "intel-rapl:0": "package-0",
    "intel-rapl:0:0": "core",
    "intel-rapl:0:1": "dram",
    "intel-rapl:1": "package-1",
    "intel-rapl:1:0": "core",
    "intel-rapl:2": "psys",
    "intel-rapl-mmio:0": "package-0",
}


def rapl(uj: Mapping[str, int], range_uj: int | None = 1_000_000_000) -> dict[str, str]:
    files = {}
    for zone, name in ZONES.items():
        place = f"sys/class/powercap/{zone}"
        files[f"{place}/enabled"] = "1"
        if name and zone in uj:
            files |= {f"{place}/name": name, f"{place}/energy_uj": f"{uj[zone]}\n"}
            files |= {f"{place}/max_energy_range_uj": f"{range_uj}"} if range_uj is not None else {}
    return files


def test_energy_is_summed_over_packages_and_over_each_of_their_parts(lay: Lay) -> None:
    before = dict.fromkeys(ZONES, 500)
    after = {zone: 500 + 1_000_000 * number for number, zone in enumerate(ZONES)}
    reading = between(Energy, lay, rapl(before), rapl(after))
    assert reading.metrics == {
        "energy_package": [5.0, "J"],
        "energy_core": [7.0, "J"],
        "energy_dram": [3.0, "J"],
        "energy_platform": [6.0, "J"],
    }
    assert lines(reading) == [
        "package-0 = 1.000000 J",
        "package-0 core = 2.000000 J",
        "package-0 dram = 3.000000 J",
        "package-1 = 4.000000 J",
        "package-1 core = 5.000000 J",
        "psys = 6.000000 J",
    ]


def test_meters_behind_memory_mapped_registers_count_where_there_are_no_others(lay: Lay) -> None:
    root = lay(rapl(dict.fromkeys(ZONES, 1)))
    assert "intel-rapl-mmio:0" not in energy.zones(root)
    only = {f"sys/class/powercap/{name}/": "" for name in ("intel-rapl-mmio", "intel-rapl-mmio:0")}
    assert energy.zones(lay({f"other/{path}": text for path, text in only.items()}) / "other") == [
        "intel-rapl-mmio:0"
    ]


@given(
    range_uj=st.integers(1_000, 10**12),
    early=st.integers(0, 10**12),
    by=st.integers(0, 10**12),
)
def test_a_meter_that_began_anew_once_is_read_right(range_uj: int, early: int, by: int) -> None:
    early, by = early % range_uj, by % range_uj
    before = {"z": energy.Meter("package-0", early, range_uj)}
    after = {"z": energy.Meter("package-0", (early + by) % range_uj, range_uj)}
    assert energy.used_uj(before, after) == {"z": by}


def test_a_meter_of_unknown_range_that_began_anew_is_left_out(lay: Lay) -> None:
    with pytest.raises(ProbeFailed, match="no energy meter"):
        between(Energy, lay, rapl({"intel-rapl:0": 900}, None), rapl({"intel-rapl:0": 100}, None))


def test_meters_that_cannot_be_read_are_only_root_s(lay: Lay) -> None:
    root = lay({"sys/class/powercap/intel-rapl:0/name": "package-0"})
    assert "only root" in (Energy(root).unavailable() or "")


# --- all ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name)
def test_on_a_machine_without_the_files_each_says_why_it_cannot_be_used(probe: Any, tmp_path: Path) -> None:
    reason = probe(tmp_path).unavailable()
    assert reason
    assert len(reason.splitlines()) == 1


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name)
def test_on_this_machine_each_gives_what_it_says_or_says_why_not(probe: Any) -> None:
    here = probe()
    if (reason := here.unavailable()) is not None:
        pytest.skip(reason)
    reading = here.end(here.start(HERE), HERE)
    assert set(here.gives) <= set(reading.metrics)
    for name, (_, unit, *_) in reading.metrics.items():
        assert here.gives.get(name, unit) == unit


rows = st.dictionaries(st.text("ab", max_size=2), st.lists(st.integers(0, 9), min_size=2, max_size=2))


@given(before=rows, by=rows)
def test_counters_that_only_grew_grew_by_that(before: dict[str, list[int]], by: dict[str, list[int]]) -> None:
    after = {
        name: [a + b for a, b in zip(before.get(name, [0, 0]), row, strict=True)] for name, row in by.items()
    }
    assert growth(before, after) == {name: tuple(row) for name, row in by.items() if any(row)}


@given(before=rows, after=rows)
def test_no_counter_grows_by_less_than_nothing(
    before: dict[str, list[int]], after: dict[str, list[int]]
) -> None:
    assert all(by >= 0 for row in growth(before, after).values() for by in row)


ODD = st.text() | st.text("0123456789 :.-\n=abcdefinrstuoxyl/²٣")


@pytest.mark.parametrize("word", ["", "-1", "1.5", "²", "٣", "1e3", "0x1"])
def test_what_the_kernel_would_not_write_is_no_count(word: str) -> None:
    assert to_ints(["1", word]) is None
    assert to_ints(["1", "02"]) == (1, 2)


@given(ODD)
def test_no_text_makes_a_parser_raise(text: str) -> None:
    assert all(count >= 0 for row in disk.parse_diskstats(text).values() for count in row)
    assert all(count >= 0 for row in network.parse_dev(text).values() for count in row)
    assert all(total >= 0 for total in pressure.parse_totals(text).values())
    assert all(total >= 0 for total in interrupts.parse_stat(text).values())
    counts, meanings = interrupts.parse_interrupts(text)
    assert counts.keys() == meanings.keys()
    numbers = to_ints(text.split())
    assert numbers is None or all(math.isfinite(number) for number in numbers)


@given(
    st.lists(
        st.tuples(st.text("abc-n0", min_size=1), st.lists(st.integers(0, 10**15), min_size=17, max_size=17))
    )
)
def test_diskstats_are_read_back(devices: list[tuple[str, list[int]]]) -> None:
    text = "".join(f" 8 {n} {name} {' '.join(map(str, row))}\n" for n, (name, row) in enumerate(devices))
    found = disk.parse_diskstats(text)
    assert found.keys() == {name for name, _ in devices}
    for name, row in dict(devices).items():
        reads, _, read, _, writes, _, written, *_ = row
        assert found[name][:4] == (reads, read * 512, writes, written * 512)
        assert found[name].flushes == row[15]


@given(
    st.dictionaries(st.text("abe0:", min_size=1), st.lists(st.integers(0, 2**64), min_size=16, max_size=16))
)
def test_traffic_is_read_back(interfaces: dict[str, list[int]]) -> None:
    text = HEAD + "".join(f"{name}: {' '.join(map(str, row))}\n" for name, row in interfaces.items())
    assert network.parse_dev(text) == {
        name: (row[0], row[1], row[8], row[9]) for name, row in interfaces.items()
    }


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z0-9]{1,3}", fullmatch=True),
        st.lists(st.integers(0, 2**40), min_size=3, max_size=3),
    )
)
def test_interrupts_are_read_back(table: dict[str, list[int]]) -> None:
    text = "  CPU0 CPU1 CPU2\n" + "".join(
        f"{name}: {' '.join(map(str, row))}  2 what it is\n" for name, row in table.items()
    )
    counts, meanings = interrupts.parse_interrupts(text)
    assert counts == {name: (sum(row),) for name, row in table.items()}
    assert set(meanings.values()) <= {"2 what it is"}


@pytest.mark.parametrize("text", ["", "cpu", "cpu x y\n", "cpu0 1 2 3\n", "intr 5"])
def test_a_machine_without_ticks_has_none(lay: Lay, text: str) -> None:
    assert machine_ticks(lay({"proc/stat": text})) == ()
