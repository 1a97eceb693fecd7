"""The test machine itself: what other tests rely on when they use one."""

import json
import os
import re
from pathlib import Path

import pytest

from support.guest.machine import PROJECT, GuestFails, Machine

DOCUMENTATION = PROJECT / "docs" / "guest.md"
OTHER = "etude.entry=other"

RESTARTER = """\
[Service]
ExecStart=systemctl reboot
[Install]
WantedBy=multi-user.target
"""


@pytest.mark.short
def test_systemd_is_the_first_process(guest: Machine) -> None:
    assert guest.read("/proc/1/comm") == b"systemd\n"


@pytest.mark.short
def test_cgroups_are_those_of_version_2_with_their_controllers(guest: Machine) -> None:
    controllers = guest.read("/sys/fs/cgroup/cgroup.controllers").split()
    assert {b"cpu", b"cpuset", b"io", b"memory", b"pids"} <= set(controllers)


@pytest.mark.short
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
    assert guest.check(f"modprobe --all {' '.join(names)} && echo loaded") == "loaded\n"


@pytest.mark.short
def test_there_is_no_network_but_the_loopback(guest: Machine) -> None:
    assert guest.check("ls /sys/class/net") == "lo\n"


@pytest.mark.short
def test_a_command_has_its_status_its_output_and_its_input(guest: Machine) -> None:
    answer = guest.run("cat; echo aside >&2; exit 3", stdin=b"given")
    assert (answer.status, answer.out, answer.err) == (3, "given", "aside\n")
    assert guest.run("kill -TERM $$").status == 143


@pytest.mark.short
def test_a_command_that_takes_too_long_is_killed(guest: Machine) -> None:
    with pytest.raises(GuestFails, match="not done within 1 s: sleep 12345"):
        guest.run("sleep 12345; true", within_s=1)
    assert guest.run("pgrep -f '[s]leep 12345'").status == 1


@pytest.mark.short
def test_files_go_in_and_come_out_with_their_modes(guest: Machine, tmp_path: Path) -> None:
    (tmp_path / "tree" / "below").mkdir(parents=True)
    (tmp_path / "tree" / "below" / "program").write_bytes(os.urandom(3 << 20))
    (tmp_path / "tree" / "below" / "program").chmod(0o755)
    guest.put(tmp_path / "tree", "/root/in")
    back = guest.fetch("/root/in/tree", tmp_path / "out") / "below" / "program"
    assert back.read_bytes() == (tmp_path / "tree" / "below" / "program").read_bytes()
    assert back.stat().st_mode & 0o777 == 0o755


@pytest.mark.short
def test_the_data_disk_takes_a_file_system(guest: Machine) -> None:
    guest.check("mkfs.ext4 -q -F /dev/vdb && mount /dev/vdb /mnt && touch /mnt/x && umount /mnt")


@pytest.mark.short
def test_bench_runs_and_its_results_come_out(guest: Machine, tmp_path: Path) -> None:
    guest.check("etude bench --trials 3 -o /root/results true")
    results = guest.fetch("/root/results", tmp_path)
    rows = [json.loads(line) for line in (results / "true" / "results.jsonl").read_text().splitlines()]
    assert [row["trial"] for row in rows if row["kept"]] == [1, 2, 3]  # The first is a warm-up.


@pytest.mark.short
def test_the_one_shot_entry_counts_for_one_boot(guest: Machine) -> None:
    boots = [guest.boot_id()]
    assert OTHER not in guest.command_line()
    guest.check("grub-reboot other-parameters")
    guest.restart()
    boots.append(guest.boot_id())
    assert OTHER in guest.command_line()
    assert "[never]" in guest.read("/sys/kernel/mm/transparent_hugepage/enabled").decode()
    guest.restart()
    boots.append(guest.boot_id())
    assert OTHER not in guest.command_line()
    assert len(set(boots)) == 3


@pytest.mark.short
def test_a_guest_that_does_not_come_up_in_time_is_off_and_shows_its_console(tmp_path: Path) -> None:
    with Machine(tmp_path / "slow") as slow:
        with pytest.raises(GuestFails, match="did not answer within") as failure:
            slow.start(within_s=3)
        assert not slow.power.is_on
    assert "end of its console" in str(failure.value)


def test_the_boot_menu_is_what_update_grub_makes_of_the_finished_machine(guest: Machine) -> None:
    entries = "grep -E '^\\s*(menuentry|submenu|linux|initrd|set default)' /boot/grub/grub.cfg"
    before = guest.check(entries)
    guest.check("update-grub")
    assert guest.check(entries) == before


def test_doctor_runs(guest: Machine) -> None:
    assert re.search(r"cgroups +v2, with cpu and memory", guest.run("etude doctor").out)


def test_what_was_synced_survives_a_power_cut(guest: Machine) -> None:
    before = guest.boot_id()
    guest.write("/root/kept", "kept")
    guest.check("sync")
    guest.power_cut()
    guest.start()
    assert guest.read("/root/kept") == b"kept"
    assert guest.boot_id() != before


def test_the_journal_of_the_boot_before_can_be_read(guest: Machine) -> None:
    guest.check("echo a line of before | systemd-cat -t etude-test && journalctl --sync")
    guest.restart()
    assert "a line of before" in guest.journal("-b", "-1", "-t", "etude-test")


def test_kexec_starts_a_kernel_without_the_boot_loader(guest: Machine) -> None:
    before = guest.boot_id()
    guest.check("kexec -l /vmlinuz --initrd=/initrd.img --reuse-cmdline --append=etude.kexec")
    guest.spawn("systemctl kexec")
    guest.wait_restart(before)
    assert "etude.kexec" in guest.command_line()
    guest.restart()


def test_a_source_tree_laid_over_the_installed_one_is_what_runs(guest: Machine, tmp_path: Path) -> None:
    source = tmp_path / "etude"
    source.mkdir()
    (source / "__init__.py").write_text("")
    place = guest.check("ls -d /opt/etude/lib/python3*/site-packages/etude").strip()
    guest.check(f"cp -r {place} /root/etude-of-the-wheel")
    guest.put_source(source)
    assert guest.run("etude --version").status != 0
    guest.check(f"rm -r {place} && mv /root/etude-of-the-wheel {place}")
    assert guest.check("etude --version").startswith("etude ")


def test_a_guest_that_restarts_for_ever_is_ended(tmp_path: Path) -> None:
    with Machine(tmp_path / "restless", most_boots=2) as restless:
        restless.start()
        restless.write("/etc/systemd/system/restarter.service", RESTARTER)
        restless.check("systemctl enable restarter.service")
        restless.spawn("systemctl start restarter.service")
        assert restless.power.wait_off(300)
        assert restless.power.ended_because == "it booted more than 2 times"


def test_a_guest_that_switches_itself_off_is_off(tmp_path: Path) -> None:
    with Machine(tmp_path / "ending", processors=1, memory_mib=512) as ending:
        ending.start()
        assert ending.check("nproc") == "1\n"
        ending.power_off()
        with pytest.raises(GuestFails, match="it switched itself off"):
            ending.check("true")
