import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.machine import snapshot, tree
from support.profiles import examples

Machines = Callable[[str], Path]


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for member in value.values() for leaf in leaves(member)]
    return [value]


def test_a_desktop_is_described_from_its_files_alone(machine: Machines) -> None:
    seen = snapshot.take(machine("desktop"), Path("/home/me"))
    assert seen["system"]["kernel_release"] == "6.12.41-amd64"
    assert seen["system"]["distribution"] == "Debian GNU/Linux 13 (trixie)"
    assert seen["system"]["architecture"] == "x86_64"
    assert seen["system"]["uptime_s"] == 86400.25
    assert seen["cpu"]["model"] == "Intel(R) Core(TM) i7-7700K CPU @ 4.20GHz"
    assert (seen["cpu"]["online"], seen["cpu"]["sockets"], seen["cpu"]["smt"]) == (8, 1, True)
    assert seen["cpu"]["flags"] == 10
    assert seen["cpu"]["isolated"] == []
    assert seen["cpu"]["caches"][0] == {"level": 1, "type": "Data", "size_bytes": 32768, "shared_by": 2}
    assert seen["frequency"]["governors"] == ["powersave"]
    assert (seen["frequency"]["lowest_hz"], seen["frequency"]["highest_hz"]) == (800_000_000, 4_500_000_000)
    assert seen["frequency"]["turbo"] is True
    assert seen["memory"]["total_bytes"] == 16303428 * 1024
    assert seen["memory"]["swap_used_bytes"] == 512 << 20
    assert seen["memory"]["huge_pages"] == "always"
    assert seen["kernel"]["clock_source"] == "hpet"
    assert seen["kernel"]["mitigations"]["meltdown"] == "Mitigation: PTI"
    assert seen["virtualisation"]["hypervisor_flag"] is False
    assert seen["cgroup"] == {
        "versions": [2],
        "controllers": ["cpuset", "cpu", "io", "memory", "pids"],
        "cpu_max": "max 100000",
        "memory_max": "8589934592",
    }
    assert seen["load"]["pressure"]["cpu"] == {"avg10": 12.5, "avg60": 4.0}


def test_a_virtual_machine_says_so_and_has_no_frequencies(machine: Machines) -> None:
    seen = snapshot.take(machine("virtual"), Path("/"))
    assert seen["virtualisation"]["hypervisor_flag"] is True
    assert seen["frequency"]["governors"] == []
    assert seen["frequency"]["turbo"] is None
    assert seen["cgroup"]["versions"] == [1, 2]
    assert seen["load"]["steal_ticks"] == 25
    assert seen["load"]["pressure"]["cpu"] is None
    assert seen["system"]["architecture"] is None


def test_an_arm_server_is_described_by_other_names_for_the_same_things(machine: Machines) -> None:
    seen = snapshot.take(machine("arm-server"), Path("/"))
    assert seen["system"]["distribution"] == "Ubuntu 24.04.2 LTS"
    assert (seen["cpu"]["model"], seen["cpu"]["vendor"]) == ("0xd0c", "0x41")
    assert (seen["cpu"]["sockets"], seen["cpu"]["numa_nodes"]) == (2, 2)
    assert (seen["cpu"]["isolated"], seen["cpu"]["allowed"]) == ([2, 3], [0, 1])
    assert seen["frequency"]["turbo"] is False
    assert seen["cgroup"] == {"versions": [], "controllers": None, "cpu_max": None, "memory_max": None}


@pytest.mark.parametrize(
    ("name", "directory", "mount_point", "kind"),
    [
        ("desktop", "/home/with blank/x", "/home/with blank", "xfs"),
        ("desktop", "/home/with blanks", "/", "ext4"),
        ("virtual", "/tmp/results", "/tmp", "ext4"),
    ],
    ids=["blank in its name", "a longer name is another directory", "the last mount on one place wins"],
)
def test_the_file_system_is_that_of_the_deepest_mount(
    machine: Machines, name: str, directory: str, mount_point: str, kind: str
) -> None:
    seen = snapshot.file_system(machine(name), directory)
    assert (seen["mount_point"], seen["type"]) == (mount_point, kind)


def test_a_disk_has_a_scheduler(machine: Machines) -> None:
    seen = snapshot.file_system(machine("desktop"), "/")
    assert (seen["scheduler"], seen["options"]) == ("none", "rw,relatime,errors=remount-ro")


def test_of_an_empty_root_everything_but_python_is_unknown(tmp_path: Path) -> None:
    seen = snapshot.take(tmp_path, Path("/somewhere"))
    assert seen.pop("python")["implementation"] == sys.implementation.name
    assert seen["directory"].pop("path") == "/somewhere"
    assert set(seen.pop("environment")["variables"]) == set(os.environ)
    assert {repr(leaf) for leaf in leaves(seen)} == {"None", "[]"}


def test_all_machines_have_the_same_members(machine: Machines, tmp_path: Path) -> None:
    def members(value: Any) -> Any:
        return {name: members(member) for name, member in value.items()} if isinstance(value, dict) else None

    real = snapshot.take()
    empty = snapshot.take(tmp_path / "empty")
    for seen in (real, empty):
        seen["kernel"]["mitigations"] = seen["load"]["pressure"] = None
        for by_name in ("sysctl", "limits", "mounts", "disks", "programs", "toolchain"):
            seen[by_name] = None
    assert members(real) == members(empty)


def test_this_machine_has_a_snapshot_that_is_plain_data() -> None:
    seen = snapshot.take()
    assert json.loads(json.dumps(seen)) == seen
    assert seen["system"]["kernel_release"] == os.uname().release
    assert set(seen["cpu"]["allowed"]) == os.sched_getaffinity(0)


def test_a_directory_that_is_gone_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert snapshot.take()["directory"]["path"] == "/"


def test_a_snapshot_costs_little() -> None:
    # CPU time, which neighbours on a busy machine do not lengthen much; measured: 6.3 ms, of which tools are a third.
    def cpu_s() -> float:
        start = time.process_time()
        snapshot.take()
        return time.process_time() - start

    assert statistics.median(cpu_s() for _ in range(9)) < 0.04


def test_importing_it_brings_no_heavy_module_along() -> None:
    code = "import sys, etude.machine.snapshot; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"subprocess", "socket", "platform", "numpy"} & set(done.stdout.split()) == set()


FILES = [
    "proc/cpuinfo",
    "proc/loadavg",
    "proc/meminfo",
    "proc/pressure/cpu",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/self/mounts",
    "proc/self/status",
    "proc/stat",
    "proc/uptime",
    "etc/os-release",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/cpu0/cache/index0/size",
    "sys/devices/system/cpu/cpu0/cache/index0/level",
    "sys/kernel/mm/transparent_hugepage/enabled",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(
    contents=st.dictionaries(
        st.sampled_from(FILES),
        st.one_of(st.binary(max_size=80), st.text("cpu0123 :-./=\nsome[]K", max_size=80).map(str.encode)),
    )
)
def test_no_content_of_files_makes_it_raise(tmp_path: Path, contents: dict[str, bytes]) -> None:
    for path in FILES:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(contents.get(path, b""))
    json.dumps(snapshot.take(tmp_path))


@given(st.sets(st.integers(0, 300)))
def test_a_list_of_cpus_is_read_back(cpus: set[int]) -> None:
    ordered = sorted(cpus)
    starts = [cpu for cpu in ordered if cpu - 1 not in cpus]
    ends = [cpu for cpu in ordered if cpu + 1 not in cpus]
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
    assert tree.to_cpus(text) == ordered
