"""Scripts that restart the machine, lose their power, boot other entries and never come further: in a real machine."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.guest.machine import Machine

RUN = "cd /root && ETUDE_SETTLE_S=3 etude run"
THREE = """\
FOR I=1 TO 4
  TEST t%I% 2
    EXEC sh -c 'echo %I% $APEPOCH >>/root/ran; test %I%$APEPOCH != 32 || test -e /root/second || sleep 1000'
  DONE
  IF I < 4
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
LOOP = """\
TEST first 1
  EXEC true
DONE
REBOOT
TEST second 1
  EXEC sh -c 'sync; echo b > /proc/sysrq-trigger; sleep 600'
DONE
"""
ENTRIES = """\
INTERLEAVE
  FOREACH ENTRY %DEFAULT% other-parameters
    TEST in:%ENTRY% 2
      BOOT %ENTRY%
      CACHE reboot /root/data
      EXEC cat /root/data /proc/cmdline
    DONE
  DONE
DONE
"""


@pytest.fixture
def ready(guest: Machine) -> Iterator[Machine]:
    """With what goes on at boot, and afterwards without anything that waits for one."""
    guest.check(
        "etude boot-resume install && rm -rf /root/r /root/ran /root/second /root/log /root/kept.json"
    )
    yield guest
    guest.check("systemctl stop etude-resume; rm -f /var/lib/etude/resume.json*; etude boot-resume remove")


def wait_for(come: Callable[[], bool], within_s: float = 300.0) -> None:
    until = time.monotonic() + within_s
    while not come():
        assert time.monotonic() < until
        time.sleep(1.0)


def begin(guest: Machine, script: str, *words: str) -> None:
    guest.write("/root/s.ap", script)
    guest.spawn(f"{RUN} s.ap {' '.join(words)} -o /root/r >/root/log 2>&1")


def wait_complete(guest: Machine) -> dict[str, Any]:
    wait_for(lambda: guest.run('grep -q "how_ended.: .complete" /root/r/experiment.json').status == 0)
    found: dict[str, Any] = json.loads(guest.read("/root/r/experiment.json"))
    return found


def rows(guest: Machine) -> list[dict[str, Any]]:
    """All rows, in the order in which they were measured."""
    text = guest.check("cat /root/r/*/results.jsonl")
    return sorted(map(json.loads, text.splitlines()), key=lambda row: (row["sitting"], row["start"]))


def test_a_script_with_three_reboots_and_a_power_cut_has_all_its_trials_in_order(ready: Machine) -> None:
    boots = [ready.boot_id()]
    begin(ready, THREE)
    for _ in range(2):
        boots.append(ready.wait_restart(boots[-1]))
    wait_for(lambda: ready.run("grep -qx '3 2' /root/ran").status == 0)
    ready.power_cut()  # in the midst of the second trial of t3
    ready.start()
    boots.append(ready.boot_id())
    ready.check("touch /root/second")
    # That trial begins anew, and its power is cut again unless it saw the file: the third boot may bring nothing new.
    ready.check("pkill -f '[s]leep 1000' || true")
    boots.append(ready.wait_restart(boots[-1]))
    document = wait_complete(ready)
    found = rows(ready)
    assert [(row["test"], row["trial"]) for row in found if row["kept"]] == [
        (f"t{i}", trial) for i in (1, 2, 3, 4) for trial in found_trials(found, f"t{i}")
    ]
    assert Counter((row["test"], row["trial"]) for row in found).most_common(1)[0][1] == 1, "none twice"
    assert all(sum(row["test"] == f"t{i}" and row["kept"] for row in found) == 2 for i in (1, 2, 3, 4))
    assert len(set(boots)) == 5
    assert {row["boot_id"] for row in found} <= set(boots)
    ended = [sitting["how_ended"] for sitting in document["sittings"]]
    assert [how for how in ended if how is not None] == ["restarting", "restarting", "restarting", "complete"]
    assert ended.count(None) == 1, "the sitting that lost its power"
    assert [sitting["settled"] is None for sitting in document["sittings"]] == [
        True,
        False,
        False,
        False,
        False,
    ]
    assert "going on with /root/r" in ready.journal("-b", "-1", "-u", "etude-resume")
    assert "Nothing waits" in ready.run("etude boot-resume status").out


def found_trials(found: list[dict[str, Any]], test: str) -> list[int]:
    return sorted(row["trial"] for row in found if row["test"] == test and row["kept"])


def test_a_checkpoint_before_a_reboot_by_the_script_is_gone_on_with(ready: Machine) -> None:
    before = ready.boot_id()
    begin(ready, CHECKPOINT)
    behind = ready.wait_restart(before)
    wait_complete(ready)
    assert [(row["test"], row["boot_id"]) for row in rows(ready)] == [("before", before), ("behind", behind)]


def test_a_trial_that_brings_the_machine_down_is_given_up_after_three_boots(ready: Machine) -> None:
    boot = ready.boot_id()
    begin(ready, LOOP)
    for _ in range(4):  # behind REBOOT, and thrice by the trial
        boot = ready.wait_restart(boot)
    wait_for(lambda: ready.run("test -e /var/lib/etude/resume.json.stopped").status == 0)
    wait_for(lambda: ready.run("systemctl is-failed etude-resume").status == 0)
    assert "3 boots in a row brought nothing new: given up" in ready.journal("-b", "-u", "etude-resume")
    assert ready.boot_id() == boot
    assert [row["test"] for row in rows(ready)] == ["first"]


def test_each_block_boots_each_entry_and_the_boots_make_pairs(ready: Machine) -> None:
    default = json.loads(ready.check("etude boot-resume status --json"))["entries"][0]["key"]
    ready.check("head -c 4000000 /dev/urandom > /root/data")
    boots = [ready.boot_id()]
    begin(ready, ENTRIES, f"DEFAULT='{default}'")
    for _ in range(4):
        boots.append(ready.wait_restart(boots[-1]))
    document = wait_complete(ready)
    found = rows(ready)
    assert len({row["boot_id"] for row in found}) == 4
    assert [row["block"] for row in found] == [1, 1, 2, 2]
    for row in found:
        assert row["cache"]["performed"] == "reboot"
        assert row["cache"]["resident_bytes"] == 0
        sitting = document["sittings"][row["sitting"] - 1]
        assert ("etude.entry=other" in str(sitting["machine"])) == (row["test"] == "in:other-parameters")
    assert "2 pairs" in ready.check("etude stats /root/r")
    ready.restart()
    assert "etude.entry=other" not in ready.command_line()


def test_a_bench_restarts_the_machine_before_each_trial_but_the_first_run(ready: Machine) -> None:
    ready.check("head -c 4000000 /dev/urandom > /root/data")
    boots = [ready.boot_id()]
    words = "bench --trials 2 --cool reboot --data /root/data -o /root/r 'cat /root/data'"
    ready.spawn(f"cd /root && ETUDE_SETTLE_S=3 etude {words} >/root/log 2>&1")
    for _ in range(2):
        boots.append(ready.wait_restart(boots[-1]))
    wait_complete(ready)
    found = rows(ready)
    assert [row["boot_id"] for row in found] == boots
    assert [row["kept"] for row in found] == [False, True, True]
    assert [(row["cache"]["performed"], row["cache"].get("resident_bytes")) for row in found] == [
        (None, None),
        ("reboot", 0),
        ("reboot", 0),
    ]


def test_what_others_could_have_written_is_refused_with_a_line_in_the_journal(ready: Machine) -> None:
    boot = ready.boot_id()
    begin(ready, THREE)
    boot = ready.wait_restart(boot)
    ready.check("systemctl stop etude-resume")
    for spoil, said in (
        ("chmod 666 /root/r/state.json", "others may write to it: refused"),
        (
            "chmod 600 /root/r/state.json; chown 1000 /root/r/state.json",
            "belongs to user 1000, not to root: refused",
        ),
    ):
        ready.check(f"{spoil}; cp -p /root/ran /root/before")
        ready.restart()
        wait_for(lambda: ready.run("systemctl is-failed etude-resume").status == 0)
        assert said in ready.journal("-b", "-u", "etude-resume")
        assert ready.run("cmp /root/ran /root/before").status == 0, "nothing was run"
