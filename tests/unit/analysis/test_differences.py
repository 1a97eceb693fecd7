"""What differs between two results, what always does, and what cannot be told."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.repetition import machine_differences
from etude.analysis.snapshot_differences import NOT_THERE, Difference, compare, compare_states
from etude.present.sentences.machines import machine_line
from support.golden import Golden

FILE = {"path": "/usr/bin/cc", "file": "/usr/bin/gcc-12", "bytes": 9, "package": "gcc-12", "version": "12.2"}
MACHINE: dict[str, Any] = {
    "system": {"kernel_release": "6.1", "hostname": "a", "uptime_s": 5.0, "boot_id": "x"},
    "sysctl": {"vm.swappiness": "60"},
    "memory": {"swappiness": 60, "available_bytes": 5},
    "directory": {"path": "/d", "mount_point": "/", "type": "ext4", "options": "rw,relatime"},
    "mounts": {"/": {"type": "ext4", "device": "/dev/sda", "options": "rw,relatime", "free_bytes": 1}},
    "environment": {"variables": {"LANG": "C", "PWD": "/d"}, "size_bytes": 20},
    "programs": {"cc": FILE},
    "toolchain": {"cc": FILE, "gcc": FILE, "clang": None},
    "load": {"load_1": 0.1},
}


def changed(**parts: Any) -> dict[str, Any]:
    machine = copy.deepcopy(MACHINE)
    for name, members in parts.items():
        machine[name] |= members
    return machine


def told(then: Any, now: Any) -> tuple[list[str], list[str], list[str]]:
    found = compare_states(then, now)
    return list(map(str, found.differs)), list(map(str, found.moved)), list(map(str, found.unknown))


def test_two_that_are_alike_have_no_difference() -> None:
    assert told(MACHINE, changed()) == ([], [], [])


def test_a_setting_is_named_once_and_by_its_newer_name() -> None:
    now = changed(sysctl={"vm.swappiness": "10"}, memory={"swappiness": 10})
    assert told(MACHINE, now)[0] == ["sysctl.vm.swappiness: 60 → 10"]
    old = changed(memory={"swappiness": 10})
    del old["sysctl"]
    assert told(old, MACHINE)[0] == ["sysctl.vm.swappiness: 10 → 60"]


def test_what_a_mount_says_is_not_said_of_the_directory_again() -> None:
    now = changed(
        directory={"options": "rw,noatime"}, mounts={"/": MACHINE["mounts"]["/"] | {"options": "rw,noatime"}}
    )
    assert told(MACHINE, now)[0] == ["mounts./.options: rw,relatime → rw,noatime"]


def test_a_compiler_under_several_names_is_one_difference() -> None:
    other = FILE | {"file": "/usr/bin/gcc-11", "package": "gcc-11", "version": "11.3"}
    now = changed(programs={"cc": other}, toolchain={"cc": other, "gcc": other})
    (found,) = compare_states(MACHINE, now).differs
    assert found.what == "program cc, gcc"
    assert (found.then, found.now) == (
        "/usr/bin/gcc-12 (gcc-12 12.2, 9 bytes)",
        "/usr/bin/gcc-11 (gcc-11 11.3, 9 bytes)",
    )
    only = changed(programs={"cc": FILE | {"sha256": "f" * 64}})
    (found,) = compare_states(MACHINE, only).differs
    assert (found.what, found.now) == ("program cc", "/usr/bin/gcc-12 (gcc-12 12.2, ffffffffffff)")


def test_a_tool_that_came_is_a_difference_and_one_not_looked_for_cannot_be_told() -> None:
    assert compare_states(MACHINE, changed(toolchain={"clang": FILE})).differs == (
        Difference("program clang", NOT_THERE, "/usr/bin/gcc-12 (gcc-12 12.2, 9 bytes)"),
    )
    differs, _, unknown = told(MACHINE, changed(toolchain={"zig": FILE}))
    assert (differs, len(unknown)) == ([], 1)


def test_a_mount_that_came_is_one_difference_and_a_variable_that_went_another() -> None:
    now = changed(mounts={"/new": {"type": "xfs", "device": "/dev/sdb", "options": "rw", "free_bytes": 3}})
    del now["environment"]["variables"]["LANG"]
    assert told(MACHINE, now) == (
        [f"environment.variables.LANG: C → {NOT_THERE}", f"mounts./new: {NOT_THERE} → there"],
        [],
        [],
    )


def test_of_long_values_the_place_is_shown_at_which_they_part() -> None:
    paths = ["/usr/bin:" * 20 + tail for tail in ("/opt/a", "/opt/b")]
    then, now = (changed(environment={"variables": {"PATH": path}}) for path in paths)
    assert told(then, now)[0] == ["environment.variables.PATH: …n:/usr/bin:/opt/a → …n:/usr/bin:/opt/b"]


def test_what_always_moves_stands_apart() -> None:
    now = changed(
        load={"load_1": 9.0}, memory={"available_bytes": 6}, system={"uptime_s": 6.0, "boot_id": "y"}
    )
    now["mounts"]["/"] = MACHINE["mounts"]["/"] | {"free_bytes": 2}
    now["environment"]["variables"]["PWD"] = "/e"
    differs, moved, unknown = told(MACHINE, now)
    assert (differs, unknown) == ([], [])
    assert [line.partition(":")[0] for line in moved] == [
        "system.uptime_s",
        "system.boot_id",
        "memory.available_bytes",
        "mounts./.free_bytes",
        "environment.variables.PWD",
        "load.load_1",
    ]


def test_what_one_of_both_did_not_record_is_no_difference() -> None:
    old = copy.deepcopy(MACHINE)
    for part in ("environment", "mounts", "programs", "toolchain"):
        del old[part]
    differs, _, unknown = told(old, MACHINE)
    assert differs == []
    assert any(line.startswith("toolchain") for line in unknown)
    assert all("not recorded" in line for line in unknown)
    assert told(changed(system={"hostname": None}), MACHINE)[0] == []
    assert machine_differences({"machine": {"before": old}}, {"machine": {"before": MACHINE}}) == ()


def plan(**members: Any) -> dict[str, Any]:
    return {
        "verb": "bench",
        "machine": {"before": MACHINE},
        "plan": {"seed": 1, "schedule": "blocks", **members},
    }


def test_another_plan_is_named_and_another_seed_moves() -> None:
    found = compare(plan(), plan(seed=2, schedule="duet"))
    assert [(d.what, d.then, d.now) for d in found.differs] == [("plan.schedule", "blocks", "duet")]
    assert list(map(str, found.moved)) == ["plan.seed: 1 → 2"]


def test_of_a_script_s_text_the_first_line_that_is_another_is_named() -> None:
    then, now = plan(text={"a.ap": ["TEST a", "EXEC x"]}), plan(text={"a.ap": ["TEST a", "EXEC y", "DONE"]})
    assert compare(then, now).differs == (Difference("script a.ap, line 2", "EXEC x", "EXEC y"),)
    (shorter,) = compare(then, plan(text={"a.ap": ["TEST a"]})).differs
    assert (shorter.what, shorter.then) == ("script a.ap, line 2", "EXEC x")


def test_what_a_script_made_quiet_is_a_difference_whichever_processes_it_stopped() -> None:
    def quiet(pid: int) -> dict[str, Any]:
        operations = {
            "aslr": {"proc/sys/kernel/randomize_va_space": ["2", "0"]},
            "services": {f"process:cron:{pid}:77": ["running", "stopped"]},
        }
        return {
            "machine": {"before": MACHINE},
            "quiet": [{"sitting": 1, "by": "script", "operations": operations}],
        }

    loud = {"machine": {"before": MACHINE}}
    assert list(map(str, compare(loud, quiet(5)).differs)) == [
        f"quiet.aslr: {NOT_THERE} → 0",
        f"quiet.services: {NOT_THERE} → stopped",
    ]
    assert compare(quiet(5), quiet(6)).differs == ()


def test_the_line_before_a_comparison_names_three_and_counts_the_others(golden: Golden) -> None:
    one = changed(system={"kernel_release": "6.2"}, sysctl={f"vm.new{n}": str(n) for n in range(2)})
    many = changed(environment={"variables": dict.fromkeys("ABCDE", "x")})
    assert machine_line("a", "b", compare_states(MACHINE, MACHINE)) is None
    short, long = (str(machine_line("a", "b", compare_states(MACHINE, now))) for now in (one, many))
    assert "differ: system.kernel_release: 6.1 → 6.2 (" in short
    assert long.count("→") == 3
    golden(f"{short}\n{long}")


json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*MACHINE, "cc", "plan", "text", "variables"]), inner, max_size=4)
    ),
    max_leaves=15,
)
documents = st.fixed_dictionaries(
    {}, optional={"machine": json, "plan": json, "versions": json, "verb": json}
)


@given(documents, documents)
def test_whatever_json_is_compared_there_is_no_exception_and_no_difference_to_itself(
    then: Any, now: Any
) -> None:
    for part in compare(then, now).differs:
        assert "\n" not in str(part)
    same = copy.deepcopy(then)
    assert compare(then, same) == compare(same, then)
