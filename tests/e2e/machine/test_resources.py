"""Resources held at levels on this machine, as its kernel has them: cgroups, loop devices, queueing disciplines.

No test waits for a time on the wall; where one is measured it has a lower bound alone, which no busy machine refutes.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from etude.machine.resources.cgroups import Place, make_group
from etude.machine.resources.ledger import detach_loop, held_ledger, loops_of
from etude.machine.resources.resource import Resource, Setting, applied_levels, undo_left
from etude.machine.resources.table import resource_of
from etude.osutil.commands import wait_until
from etude.osutil.mounts import mounts

pytestmark = [pytest.mark.serial, pytest.mark.needs_root]
needs_btrfs = pytest.mark.needs_program("mkfs.btrfs", package="btrfs-progs")
needs_tc = pytest.mark.needs_program("tc", package="iproute2")


ABSENT = (
    "no program",
    "the kernel has no",
    "no cgroup controller",
    "read-only",
    "holds processes",
    "loop device: No such",
)
"""What a machine may lack; all else that a check says is a fault."""


def of(**table: Any) -> Resource:
    """A resource that works here; where it cannot, the test is skipped with why."""
    why = why_not(json.dumps(table))
    if why and any(words in why for words in ABSENT):
        pytest.skip(why)
    assert why is None
    return resource_of(table, "test")


@cache
def why_not(table: str) -> str | None:
    return resource_of(json.loads(table), "test").check()


def at(resources: dict[str, Resource], directory: Path, **levels: str) -> Any:
    return applied_levels(resources, levels, directory)


def run(setting: Setting, *command: str) -> str:
    done = subprocess.run([*setting.prefix, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def as_found(tmp_path: Path) -> Iterator[None]:
    """No test leaves a cgroup, a loop device or a mount, and neither does a failing one."""
    before = groups_here()
    yield
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=False).stdout
    assert groups_here() == before
    assert str(tmp_path) not in loops + Path("/proc/self/mountinfo").read_text()


def groups_here() -> list[str]:
    return sorted(str(each) for each in Path("/sys/fs/cgroup").rglob("etude-held-*") if each.is_dir())


BUSY = """
import time
start, cpu = time.monotonic(), time.process_time()
while time.monotonic() - start < 0.6: pass
print((time.process_time() - cpu) / (time.monotonic() - start))
"""


@pytest.mark.quick
def test_a_busy_loop_gets_half_of_a_cpu_by_a_quota_of_a_half(tmp_path: Path) -> None:
    with at({"cpu": of(resource="quota")}, tmp_path, cpu="0.5") as setting:
        share = float(run(setting, sys.executable, "-c", BUSY))
        throttled = throttled_periods(Path(setting.groups[0]))
    assert share < 0.75  # of the last period all may be used at once
    assert throttled >= 1 or share < 0.5


def throttled_periods(group: Path) -> int:
    pairs = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(pairs["nr_throttled"])


def test_a_command_and_its_children_are_on_their_cpus(tmp_path: Path) -> None:
    last = str(max(os.sched_getaffinity(0)))
    with at({"cpus": of(resource="cpus")}, tmp_path, cpus=f"{last},") as setting:
        status = run(setting, "sh", "-c", "true; grep Cpus_allowed_list /proc/self/status")
    assert status.split()[1] == last


HUNGRY = "b = bytearray({} << 20)\nfor at in range(0, len(b), 4096): b[at] = 1"


def test_a_command_that_wants_more_memory_is_killed_and_another_is_not(tmp_path: Path) -> None:
    with at({"memory": of(resource="memory")}, tmp_path, memory="64M") as setting:
        small = subprocess.run([*setting.prefix, sys.executable, "-c", HUNGRY.format(16)], check=False)
        large = subprocess.run([*setting.prefix, sys.executable, "-c", HUNGRY.format(128)], check=False)
    assert small.returncode == 0
    assert large.returncode == -signal.SIGKILL


@pytest.mark.quick
@needs_btrfs
@pytest.mark.parametrize("disks", [1, 2])
def test_a_volume_of_loop_devices_is_mounted_and_then_gone(tmp_path: Path, disks: int) -> None:
    volume = of(resource="volume", size="128M")
    with at({"disks": volume}, tmp_path / "ledger", disks=str(disks)) as setting:
        mount = Path(setting.values["volume"])
        (mount / "file").write_text("data")
        assert os.path.ismount(mount)
        assert len(setting.values["devices"].split()) == disks
        shown = run(setting, "btrfs", "filesystem", "show", str(mount))
        assert f"Total devices {disks}" in shown
        assert os.statvfs(mount).f_blocks * os.statvfs(mount).f_frsize == disks * (128 << 20)
    assert not mount.exists()
    assert [each.name for each in (tmp_path / "ledger").iterdir()] == ["resources.lock"]


@needs_btrfs
def test_a_volume_goes_though_a_command_still_uses_it(tmp_path: Path) -> None:
    """The command is in a group, which ends first."""
    resources = {"cpu": of(resource="quota"), "disks": of(resource="volume", size="128M")}
    with at(resources, tmp_path, cpu="1", disks="1") as setting:
        inside = subprocess.Popen(
            [
                *setting.prefix,
                "sh",
                "-c",
                'cd "$1" && touch there && sleep 60',
                "sh",
                setting.values["volume"],
            ]
        )
        assert wait_until(20.0, (Path(setting.values["volume"]) / "there").exists)
    assert inside.wait(10) == -signal.SIGKILL


def test_a_file_that_is_a_loop_device_already_is_not_erased(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    file.touch()
    os.truncate(file, 128 << 20)
    device = subprocess.run(
        ["losetup", "--find", "--show", file], capture_output=True, text=True, check=True
    ).stdout.strip()
    try:
        found = resource_of({"resource": "volume", "files": [str(file)], "erase": True}, "test")
        why = found.check()
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
    assert device in str(why)
    assert "in use" in str(why)


def test_a_loop_device_whose_file_was_removed_is_detached_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    file.write_bytes(bytes(4096))
    subprocess.run(["losetup", "--find", file], check=True)
    file.unlink()
    assert len(loops_of(str(file))) == 1
    detach_loop(str(file))
    assert loops_of(str(file)) == []


def test_the_disk_of_this_machine_is_not_erased() -> None:
    mounted = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    disks = [words[0] for words in mounted if words[0].startswith("/dev/") and os.path.exists(words[0])]
    if not disks:
        pytest.skip("nothing is mounted from /dev")
    found = resource_of({"resource": "volume", "devices": disks[:1], "erase": True}, "test")
    if shutil.which("mkfs.btrfs"):
        assert "would be erased" in str(found.check())


@needs_btrfs
def test_direct_writes_are_held_to_their_rate(tmp_path: Path) -> None:
    resources = {
        "io": of(resource="io", device="{devices}", limit="write_bps"),
        "disks": of(resource="volume", size="128M"),
    }
    with at(resources, tmp_path, io="4M", disks="1") as setting:
        file = f"{setting.values['volume']}/file"
        start = time.monotonic()
        run(setting, "dd", "if=/dev/zero", f"of={file}", "bs=256k", "count=8", "oflag=direct")
        took_s = time.monotonic() - start
    assert took_s > 0.3  # 2 MiB at 4 MiB/s; a slice of 0.1 s may be used at once


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network namespace with its loopback up, as long as the test takes."""
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 600"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if not holder.stdout or holder.stdout.readline() != "up\n":
            pytest.skip("no network namespace can be made")
        yield f"/proc/{holder.pid}/ns/net"
    finally:
        holder.kill()
        holder.communicate()


SEND = """
import os, socket, time
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
accepted, _ = server.accept()
size, got, start = 400_000, 0, time.monotonic()
if not os.fork():
    client.sendall(bytes(size)); os._exit(0)
while got < size: got += len(accepted.recv(1 << 16))
print(size / (time.monotonic() - start))
"""


def qdiscs(namespace: str) -> Any:
    words = ("nsenter", f"--net={namespace}", "tc", "-j", "qdisc", "show", "dev", "lo")
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


@needs_tc
def test_a_transfer_is_held_to_its_rate_and_the_interface_is_put_back(namespace: str, tmp_path: Path) -> None:
    network = of(resource="network", interface="lo", namespace=namespace)
    before = qdiscs(namespace)
    with at({"net": network}, tmp_path, net="4mbit"):
        (ours,) = qdiscs(namespace)
        sent = subprocess.run(
            ["nsenter", f"--net={namespace}", sys.executable, "-c", SEND],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert ours["kind"] == "tbf"
    assert ours["options"]["rate"] == 500_000
    assert float(sent.stdout) < 800_000  # B/s: 500 000, and a bucket of 131 072 B that is full at first
    assert qdiscs(namespace) == before


@needs_tc
def test_a_discipline_of_somebody_else_is_left_alone(namespace: str) -> None:
    words = ("nsenter", f"--net={namespace}", "tc", "qdisc", "add", "dev", "lo", "root", "pfifo")
    subprocess.run(words, check=True)
    found = resource_of({"resource": "network", "interface": "lo", "namespace": namespace}, "test")
    assert "pfifo" in str(found.check())
    assert [each["kind"] for each in qdiscs(namespace)] == ["pfifo"]


HOLDER = """
import sys, time
from pathlib import Path
from etude.machine.resources.resource import applied_levels
from etude.machine.resources.table import resource_of
import json, subprocess
tables, levels = json.loads(sys.argv[1])
resources = {name: resource_of(table, "x") for name, table in tables.items()}
with applied_levels(resources, levels, Path(sys.argv[2])) as setting:
    child = subprocess.Popen([*setting.prefix, "sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(json.dumps([setting.groups, setting.values, child.pid]), flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(namespace: str, tmp_path: Path) -> Iterator[Callable[[], tuple[subprocess.Popen[str], Any]]]:
    """Starts a process that holds one of each, with a command in them."""
    tables = {
        "cpu": {"resource": "quota"},
        "memory": {"resource": "memory"},
        "disks": {"resource": "volume", "size": "128M"},
        "net": {"resource": "network", "interface": "lo", "namespace": namespace},
        "hook": {
            "resource": "hook",
            "apply": f"touch {tmp_path}/h{{level}}",
            "undo": f"rm {tmp_path}/h{{level}}",
        },
    }
    for table in tables.values():
        of(**table)
    levels = {"cpu": "0.5", "memory": "64M", "disks": "2", "net": "4mbit", "hook": "3"}
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], Any]:
        words = [sys.executable, "-c", HOLDER, json.dumps([tables, levels]), str(tmp_path / "ledger")]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout
        return process, json.loads(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()
    undo_left(tmp_path / "ledger")


@needs_btrfs
@needs_tc
def test_what_a_process_leaves_that_is_killed_is_undone_by_another(
    holder: Callable[[], tuple[subprocess.Popen[str], Any]], namespace: str, tmp_path: Path
) -> None:
    found = qdiscs(namespace)
    process, (groups, values, _) = holder()
    process.kill()
    process.communicate()
    assert all(Path(group).is_dir() for group in groups)
    assert os.path.ismount(values["volume"])
    assert (tmp_path / "h3").exists()
    assert qdiscs(namespace) != found

    left = undo_left(tmp_path / "ledger")
    assert left[0] == "remove_group"
    assert not any(Path(group).exists() for group in groups)
    assert not os.path.exists(values["volume"])
    assert not (tmp_path / "h3").exists()
    assert qdiscs(namespace) == found
    assert undo_left(tmp_path / "ledger") == []


@needs_btrfs
@needs_tc
def test_a_process_that_is_ended_by_sigterm_undoes_all_itself(
    holder: Callable[[], tuple[subprocess.Popen[str], Any]], namespace: str, tmp_path: Path
) -> None:
    found = qdiscs(namespace)
    process, (groups, values, _) = holder()
    process.terminate()
    _, errors = process.communicate()
    assert "ended by SIGTERM" in errors
    assert not any(Path(group).exists() for group in groups)
    assert not os.path.exists(values["volume"])
    assert not (tmp_path / "h3").exists()
    assert qdiscs(namespace) == found
    assert undo_left(tmp_path / "ledger") == []


def test_version_2_gives_a_controller_and_takes_it_back(tmp_path: Path) -> None:
    """With any controller that this machine has in version 2; their limits are tried on recorded trees."""
    top = next((Path(mount.target) for mount in mounts() if mount.kind == "cgroup2"), None)
    if top and not os.access(top / "cgroup.subtree_control", os.W_OK):
        pytest.skip(f"{top} is mounted read-only")
    names = (top / "cgroup.controllers").read_text().split() if top else []
    given = (top / "cgroup.subtree_control").read_text().split() if top else []
    name = next((each for each in names if each not in given), None)
    if top is None or name is None:
        pytest.skip("cgroup v2 has no controller here that its children lack")
    with held_ledger(tmp_path) as ledger:
        try:
            group = make_group(Place(2, top, (top,)), name, ledger)
            inside = subprocess.Popen([*Setting((str(group),)).prefix, "sleep", "60"])
            (group / "below").mkdir()
            assert name in (top / "cgroup.subtree_control").read_text().split()
            assert name in (group / "cgroup.controllers").read_text().split()
            assert wait_until(20.0, lambda: str(inside.pid) in (group / "cgroup.procs").read_text().split())
        finally:
            ledger.undo()
    assert inside.wait(10) == -signal.SIGKILL
    assert not group.exists()
    assert (top / "cgroup.subtree_control").read_text().split() == given
