"""Whatever goes wrong, and wherever: what was is what is again."""

from __future__ import annotations

import errno
import json
import os
import random
import string
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.errors import EtudeError, InputError, MachineRefuses
from etude.machine.quiet import apply_restore
from etude.machine.quiet.table import BY_NAME, parse
from support.profiles import examples
from support.quiet_kernel import MANAGED, Kernel, Killed, laid_out

ALL = tuple(name for name in BY_NAME)
EVERYTHING = [*ALL, "cpus=3"]


def test_all_operations_change_something_and_are_put_back_byte_for_byte(kernel: Kernel) -> None:
    before = kernel.seen()
    outcome = apply_restore.apply(parse(EVERYTHING), kernel)
    assert set(outcome.done) == set(ALL)
    assert outcome.unavailable == {}
    assert kernel.read("sys/devices/system/cpu/cpufreq/policy1/scaling_governor") == "performance"
    assert kernel.read("proc/sys/vm/dirty_background_ratio") == "50"
    assert kernel.threads[20] == {0, 1, 2}
    assert kernel.seen() != before
    assert apply_restore.restore(kernel) == list(ALL)
    assert kernel.seen() == before
    assert not apply_restore.file().exists()


def test_what_was_is_on_disk_before_anything_changes(kernel: Kernel) -> None:
    def look(what: str) -> None:
        steps = json.loads(apply_restore.file().read_text())["steps"]
        named = {item[0] for step in steps for item in step["items"]}
        assert what in named or what.startswith(("thread", "process", "swap")) or f"{what[:-6]}" in named

    apply_restore.apply(parse(EVERYTHING), replace(kernel, faults=look))


def test_the_ledger_is_synced_before_the_first_change(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    story: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _: story.append("sync"))
    apply_restore.apply(parse(["aslr"]), replace(kernel, faults=story.append))
    assert story == ["sync", "sync", *["proc/sys/kernel/randomize_va_space"] * 2], "the file, and its name"


@pytest.mark.parametrize("seed", range(100))
def test_random_sequences_with_failures_and_kills_always_restore(seed: int, kernel: Kernel) -> None:
    chance = random.Random(seed)
    rate = chance.choice((0.0, 0.02, 0.1, 0.3))

    def fault(what: str) -> None:
        if chance.random() < rate:
            raise chance.choice((OSError(errno.EIO, "I/O error", what), MachineRefuses(what), Killed()))

    before, shaky = kernel.seen(), replace(kernel, faults=fault)
    for _ in range(chance.randint(1, 6)):
        words = [*chance.sample(ALL, chance.randint(1, len(ALL)))]
        words += [f"cpus={chance.choice(('3', '1', '2-3'))}"] if {"irqs", "shield"} & set(words) else []
        try:
            if chance.random() < 0.7:
                apply_restore.apply(parse(words), shaky)
            else:
                apply_restore.restore(shaky)
        except (MachineRefuses, Killed):
            pass
    apply_restore.restore(kernel)
    assert kernel.seen() == before
    assert not apply_restore.file().exists()


def test_a_failure_undoes_all_of_this_on_and_nothing_of_the_one_before(kernel: Kernel) -> None:
    apply_restore.apply(parse(["aslr"]), kernel)
    quiet = kernel.seen()

    def fault(what: str) -> None:
        if what.endswith("soft_watchdog"):
            raise OSError(errno.EROFS, "Read-only file system", what)

    with pytest.raises(MachineRefuses, match=r"\bwatchdogs: .*soft_watchdog"):
        apply_restore.apply(parse(["thp", "watchdogs"]), replace(kernel, faults=fault))
    assert kernel.seen() == quiet
    assert [each.operation.name for each in apply_restore.in_force(kernel)] == ["aslr"]


def test_a_value_that_does_not_stay_is_a_failure(kernel: Kernel) -> None:
    class Deaf(Kernel):
        def _write(self, path: str, text: str) -> None:
            pass

    deaf = Deaf(kernel.root, threads=kernel.threads)
    with pytest.raises(MachineRefuses, match=r"randomize_va_space .*'1'.*'2'"):
        apply_restore.apply(parse(["aslr"]), deaf)


def test_what_does_not_go_back_is_kept_and_the_rest_goes_back(kernel: Kernel) -> None:
    before = kernel.seen()
    apply_restore.apply(parse(["aslr", "thp", "watchdogs"]), kernel)

    def fault(what: str) -> None:
        if what.endswith("enabled"):
            raise OSError(errno.EROFS, "Read-only file system", what)

    with pytest.raises(MachineRefuses, match=r"\bthp: .*enabled: "):
        apply_restore.restore(replace(kernel, faults=fault))
    assert kernel.read("proc/sys/kernel/randomize_va_space") == "1"
    assert kernel.read("proc/sys/kernel/nmi_watchdog") == "1"
    assert [each.operation.name for each in apply_restore.in_force(kernel)] == ["thp"]
    apply_restore.restore(kernel)
    assert kernel.seen() == before


def test_off_twice_and_on_twice_are_as_once(kernel: Kernel) -> None:
    before = kernel.seen()
    apply_restore.apply(parse(EVERYTHING), kernel)
    quiet = kernel.seen()
    again = apply_restore.apply(parse(EVERYTHING), kernel)
    assert again.done == {}
    assert again.refused == {"irqs": [MANAGED]}, "what the kernel refuses is tried again"
    assert kernel.seen() == quiet
    apply_restore.restore(kernel)
    assert apply_restore.restore(kernel) == []
    assert kernel.seen() == before


def test_an_operation_that_others_have_changed_since_goes_back_all_the_same(kernel: Kernel) -> None:
    before = kernel.seen()
    apply_restore.apply(parse(["perf", "writeback"]), kernel)
    kernel.write("proc/sys/kernel/perf_event_max_sample_rate", "777")  # as the kernel itself does under load
    kernel.write("proc/sys/vm/dirty_bytes", "4096000")
    apply_restore.restore(kernel)
    assert kernel.seen() == before


# --- a restart of the machine ---------------------------------------------------------------------


def test_after_a_restart_nothing_is_written_but_what_outlives_one_is_undone(kernel: Kernel) -> None:
    (kernel.root / "proc/self/mounts").write_text("/dev/sda1 / ext4 rw 0 0\n")  # /run is on the disk
    apply_restore.apply(parse(["logins", "aslr", "perf", "services"]), kernel)
    assert (kernel.root / "etc/nologin").exists()
    kernel.boot("second-boot")
    kernel.write("proc/sys/kernel/randomize_va_space", "0")  # what this boot has made it
    kernel.process(20, "cron", state="T", start=7)  # another process of that number
    before = kernel.seen()
    apply_restore.restore(kernel)
    del before["etc/nologin"]
    assert kernel.seen() == before
    assert not apply_restore.file().exists()


def test_a_refusal_of_logins_in_memory_is_gone_with_the_restart(kernel: Kernel) -> None:
    apply_restore.apply(parse(["logins"]), kernel)
    assert (kernel.root / "run/nologin").read_text().startswith("Benchmarks run")
    kernel.boot("second-boot")
    (kernel.root / "run/nologin").write_text("Booting.\n")  # systemd's
    apply_restore.restore(kernel)
    assert (kernel.root / "run/nologin").read_text() == "Booting.\n"


def test_on_after_a_restart_takes_what_is_now_for_what_was(kernel: Kernel) -> None:
    apply_restore.apply(parse(["aslr"]), kernel)
    kernel.boot("second-boot")
    kernel.write("proc/sys/kernel/randomize_va_space", "0")
    apply_restore.apply(parse(["aslr"]), kernel)
    apply_restore.restore(kernel)
    assert kernel.read("proc/sys/kernel/randomize_va_space") == "0"


# --- scripts --------------------------------------------------------------------------------------


def test_a_script_puts_back_its_own_and_leaves_what_was_quiet_before(kernel: Kernel) -> None:
    before = kernel.seen()
    apply_restore.apply(parse(["aslr"]), kernel)
    by_hand = kernel.seen()
    script = apply_restore.Experiment(kernel)
    script.on(parse(["aslr", "thp", "governor"]))
    assert set(apply_restore.recorded_changes(kernel) or ()) == {"aslr", "thp", "governor"}
    script.off()
    assert kernel.seen() == by_hand
    script.off()
    apply_restore.restore(kernel)
    assert kernel.seen() == before


def test_one_script_at_a_time_keeps_a_machine_quiet_and_nobody_undoes_it_meanwhile(kernel: Kernel) -> None:
    script = apply_restore.Experiment(kernel)
    script.on(parse(["thp"]))
    with pytest.raises(MachineRefuses, match="another experiment"):
        apply_restore.Experiment(kernel).on(parse(["aslr"]))
    for act in (lambda: apply_restore.apply(parse(["aslr"]), kernel), lambda: apply_restore.restore(kernel)):
        with pytest.raises(MachineRefuses, match="QUIET"):
            act()
    script.off()
    assert apply_restore.in_force(kernel) == []


def test_what_a_killed_script_left_is_put_back_before_anything_else(kernel: Kernel) -> None:
    before = kernel.seen()
    killed = apply_restore.Experiment(kernel)
    killed.on(parse(["thp"]))
    os.close(killed._lock or 0)  # the kernel does so when the process ends
    apply_restore.apply(parse(["aslr"]), kernel)
    assert [each.operation.name for each in apply_restore.in_force(kernel)] == ["aslr"]
    apply_restore.restore(kernel)
    assert kernel.seen() == before


# --- a ledger that cannot be believed -------------------------------------------------------------

STEP = {
    "undo": "put_back",
    "operation": "aslr",
    "items": [["proc/sys/kernel/randomize_va_space", "1", "2"]],
    "boot_id": "first-boot",
    "by": "hand",
}
WRONG = [
    {"operation": "unknown"},
    {"operation": 3},
    {"operation": "thp"},  # an item that is not of this operation
    {"items": [["proc/sys/kernel/core_pattern", "|/tmp/mine", "core"]]},
    {"items": [["proc/sys/kernel/randomize_va_space", 1, 2]]},
    {"items": [["proc/sys/kernel/randomize_va_space", "1"]]},
    {"items": "all"},
    {"boot_id": None},
    {"by": "somebody"},
    {"more": "than that"},
    {"operation": "governor", "items": [["sys/devices/system/cpu/cpufreq/../../x/y", "1", "2"]]},
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_a_step_that_is_not_of_its_operation_is_refused_and_nothing_is_written(
    wrong: dict[str, object], kernel: Kernel, place: Path
) -> None:
    before = kernel.seen()
    put(place, json.dumps({"version": 1, "steps": [STEP | wrong]}))
    for act in (lambda: apply_restore.restore(kernel), lambda: apply_restore.apply(parse(["aslr"]), kernel)):
        with pytest.raises(InputError, match=r"quiet\.json: step 1 "):
            act()
    assert kernel.seen() == before


def test_a_ledger_that_others_may_write_is_refused(kernel: Kernel, place: Path) -> None:
    put(place, json.dumps({"version": 1, "steps": [STEP]}))
    apply_restore.file().chmod(0o666)
    with pytest.raises(InputError, match=f"^{apply_restore.file()}: "):
        apply_restore.restore(kernel)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.text(max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(string.printable, max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["undo", "operation", "items", "boot_id", "by", "version", "steps"]),
                    inner,
                )
            ),
            max_leaves=12,
        ).map(json.dumps),
        st.dictionaries(
            st.sampled_from(list(STEP)),
            st.sampled_from([None, [], "put_back", "aslr", "swap", [["/x", "a", "b"]], [[]]]),
        ).map(lambda change: json.dumps({"version": 1, "steps": [STEP | change]})),
    )
)
def test_whatever_stands_in_the_ledger_is_refused_in_one_line_or_undone(kernel: Kernel, text: str) -> None:
    put(apply_restore.directory(), text)
    said = ""
    try:
        apply_restore.restore(kernel)
    except EtudeError as error:
        said = str(error)
    assert "\n" not in said
    apply_restore.file().unlink(missing_ok=True)


def put(place: Path, text: str) -> None:
    place.mkdir(exist_ok=True)
    (place / "quiet.json").write_text(text)
    (place / "quiet.json").chmod(0o600)


def test_without_room_for_the_ledger_nothing_changes(kernel: Kernel, place: Path) -> None:
    before = kernel.seen()
    (place / "quiet.new").parent.mkdir()
    place.joinpath("quiet.json").mkdir()
    with pytest.raises(EtudeError):
        apply_restore.apply(parse(["aslr"]), kernel)
    assert kernel.seen() == before


def test_a_second_machine_lays_out_alike(tmp_path: Path, kernel: Kernel) -> None:
    (tmp_path / "other").mkdir()
    assert laid_out(tmp_path / "other").seen() == kernel.seen()
