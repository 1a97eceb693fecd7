"""What changed about the machine."""

import copy
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.warnings import machine_warnings
from etude.machine import snapshot
from etude.present.sentences.warnings import found_text, warning_text

MACHINE = {
    "system": {"kernel_release": "6.1", "hostname": "a", "boot_id": "one", "uptime_s": 5.0},
    "frequency": {"governors": ["powersave"], "turbo": True, "current_hz": 1},
    "memory": {"total_bytes": 100, "available_bytes": 50, "swap_used_bytes": 0},
    "kernel": {"clock_source": "tsc", "mitigations": {"l1tf": "Not affected"}},
    "load": {"load_1": 0.1, "pressure": {"cpu": {"avg10": 0.0}}},
    "python": {"version": "3.11", "executable": "/a/python"},
}


def changed(**members):
    """MACHINE with `part__member` set."""
    machine = copy.deepcopy(MACHINE)
    for name, value in members.items():
        part, _, member = name.partition("__")
        machine[part][member] = value
    return machine


def sitting(machine=None, host="a", boot="one"):
    return {"host": host, "boot_id": boot, "machine": machine}


def experiment(after, *later, before=MACHINE):
    return {"machine": {"before": before, "after": after}, "sittings": [sitting(), *later]}


def texts(*args, **options):
    return [found_text(w) for w in machine_warnings(experiment(*args, **options))]


def test_a_machine_that_stays_is_not_told_of():
    assert texts(MACHINE) == texts(MACHINE, sitting(MACHINE)) == []


@pytest.mark.parametrize(
    "member",
    [
        "system__uptime_s",
        "memory__available_bytes",
        "memory__swap_used_bytes",
        "load__load_1",
        "load__pressure",
        "frequency__current_hz",
        "python__executable",
    ],
)
def test_what_changes_by_itself_is_not_told(member):
    assert texts(changed(**{member: 12345})) == []


def test_what_changed_is_told_from_what_to_what(golden):
    (found,) = machine_warnings(
        experiment(changed(frequency__governors=["performance"], frequency__turbo=False))
    )
    assert found.kind == "machine-changed"
    assert found.test == ""
    assert found_text(found).endswith(
        ": frequency.governors powersave → performance; frequency.turbo yes → no"
    )
    golden(warning_text(found))
    (nested,) = texts(changed(kernel__mitigations={"l1tf": "Vulnerable"}))
    assert nested.endswith(
        f": kernel.mitigations.l1tf {MACHINE['kernel']['mitigations']['l1tf']} → Vulnerable"
    )
    (clock,) = texts(changed(kernel__clock_source="hpet"))
    assert "tsc → hpet" in clock


def test_what_is_not_known_on_either_side_has_not_changed():
    assert texts(changed(frequency__turbo=None)) == texts(None) == []
    less = copy.deepcopy(MACHINE)
    del less["frequency"]
    assert texts(less) == texts(MACHINE, before=less) == []


def test_many_changes_are_counted():
    (text,) = texts(
        changed(**{f"kernel__new{n}": 1 for n in range(7)}),
        before=changed(**{f"kernel__new{n}": 0 for n in range(7)}),
    )
    assert "kernel.new3 0 → 1" in text
    assert "kernel.new4" not in text
    assert " 3 more" in text


def test_each_sitting_is_compared_with_the_one_before(golden):
    new = changed(system__kernel_release="6.2", system__boot_id="two")
    (text,) = texts(new, sitting(new, boot="two"))
    assert re.search(r" 1 and 2: .*rebooted; system\.kernel_release 6\.1 → 6\.2$", text)
    assert texts(MACHINE, sitting(MACHINE), sitting(None)) == []
    first, second = texts(changed(frequency__turbo=False), sitting(new, boot="two"))
    assert " 1 and 2: " in first
    assert re.search(r" 2: .*; frequency\.turbo yes → no$", second)
    golden("\n".join([text, first, second]))


def test_many_reboots_are_one_line(golden):
    later = [sitting(MACHINE, boot=str(n)) for n in range(5)]
    last = changed(system__boot_id="4")
    (text,) = texts(last, *later)
    assert re.search(r" 1 and 2, .* 4 more .*: .*rebooted$", text)
    golden(text)


def test_several_machines_are_told_of_once_with_what_differs_and_not_as_a_change(golden):
    other = changed(system__hostname="b", system__boot_id="two", frequency__turbo=False)
    (text,) = texts(MACHINE, sitting(other, "b", "two"), sitting(MACHINE), sitting(other, "b", "two"))
    assert re.search(r" 2 machines \(a, b\).*: frequency\.turbo yes → no$", text)
    golden(text)


def test_each_of_several_machines_is_held_against_itself():
    other = changed(system__hostname="b", system__boot_id="two")
    later = changed(system__hostname="b", system__boot_id="two", frequency__turbo=False)
    told = texts(later, sitting(other, "b", "two"), sitting(later, "b", "two"))
    assert [text for text in told if text.endswith(" 2 and 3: frequency.turbo yes → no")]


def test_this_machine_does_not_change_between_two_snapshots():
    one, two = snapshot.take(), snapshot.take()
    assert machine_warnings({"machine": {"before": one, "after": two}, "sittings": []}) == []


json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["machine", "before", "after", "system", "host", "boot_id", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json, json, json)
def test_whatever_json_is_given_there_is_no_exception(machine, sittings, before):
    for document in (
        {},
        {"machine": machine, "sittings": sittings},
        experiment(machine, sitting(sittings), before=before),
    ):
        for warning in machine_warnings(document):
            assert "\n" not in warning_text(warning)


def test_a_host_that_is_no_name_is_passed_over():
    assert machine_warnings({"sittings": [{"host": [None]}, {"host": {}}]}) == []


def after_a_restart(how, machine):
    made = experiment(machine, sitting(machine, boot="two"))
    made["sittings"][0]["how_ended"] = how
    return [found_text(w) for w in machine_warnings(made)]


def test_a_restart_that_the_experiment_asked_for_is_no_change():
    assert "rebooted" in after_a_restart("SIGTERM", changed(system__boot_id="two"))[0]
    assert after_a_restart("restarting", changed(system__boot_id="two")) == []


def test_an_entry_that_was_asked_for_may_bring_another_kernel_and_nothing_else():
    other = changed(system__boot_id="two", system__kernel_release="6.2")
    assert after_a_restart("restarting into b", other) == []
    assert "kernel_release" in after_a_restart("restarting", other)[0]
    other["memory"]["total_bytes"] = 50
    assert "total_bytes" in after_a_restart("restarting into b", other)[0]


def test_a_restart_is_read_from_its_own_member_where_there_is_one():
    new = changed(system__boot_id="two", system__kernel_release="6.2")
    for entry, found in (("b", 0), ("", 1), (None, 2)):
        made = experiment(new, sitting(new, boot="two"))
        made["sittings"][0] |= {"how_ended": "in other words", "restarts_into": entry}
        changes = "".join(found_text(w) for w in machine_warnings(made))
        assert ("rebooted" in changes) + ("kernel_release" in changes) == found


def test_a_value_that_reads_like_absence_is_a_change():
    assert machine_warnings(experiment(changed(system__kernel_release="not there"))) != []


def test_mounts_outside_the_file_systems_under_test_are_no_reason_not_to_compare():
    def mounts(options):
        points = {
            point: {"type": "ext4", "device": "/dev/loop0", "options": options}
            for point in ("/mnt/t", "/else")
        }
        return MACHINE | {"directory": {"path": "/", "mount_point": "/"}, "mounts": points}

    def changes(**test):
        document = experiment(mounts("ro"), before=mounts("rw")) | {"tests": [{"name": "a", **test}]}
        return [found_text(w) for w in machine_warnings(document)]

    assert changes() == changes(file_system=None) == []
    (told,) = changes(file_system={"mount_point": "/mnt/t"})
    assert "/mnt/t.options" in told
    assert "/else" not in told


def test_loop_devices_that_nothing_under_test_is_on_are_no_reason_not_to_compare():
    def files(name):
        mounts = {"/mnt/t": {"type": "ext4", "device": "/dev/loop1", "options": "rw"}}
        disks = {loop: {"backing_file": f"/images/{name}-{loop}"} for loop in ("loop0", "loop1")}
        return MACHINE | {"directory": {"path": "/", "mount_point": "/"}, "mounts": mounts, "disks": disks}

    def changes(**test):
        document = experiment(files("b"), before=files("a")) | {"tests": [{"name": "a", **test}]}
        return [found_text(w) for w in machine_warnings(document)]

    assert changes() == []
    (told,) = changes(file_system={"mount_point": "/mnt/t"})
    assert "disks.loop1.backing_file" in told
    assert "loop0" not in told


@pytest.mark.parametrize(
    ("load", "cpus", "busy"), [(1.4, 2, False), (1.6, 2, True), (1.6, 16, False), (None, 2, False)]
)
def test_a_machine_that_is_busy_at_the_start_is_a_warning(load, cpus, busy):
    before = {**changed(load__load_1=load), "cpu": {"online": cpus}}
    found = [w for w in machine_warnings(experiment(None, before=before)) if w.kind == "busy"]
    assert [(w.facts.load, w.facts.cpus) for w in found] == ([(load, cpus)] if busy else [])


def test_of_several_starts_the_busiest_counts():
    states = [{**changed(load__load_1=load), "cpu": {"online": 2}} for load in (0.1, 9.0, 5.0)]
    later = [sitting(state, boot=f"{n}") for n, state in enumerate(states[1:])]
    (found,) = [w for w in machine_warnings(experiment(None, *later, before=states[0])) if w.kind == "busy"]
    assert found.facts.load == 9.0
