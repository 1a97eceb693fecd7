"""What each operation would change, on machines that are laid out, and why it cannot."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from etude.machine.quiet import apply_restore
from etude.machine.quiet.apply_restore import quiet_status
from etude.machine.quiet.cpus import mask, of_mask
from etude.machine.quiet.table import all_of, parse
from etude.machine.tree import cpu_ranges
from support.quiet_kernel import Kernel

POLICY = "sys/devices/system/cpu/cpufreq/policy"


def why_not(kernel: Kernel, *words: str) -> dict[str, str]:
    return apply_restore.apply(parse(words), kernel).unavailable


@pytest.mark.parametrize("limit", ["0", "100"])
def test_a_sampling_rate_that_the_kernel_would_refuse_is_not_tried(kernel: Kernel, limit: str) -> None:
    kernel.write("proc/sys/kernel/perf_cpu_time_max_percent", limit)
    refused = why_not(kernel, "perf")
    assert set(refused) == {"perf"}
    assert re.match(rf"perf_cpu_time_max_percent .*\b{limit}\b", refused["perf"])


def test_swap_stays_on_where_memory_has_no_room_for_it(kernel: Kernel) -> None:
    swaps = "Filename Type Size Used Priority\n/dev/sda2 partition 9000000 900000 -2\n"
    (kernel.root / "proc/swaps").write_text(swaps)
    assert "878 MiB" in why_not(kernel, "swap")["swap"]
    (kernel.root / "proc/swaps").write_text(
        swaps.replace("/dev/sda2", "/gone\\040(deleted)").replace("900000", "9")
    )
    assert "/gone (deleted): " in why_not(kernel, "swap")["swap"]


def test_swap_is_turned_on_by_its_priority_and_as_fstab_says(kernel: Kernel) -> None:
    apply_restore.apply(parse(["swap"]), kernel)
    apply_restore.restore(kernel)
    assert kernel.tools == [
        *("swapoff /dev/zram0", "swapoff /swap file", "swapoff /dev/sda2"),
        *("swapon --priority 5 --discard=pages /dev/sda2", "swapon /swap file", "swapon /dev/zram0"),
    ]


def test_a_governor_that_is_not_offered_is_said_with_those_that_are(kernel: Kernel) -> None:
    (kernel.root / f"{POLICY}1/scaling_available_governors").write_text("ondemand powersave\n")
    refused = why_not(kernel, "governor")
    assert set(refused) == {"governor"}
    assert re.match(rf"/{POLICY}1 .*\bperformance\b.* ondemand powersave$", refused["governor"])


def test_a_file_that_cannot_be_written_is_a_reason_and_no_failure(kernel: Kernel) -> None:
    class ReadOnly(Kernel):
        def writable(self, path: str) -> bool:
            return not path.startswith("sys/")

    before = kernel.seen()
    refused = why_not(ReadOnly(kernel.root, threads=kernel.threads), "thp", "turbo", "governor")
    assert set(refused) == {"thp", "turbo", "governor"}
    assert all("cannot be written" in why for why in refused.values())
    assert kernel.seen() == before


def test_ssh_stays_while_somebody_is_logged_in_over_it(kernel: Kernel) -> None:
    for name, above in (("sshd", 24), ("sshd-session", 1)):
        kernel.process(99, name, above=above)
        assert "(process 99)" in why_not(kernel, "ssh")["ssh"]
    kernel.process(99, "bash")
    assert why_not(kernel, "ssh") == {}


def test_a_refusal_of_logins_that_is_there_already_stays_as_it_is(kernel: Kernel) -> None:
    (kernel.root / "etc/nologin").write_text("maintenance\n")
    assert apply_restore.apply(parse(["logins"]), kernel).already == ["logins"]
    apply_restore.restore(kernel)
    assert (kernel.root / "etc/nologin").read_text() == "maintenance\n"


def test_anothers_refusal_of_logins_in_the_place_of_ours_stays(kernel: Kernel) -> None:
    apply_restore.apply(parse(["logins"]), kernel)
    (kernel.root / "run/nologin").write_text("Going down.\n")
    apply_restore.restore(kernel)
    assert (kernel.root / "run/nologin").read_text() == "Going down.\n"


def test_known_daemons_are_frozen_where_systemd_does_not_run(kernel: Kernel) -> None:
    changes = apply_restore.apply(parse(["services"]), kernel).done["services"]
    assert [each.item for each in changes] == ["process:cron:20:20", "process:cupsd:21:21"]
    assert {each.put for each in changes} == {"frozen"}


def test_a_process_with_the_number_of_one_that_has_ended_is_left_alone(kernel: Kernel) -> None:
    apply_restore.apply(parse(["services", "shield", "cpus=3"]), kernel)
    kernel.process(20, "make", state="T", start=999_999)
    kernel.threads[20] = {2}
    apply_restore.restore(kernel)
    assert " T " in (kernel.root / "proc/20/stat").read_text()
    assert kernel.threads[20] == {2}


def test_what_is_born_behind_the_shield_gets_what_its_parent_had(kernel: Kernel) -> None:
    apply_restore.apply(parse(["shield", "cpus=3"]), kernel)
    assert (kernel.threads[20], kernel.threads[21], kernel.threads[22]) == ({0, 1, 2}, {1}, {0, 1, 2, 3})
    kernel.process(301, "child of cupsd", above=21, start=200_000)
    kernel.process(302, "grandchild", above=301, start=200_000)
    kernel.process(303, "pinned by itself", above=20, start=200_000)
    kernel.threads.update({301: {1}, 302: {0, 1, 2}, 303: {0}})
    apply_restore.restore(kernel)
    assert [kernel.threads[number] for number in (301, 302, 303)] == [{1, 3}, {0, 1, 2, 3}, {0}]


@pytest.mark.parametrize(
    ("cpus", "why"),
    [("9", r"\bCPU 9: .*\b0-3$"), ("0-3", r"\bno CPU\b")],
)
def test_cpus_that_cannot_be_kept_free_are_said(kernel: Kernel, cpus: str, why: str) -> None:
    refused = why_not(kernel, "irqs", "shield", f"cpus={cpus}")
    assert set(refused) == {"irqs", "shield"}
    assert all(re.search(why, each) for each in refused.values())


def test_masks_are_written_as_the_kernel_does() -> None:
    assert cpu_ranges({0, 1, 2, 5}) == "0-2,5"
    assert mask({0, 33}, like="ff,ffffffff") == "02,00000001"
    assert of_mask("02,00000001") == {0, 33}
    assert mask({1}, like="f") == "2"
    assert of_mask("nonsense") == set()


def test_the_limits_of_dirty_memory_are_put_back_in_the_unit_that_they_had(kernel: Kernel) -> None:
    for kind, value in (("ratio", "0"), ("ratio", "7"), ("bytes", "8192")):
        kernel.write("proc/sys/vm/dirty_ratio", "9")
        kernel.write(f"proc/sys/vm/dirty_{kind}", value)
        before = kernel.seen()
        apply_restore.apply(parse(["writeback"]), kernel)
        kernel.write("proc/sys/vm/dirty_bytes", "123456")
        apply_restore.restore(kernel)
        assert kernel.seen() == before


def test_the_status_says_what_is_what_and_changes_nothing(kernel: Kernel) -> None:
    before = kernel.seen()
    (kernel.root / "sys/kernel/mm/transparent_hugepage/enabled").unlink()
    (kernel.root / "sys/kernel/mm/transparent_hugepage/defrag").unlink()
    states = {row.name: row.state for row in quiet_status(all_of(), kernel)}
    assert states["aslr"] == "available"
    assert states["thp"] == states["shield"] == "unavailable"
    apply_restore.apply(parse(["aslr"]), kernel)
    (row,) = quiet_status(parse(["aslr"]), kernel)
    assert (row.state, row.now, row.state_text) == ("held", "2", "held (1 changed)")
    apply_restore.restore(kernel)
    assert {**kernel.seen(), "x": 0}.keys() - before.keys() == {"x"}


def test_what_is_in_force_stands_in_the_results_with_both_values(kernel: Kernel) -> None:
    assert apply_restore.recorded_changes(kernel) is None
    apply_restore.apply(parse(["aslr", "shield", "cpus=3"]), kernel)
    found = apply_restore.recorded_changes(kernel)
    assert found is not None
    assert found["aslr"] == {"proc/sys/kernel/randomize_va_space": ["1", "2"]}
    assert [values for name, values in found["shield"].items() if re.search("0-3.*0-2", name)] == [["0", "4"]]
    kernel.write("proc/sys/kernel/randomize_va_space", "0")
    assert set(apply_restore.recorded_changes(replace(kernel)) or ()) == {"shield"}, (
        "what others have changed since is not in force"
    )
