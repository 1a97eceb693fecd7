"""Scripts that restart the machine, lose their power, boot other entries and never come further: in a real machine."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from support.guest.machine import BOOTED, Machine

pytestmark = pytest.mark.restarts

RUN = "cd /root && ETUDE_SETTLE_S=1 etude run"
THREE = """\
FOR I=1 TO 3
  TEST t%I% 2
    EXEC sh -c 'echo %I% $APEPOCH >>/root/ran; while test %I%$APEPOCH = 22 -a ! -e /root/second; do sleep 0.2; done'
  DONE
  IF I < 3
    REBOOT
    ECHO behind %I%: %RESTORE%
  FI
DONE
"""
CHECKPOINT = """\
TEST before 1
  EXEC true
DONE
CHECKPOINT /root/kept.json
IF RESTORE = 0
  SYSTEM systemctl reboot; sleep 600
FI
TEST behind 1
  EXEC true
DONE
"""
LAST_BOOT = 'sed -i \'s/"boots": *[0-9]*/"boots": 3/\' /var/lib/etude/resume.json'
LOOP = """\
TEST first 1
  EXEC true
DONE
REBOOT
TEST second 1
  EXEC sh /root/crash
DONE
"""
ENTRIES = """\
FOREACH ENTRY other-parameters %DEFAULT%
  TEST in:%ENTRY% 1
    BOOT %ENTRY%
    CACHE reboot /root/data
    EXEC cat /root/data /proc/cmdline
  DONE
DONE
"""
INPUT, STOPPED = 3, 4
"""Exit codes: an input file is wrong; given up."""


@pytest.fixture(scope="module")
def resuming(restarting: Machine) -> str:
    """A state in which scripts are gone on with at boot."""
    restarting.restore(BOOTED)
    restarting.check("etude boot-resume install && head -c 4000000 /dev/urandom > /root/data")
    restarting.save("resuming")
    return "resuming"


@pytest.fixture
def ready(restarting: Machine, resuming: str) -> Machine:
    restarting.restore(resuming)
    return restarting


def wait_for(come: Callable[[], bool], within_s: float = 900.0) -> None:
    until = time.monotonic() + within_s
    while not come():
        assert time.monotonic() < until
        time.sleep(2.0)


def begin(guest: Machine, script: str, *words: str) -> None:
    guest.write("/root/s.ap", script)
    guest.spawn(f"{RUN} s.ap {' '.join(words)} -o /root/r >/root/log 2>&1")


def wait_complete(guest: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(guest.wait_text("/root/r/experiment.json", b'"how_ended": "complete"'))
    return found


def standing(guest: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(guest.check("etude boot-resume status --json"))
    return found


def resume_status(guest: Machine) -> int:
    """With which what runs at boot has ended."""
    return int(guest.check("systemctl show -P ExecMainStatus etude-resume"))


def rows(guest: Machine) -> list[dict[str, Any]]:
    """All rows, in the order in which they were measured."""
    text = guest.check("cat /root/r/*/results.jsonl")
    # What a program printed is in it, and may hold what Python takes for the end of a line.
    return sorted(
        map(json.loads, text.strip("\n").split("\n")), key=lambda row: (row["sitting"], row["start"])
    )


def test_a_script_with_two_reboots_and_a_power_cut_has_all_its_trials_in_order(ready: Machine) -> None:
    boots = [ready.boot_id()]
    begin(ready, THREE)
    boots.append(ready.wait_restart(boots[-1]))
    ready.wait_text("/root/ran", b"2 2\n")
    ready.power_cut()  # in the midst of the second trial of t2
    ready.start()
    boots.append(ready.boot_id())
    ready.check("touch /root/second")  # That trial begins anew, and ends now.
    boots.append(ready.wait_restart(boots[-1]))
    document = wait_complete(ready)
    found = rows(ready)
    assert [(row["test"], row["trial"]) for row in found if row["kept"]] == [
        (f"t{i}", trial) for i in (1, 2, 3) for trial in found_trials(found, f"t{i}")
    ]
    assert Counter((row["test"], row["trial"]) for row in found).most_common(1)[0][1] == 1, "none twice"
    assert all(len(found_trials(found, f"t{i}")) == 2 for i in (1, 2, 3))
    assert len(set(boots)) == 4
    assert {row["boot_id"] for row in found} <= set(boots)
    ended = [sitting["how_ended"] for sitting in document["sittings"]]
    assert ended == ["restarting", None, "restarting", "complete"]
    assert [sitting["settled"] is None for sitting in document["sittings"]] == [True, False, False, False]
    assert "/root/r" in ready.journal("-b", "-1", "-u", "etude-resume")
    assert standing(ready)["waits"] is None


def found_trials(found: list[dict[str, Any]], test: str) -> list[int]:
    return sorted(row["trial"] for row in found if row["test"] == test and row["kept"])


def test_a_checkpoint_before_a_reboot_by_the_script_is_gone_on_with(ready: Machine) -> None:
    before = ready.boot_id()
    begin(ready, CHECKPOINT)
    behind = ready.wait_restart(before)
    wait_complete(ready)
    assert [(row["test"], row["boot_id"]) for row in rows(ready)] == [("before", before), ("behind", behind)]


def test_a_trial_that_brings_the_machine_down_is_given_up_once_its_boots_are_used_up(ready: Machine) -> None:
    """Three boots may bring nothing new; the first of them says that it was the third."""
    ready.write("/root/crash", f"{LAST_BOOT}; sync; echo b > /proc/sysrq-trigger; sleep 600")
    boots = [ready.boot_id()]
    begin(ready, LOOP)
    for _ in range(2):  # by REBOOT, and by the trial
        boots.append(ready.wait_restart(boots[-1]))
    wait_for(lambda: ready.run("systemctl is-failed etude-resume").status == 0)
    assert resume_status(ready) == STOPPED
    given_up = json.loads(ready.read("/var/lib/etude/resume.json.stopped"))
    assert (given_up["boots"], given_up["most_boots"]) == (3, 3)
    assert ready.boot_id() == boots[-1]
    assert [row["test"] for row in rows(ready)] == ["first"]


def test_each_entry_is_booted_and_the_next_boot_is_of_the_default(ready: Machine) -> None:
    default = standing(ready)["entries"][0]["key"]
    boots = [ready.boot_id()]
    begin(ready, ENTRIES, f"DEFAULT='{default}'")
    for _ in range(2):
        boots.append(ready.wait_restart(boots[-1]))
    document = wait_complete(ready)
    found = rows(ready)
    assert [row["test"] for row in found] == ["in:other-parameters", f"in:{default}"]
    assert [row["boot_id"] for row in found] == boots[1:]
    for row in found:
        assert row["cache"]["performed"] == "reboot"
        assert row["cache"]["resident_bytes"] == 0
        sitting = document["sittings"][row["sitting"] - 1]
        assert ("etude.entry=other" in str(sitting["machine"])) == (row["test"] == "in:other-parameters")
    assert not re.search("next_entry=.", ready.check("grub-editenv list"))
    assert "etude.entry=other" not in ready.command_line()


def test_a_bench_restarts_the_machine_before_a_trial_but_not_before_the_first_run(ready: Machine) -> None:
    boots = [ready.boot_id()]
    words = "bench --trials 1 --cool reboot --data /root/data -o /root/r 'cat /root/data'"
    ready.spawn(f"cd /root && ETUDE_SETTLE_S=1 etude {words} >/root/log 2>&1")
    boots.append(ready.wait_restart(boots[-1]))
    wait_complete(ready)
    found = rows(ready)
    assert [(row["boot_id"], row["kept"]) for row in found] == [(boots[0], False), (boots[1], True)]
    assert [(row["cache"]["performed"], row["cache"].get("resident_bytes")) for row in found] == [
        (None, None),
        ("reboot", 0),
    ]


def test_what_others_could_have_written_is_refused_with_a_line_in_the_journal(ready: Machine) -> None:
    ready.write("/root/s.ap", THREE)
    ready.run(f"export ETUDE_RESTART='kill -KILL $PPID'; {RUN} s.ap -o /root/r")
    for spoil, said in (
        ("chmod 666 /root/r/state.json", "/root/r/state.json"),
        ("chmod 600 /root/r/state.json; chown 1000 /root/r/state.json", "1000"),
    ):
        ready.check(f"{spoil}; cp -p /root/ran /root/before; systemctl start etude-resume")
        wait_for(lambda: ready.run("systemctl is-failed etude-resume").status == 0)
        assert resume_status(ready) == INPUT
        invocation = ready.check("systemctl show -P InvocationID etude-resume").strip()
        entries = f"_SYSTEMD_INVOCATION_ID={invocation}"
        wait_for(lambda said=said, entries=entries: said in ready.journal(entries))
        assert ready.run("cmp /root/ran /root/before").status == 0, "nothing was run"
