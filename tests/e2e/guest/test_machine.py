"""The test machine itself: what other tests rely on when they use one."""

import json
import os
import re
from pathlib import Path

import pytest

from support.guest.machine import BOOT_S, BOOTED, PROJECT, SECOND, GuestFails, Machine

DOCUMENTATION = PROJECT / "docs" / "internals" / "guest.md"
OTHER = "etude.entry=other"
KEPT = "/root/kept"


def test_systemd_is_the_first_process(guest: Machine) -> None:
    assert guest.read("/proc/1/comm") == b"systemd\n"


def test_cgroups_are_those_of_version_2_with_their_controllers(guest: Machine) -> None:
    controllers = guest.read("/sys/fs/cgroup/cgroup.controllers").split()
    assert {b"cpu", b"cpuset", b"io", b"memory", b"pids"} <= set(controllers)


def test_the_kernel_has_all_modules_that_are_documented(guest: Machine) -> None:
    table = (
        DOCUMENTATION.read_text(encoding="utf-8").partition("## What its kernel has")[2].partition("\n## ")[0]
    )
    names = [
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(.*?)`", row)
    ]
    assert {"sch_netem", "dm_flakey", "null_blk", "nfs", "nfsd"} <= set(names)
    guest.check(f"modprobe --all {' '.join(names)}")


def test_there_is_no_network_but_the_loopback(guest: Machine) -> None:
    assert guest.check("ls /sys/class/net") == "lo\n"


def test_a_command_has_its_status_its_output_and_its_input(guest: Machine) -> None:
    answer = guest.run("cat; echo aside >&2; exit 3", stdin=b"given")
    assert (answer.status, answer.out, answer.err) == (3, "given", "aside\n")
    assert guest.run("kill -TERM $$").status == 143


def test_a_command_that_takes_too_long_is_killed(guest: Machine) -> None:
    with pytest.raises(GuestFails, match="sleep 12345"):
        guest.run("sleep 12345; true", within_s=1)
    assert guest.run("pgrep -f '[s]leep 12345'").status == 1


def test_files_go_in_and_come_out_with_their_modes(guest: Machine, tmp_path: Path) -> None:
    (tmp_path / "tree" / "below").mkdir(parents=True)
    (tmp_path / "tree" / "below" / "program").write_bytes(os.urandom(3 << 20))
    (tmp_path / "tree" / "below" / "program").chmod(0o755)
    guest.put(tmp_path / "tree", "/root/in")
    back = guest.fetch("/root/in/tree", tmp_path / "out") / "below" / "program"
    assert back.read_bytes() == (tmp_path / "tree" / "below" / "program").read_bytes()
    assert back.stat().st_mode & 0o777 == 0o755


def test_the_data_disk_takes_a_file_system(guest: Machine) -> None:
    guest.check("mkfs.ext4 -q -F /dev/vdb && mount /dev/vdb /mnt && touch /mnt/x && umount /mnt")


def test_what_was_saved_is_gone_on_with_as_it_was(guest: Machine) -> None:
    boot = guest.boot_id()
    guest.check("mkfs.ext4 -q -F /dev/vdb")
    guest.write("/run/in-memory", "kept")
    guest.write(KEPT, "kept")
    guest.save("marked")
    guest.check(f"wipefs -a /dev/vdb; rm /run/in-memory {KEPT}; sync")
    guest.restore("marked")
    assert guest.boot_id() == boot
    assert guest.power.boots == 0
    assert guest.read("/run/in-memory") == guest.read(KEPT) == b"kept"
    guest.check("mount /dev/vdb /mnt")


def test_bench_runs_and_its_results_come_out(guest: Machine, tmp_path: Path) -> None:
    guest.check("etude bench --trials 3 -o /root/results true")
    results = guest.fetch("/root/results", tmp_path)
    rows = [json.loads(line) for line in (results / "true" / "results.jsonl").read_text().splitlines()]
    assert [row["trial"] for row in rows if row["kept"]] == [1, 2, 3]  # The first is a warm-up.


def test_an_entry_counts_for_one_boot_and_what_was_synced_survives_a_power_cut(guest: Machine) -> None:
    boots = [guest.boot_id()]
    assert OTHER not in guest.command_line()
    guest.check("echo of-before | systemd-cat -t etude-test && journalctl --sync")
    guest.check("grub-reboot other-parameters")
    guest.restart()
    boots.append(guest.boot_id())
    assert OTHER in guest.command_line()
    assert "[never]" in guest.read("/sys/kernel/mm/transparent_hugepage/enabled").decode()
    assert "of-before" in guest.journal("-b", "-1", "-t", "etude-test")
    assert guest.power.boots == 1
    guest.write(KEPT, "kept")
    guest.check("sync")
    guest.power_cut()
    guest.start()
    boots.append(guest.boot_id())
    assert OTHER not in guest.command_line()
    assert guest.read(KEPT) == b"kept"
    assert len(set(boots)) == 3


def test_kexec_starts_a_kernel_without_the_boot_loader(guest: Machine) -> None:
    before = guest.boot_id()
    guest.check("kexec -l /vmlinuz --initrd=/initrd.img --reuse-cmdline --append=etude.kexec")
    guest.spawn("systemctl kexec")
    guest.wait_restart(before)
    assert "etude.kexec" in guest.command_line()
    assert guest.power.boots == 0


def test_a_guest_that_does_not_come_up_in_time_is_off_and_shows_its_console(tmp_path: Path) -> None:
    with Machine(tmp_path / "slow", processors=1, memory_mib=512) as slow:
        with pytest.raises(GuestFails, match="its console"):
            slow.start(within_s=1)
        assert not slow.power.is_on


def test_the_boot_menu_is_what_update_grub_makes_of_the_finished_machine(guest: Machine) -> None:
    entries = "grep -E '^\\s*(menuentry|submenu|linux|initrd|set default)' /boot/grub/grub.cfg"
    before = guest.check(entries)
    guest.check("update-grub")
    assert guest.check(entries) == before


def test_doctor_sees_the_cgroups(guest: Machine) -> None:
    assert re.search(r"cgroups\b.*\bv2", guest.run("etude doctor").out)


def test_a_source_tree_laid_over_the_installed_one_is_what_runs(guest: Machine, tmp_path: Path) -> None:
    source = tmp_path / "etude"
    (source / "cli").mkdir(parents=True)
    (source / "__init__.py").write_text("")
    (source / "cli" / "main.py").write_text("def entry(): return 42")
    guest.check("etude --version")
    guest.put_source(source)
    assert guest.run("etude --version").status == 42


def test_a_guest_that_restarts_too_often_is_ended(guest: Machine) -> None:
    guest.power.renew(most_boots=0)
    guest.spawn("systemctl reboot")
    assert guest.power.wait_off(BOOT_S)
    assert (guest.power.boots, guest.power.ended_because != "") == (1, True)


def test_boots_are_counted_for_each_test(guest: Machine) -> None:
    guest.power.boots = 5
    guest.restore(BOOTED)
    assert guest.power.boots == 0


def test_a_guest_that_switches_itself_off_is_off(guest: Machine) -> None:
    guest.check(f"echo 1 >{SECOND}")
    assert guest.check("nproc") == "2\n"
    guest.power_off()
    assert not guest.power.ended_because
    with pytest.raises(GuestFails, match="switched itself off"):
        guest.check("true")
