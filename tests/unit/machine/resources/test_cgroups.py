"""Where groups are made, and what goes into them, on recorded trees."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.errors import InputError, MachineRefuses
from etude.machine.resources.cgroups import CgroupResource, Place, cgroup_place
from etude.machine.resources.ledger import Ledger, withdraw_controller
from etude.machine.resources.resource import Setting
from etude.machine.resources.table import BUFFERED, Cpus, Io, Memory, Quota, whole

Lay = Callable[[str], Path]
SLICE = "sys/fs/cgroup/user.slice/user-0.slice"


def applied(resource: CgroupResource, level: str, ledger: Ledger) -> dict[str, str]:
    """The files of the group."""
    (group,) = resource.apply(level, Setting(), ledger).groups
    return {file.name: file.read_text() for file in Path(group).iterdir()}


def test_in_v2_a_group_is_below_the_nearest_without_processes(tree: Lay) -> None:
    root = tree("systemd-v2")
    assert cgroup_place("memory", root) == Place(2, root / SLICE)
    assert cgroup_place("cpu", root) == Place(2, root / SLICE, (root / SLICE,))


def test_in_v2_a_controller_is_given_from_the_root_down(tree: Lay) -> None:
    root = tree("systemd-v2")
    top = root / "sys/fs/cgroup"
    assert cgroup_place("io", root) == Place(2, root / SLICE, (top, top / "user.slice", root / SLICE))


def test_controllers_that_were_given_are_withdrawn(tree: Lay, ledger: Ledger, monkeypatch) -> None:
    root = tree("systemd-v2")
    applied(Quota(root=root), "0.5", ledger)
    control = root / SLICE / "cgroup.subtree_control"
    assert control.read_text() == "+cpu"
    control.write_text("cpu memory pids\n")  # what a kernel makes of it
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)  # a kernel's files do not count
    ledger.undo()
    assert control.read_text() == "-cpu"
    assert not list((root / SLICE).glob("etude-held-*"))


def test_a_controller_stays_while_another_group_of_ours_is_there(tree: Lay, ledger: Ledger) -> None:
    root = tree("systemd-v2")
    (root / SLICE / "etude-held-0").mkdir()
    withdraw_controller(str(root / SLICE), "memory")
    assert (root / SLICE / "cgroup.subtree_control").read_text() == "memory pids\n"


def test_a_container_that_holds_processes_says_why_not(tree: Lay) -> None:
    assert "holds processes" in str(cgroup_place("cpu", tree("container-v2")))
    assert "systemd-run --scope" in str(Quota(root=tree("container-v2")).check())


def test_a_read_only_mount_says_why_not(tree: Lay, ledger: Ledger) -> None:
    quota = Quota(root=tree("readonly-v2"))
    assert "read-only" in str(quota.check())
    with pytest.raises(MachineRefuses, match="read-only"):
        quota.apply("1", Setting(), ledger)
    assert not ledger.steps


def test_a_machine_without_cgroups_says_why_not(tmp_path: Path) -> None:
    assert "blkio" in str(cgroup_place("io", tmp_path))


def test_in_v1_a_group_is_below_this_process_s_own(tree: Lay) -> None:
    root = tree("v1")
    assert cgroup_place("cpu", root) == Place(1, root / "sys/fs/cgroup/cpu,cpuacct")
    assert cgroup_place("memory", root) == Place(1, root / "sys/fs/cgroup/memory/job7")
    assert cgroup_place("io", root) == Place(1, root / "sys/fs/cgroup/blkio")


@pytest.mark.parametrize("own", ["/other", "/docker/ab12/../cd34", "/docker/ab12/gone"])
def test_a_group_that_a_mount_does_not_show_is_below_the_mount(tree: Lay, own: str) -> None:
    root = tree("v1")
    (root / "proc/self/cgroup").write_text(f"4:memory:{own}\n")
    assert cgroup_place("memory", root) == Place(1, root / "sys/fs/cgroup/memory")


def test_each_controller_is_found_in_the_version_that_has_it(tree: Lay) -> None:
    root = tree("mixed")
    unified = root / "sys/fs/cgroup/unified"
    assert cgroup_place("memory", root) == Place(1, root / "sys/fs/cgroup/memory")
    assert cgroup_place("cpu", root) == Place(2, unified, (unified,))
    found = cgroup_place("cpuset", root)
    assert isinstance(found, str)
    assert "cpuset" in found


def test_a_quota_is_microseconds_in_each_period(tree: Lay, ledger: Ledger) -> None:
    assert applied(Quota(root=tree("systemd-v2")), "0.5", ledger) == {"cpu.max": "50000 100000"}
    files = applied(Quota(root=tree("v1")), "1.25", ledger)
    assert files == {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "125000"}


def test_a_set_of_cpus_has_the_memory_nodes_of_the_group_above(tree: Lay, ledger: Ledger) -> None:
    assert applied(Cpus(root=tree("v1")), "2", ledger) == {"cpuset.cpus": "1-2", "cpuset.mems": "0"}
    assert applied(Cpus(root=tree("systemd-v2")), "0,2-3", ledger) == {"cpuset.cpus": "0,2-3"}


def test_cpus_beyond_those_of_the_group_above_are_refused(tree: Lay, ledger: Ledger) -> None:
    with pytest.raises(InputError, match="at most 3"):
        Cpus(root=tree("v1")).apply("4", Setting(), ledger)
    assert not ledger.steps


def test_memory_has_no_swap_beyond_it(tree: Lay, ledger: Ledger) -> None:
    root = tree("v1")
    limit = str(64 << 20)
    assert applied(Memory(root=root), "64M", ledger) == {"memory.limit_in_bytes": limit}
    (root / "sys/fs/cgroup/memory/job7" / ledger.name / "memory.memsw.limit_in_bytes").touch()
    assert applied(Memory(root=root), "64M", ledger)["memory.memsw.limit_in_bytes"] == limit

    group = tree("systemd-v2") / SLICE / ledger.name
    group.mkdir()
    (group / "memory.swap.max").touch()
    files = applied(Memory(root=tree("systemd-v2")), "64M", ledger)
    assert files == {"memory.max": limit, "memory.swap.max": "0"}


def test_io_is_limited_on_each_disk_that_another_resource_gives(
    tree: Lay, ledger: Ledger, monkeypatch
) -> None:
    numbers = {"/dev/a": "8:0", "/dev/b": "8:16"}
    monkeypatch.setattr("etude.machine.resources.table.number_of", lambda path, _: numbers[path])
    setting = Setting(values={"devices": "/dev/a /dev/b"})
    v1 = Io(device="{devices}", limit="bps", root=tree("v1"))
    assert v1.writes("1M", Place(1, Path()), setting) == [
        ("blkio.throttle.read_bps_device", "8:0 1048576"),
        ("blkio.throttle.write_bps_device", "8:0 1048576"),
        ("blkio.throttle.read_bps_device", "8:16 1048576"),
        ("blkio.throttle.write_bps_device", "8:16 1048576"),
    ]
    v2 = Io(device="{devices}", limit="write_iops")
    assert v2.writes("100", Place(2, Path()), setting) == [
        ("io.max", "8:0 wiops=100"),
        ("io.max", "8:16 wiops=100"),
    ]
    assert Io(device="/dev/a", root=tree("v1")).apply("1M", Setting(), ledger).notes == (BUFFERED,)
    assert not Io(device="/dev/a", limit="read_bps").notes(Place(1, Path()))


def test_io_of_a_volume_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"\{devices\}"):
        Io(device="{devices}").writes("1M", Place(2, Path()), Setting())


def test_the_limits_of_a_partition_are_on_its_disk(tmp_path: Path) -> None:
    disk = tmp_path / "sys/devices/sda"
    (disk / "sda1").mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (disk / "sda1/partition").write_text("1\n")
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    (tmp_path / "sys/dev/block/8:1").symlink_to(disk / "sda1")
    assert whole("8:1", tmp_path) == "8:0"
    assert whole("8:0", tmp_path) == "8:0"


def test_level_max_makes_no_group(tree: Lay, ledger: Ledger) -> None:
    assert Memory(root=tree("v1")).apply("max", Setting(), ledger) == Setting()
    assert not ledger.steps
