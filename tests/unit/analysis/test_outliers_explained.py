"""An outlier is explained by what was unusual beside it, and by nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from etude.analysis import outliers_explained
from etude.analysis.load_subject import read_subject
from etude.analysis.outliers_explained import NotLookedAt
from etude.analysis.subject import Subject
from etude.analysis.verdict import verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.analysis.warnings import DataWarning
from etude.analysis.warnings.facts import Facts, TwoGroups
from etude.analysis.warnings.warning import warning
from etude.present.sentences.explanations import NOTHING
from etude.present.sentences.warnings import advice, found_text, warning_text
from support.golden import Golden
from support.monitored import busy_second, columns, head, process, second, trials_of_seconds, write

LENGTHS = [1] * 6 + [3] + [1] * 9
HIT = range(7, 10)
"""The seconds of trial 7, which lasts three times as long."""


def told(directory: Path, every_outlier: bool = False) -> list[DataWarning]:
    subject = read_subject(str(directory))
    assert isinstance(subject, Subject)
    found = verdict(subject, None, VerdictOptions(every_outlier=every_outlier))
    return [each for each in found.every if each.kind == "outlier-explained"]


def explained(directory: Path, readings: Sequence[Any] | None, **changes: Any) -> str:
    """The single explanation, which is of trial 7."""
    (found,) = told(trials_of_seconds(directory, LENGTHS, readings, **changes), every_outlier=True)
    assert found.trials == (7,)
    assert re.match(r"trial 7 \(3\.002 s, .* 1\.002 s\): ", found_text(found))
    return found_text(found).partition("): ")[2]


def seconds(**hit: Any) -> list[dict[str, Any]]:
    """All seconds of the trials; those of trial 7 with something in them."""
    return [
        busy_second(n, 0.4 if hit else 0.97, **hit) if n in HIT else busy_second(n, 0.97)
        for n in range(1, sum(LENGTHS) + 1)
    ]


def test_a_foreign_process_is_named_with_what_it_used(tmp_path: Path, golden: Golden) -> None:
    text = explained(tmp_path / "r", seconds(foreign=1.5, name="stress-ng", pressure_cpu_some=0.63))
    others, pressure = text.split("; ")
    assert re.search(r" 1\.6 CPUs .* 0\.0\): stress-ng 1\.5 CPUs \(pid 4242\)$", others)
    assert re.search(r"CPU .* 63 % .* 0 %", pressure)
    golden(text)


def test_a_trial_that_was_quicker_than_the_others_lost_nothing(tmp_path: Path, golden: Golden) -> None:
    lengths = [3] * 6 + [1] + [3] * 9
    hit = sum(lengths[:6]) + 1
    readings = [
        busy_second(n, 0.4, foreign=1.5, name="stress-ng") if n == hit else busy_second(n, 0.97)
        for n in range(1, sum(lengths) + 1)
    ]
    place = trials_of_seconds(tmp_path / "r", lengths, readings)
    assert told(place) == []
    (found,) = told(place, every_outlier=True)
    assert (found.trials, advice(found)) == ((7,), "")
    golden(found_text(found))


def test_what_helps_is_to_keep_it_away(tmp_path: Path, golden: Golden) -> None:
    (found,) = told(trials_of_seconds(tmp_path / "r", LENGTHS, seconds(foreign=1.5, name="stress-ng")))
    assert "stress-ng" in advice(found)
    golden(warning_text(found))


def test_processes_of_one_name_are_named_together(tmp_path: Path) -> None:
    readings = seconds(foreign=0.9)
    for reading in readings:
        intruders = [entry for entry in reading["top"] if entry["name"] == "intruder"]
        reading["top"] += [entry | {"pid": 4243, "start": 5, "cpu": 0.6} for entry in intruders]
        if intruders:
            reading["v"][0] += 0.6
    text = explained(tmp_path / "r", readings)
    assert text.count("intruder") == 1
    assert re.search(r"intruder 1\.5 CPUs \(2 .* 4242\)", text)


def test_the_trial_s_own_processes_are_never_named(tmp_path: Path) -> None:
    """Whether its cgroup tells them, or that they are there beside all trials."""
    readings = seconds(foreign=1.5)
    assert "program" not in explained(tmp_path / "with", readings)
    for reading in readings:
        for entry in reading["top"]:
            entry.pop("cgroup", None)
    assert "program" not in explained(tmp_path / "without", readings)


def test_what_is_in_the_trial_s_cgroup_is_its_own(tmp_path: Path) -> None:
    """Also where it is there beside that trial only."""
    readings = seconds(foreign=1.5)
    for number in HIT:
        readings[number - 1]["top"].append(process(51, "helper", 0.4, cgroup="/x/etude-7-1"))
    assert "helper" not in explained(tmp_path / "own", readings)
    for number in HIT:
        readings[number - 1]["top"][-1]["cgroup"] = "/x/other"
    assert "helper 0.4 CPUs (pid 51)" in explained(tmp_path / "foreign", readings)


@pytest.mark.parametrize("came_cpus", [0.7, 0.3])
def test_on_a_machine_without_a_cpu_to_spare_who_comes_is_named(tmp_path: Path, came_cpus: float) -> None:
    """The sum of what others use cannot rise: it was all there is. Who came took no more than it used: of the 2 s that
    were lost 2.1 s, or 0.9 s."""
    usual = process(70, "rustc", 1.0, cgroup="/")
    readings = [busy_second(n, 0.97, 0.0, pressure_cpu_some=0.99) for n in range(1, 19)]
    for number, reading in enumerate(readings, 1):
        came = number in HIT
        reading["v"][0], reading["v"][3] = 2.0, 0.0
        own, steady = (0.33, 0.9) if came else (0.97, 1.0)
        reading["top"] = [process(50, "program", own, cgroup="/etude-7-1"), usual | {"cpu": steady}]
        reading["top"] += [process(4242, "intruder", came_cpus, cgroup="/")] if came else []
    for reading in readings:  # of its trials the others vary by as much as they rise
        reading["v"][0] -= 0.4 * (reading["ns"] % 2e9 == 0)
    text = explained(tmp_path / "r", readings)
    named = re.search(r" 1\.5 CPUs .* 0\.6\): intruder 0\.7 CPUs \(pid 4242\)$", text)
    assert (named is not None) == (came_cpus > 0.5)
    assert (" at most 900" in text) == (came_cpus < 0.5)


def test_what_measures_is_never_named(tmp_path: Path, golden: Golden) -> None:
    readings = seconds(foreign=1.5, name="etude-engine")
    by_name = explained(tmp_path / "r", readings)
    assert "etude-engine" not in by_name
    for reading in readings:
        for entry in reading["top"]:
            entry["name"] = "it" if entry["pid"] == 4242 else entry["name"]
            entry["pid"] = 99 if entry["pid"] == 4242 else entry["pid"]
    assert explained(tmp_path / "s", readings) == by_name
    golden(by_name)


def test_processes_that_had_ended_are_told_of(tmp_path: Path, golden: Golden) -> None:
    readings = [
        second(n, cpu_user=1.9 if n in HIT else 0.97) | {"unseen": 1.4 if n in HIT else 0.02}
        for n in range(1, sum(LENGTHS) + 1)
    ]
    text = explained(tmp_path / "r", readings)
    assert " 1.4 CPUs" in text
    assert "pid" not in text
    golden(text)


@pytest.mark.parametrize(
    ("values", "now", "usually"),
    [
        ({"disk_sda_busy": 0.9}, "90 %", "0 %"),
        ({"disk_sda_written": 50 * 2.0**20}, "50 MiB/s", "0 B/s"),
        ({"cpu_iowait": 0.8}, "0.8 CPUs", "0.0 CPUs"),
        ({"cpu_steal": 0.5}, "0.5 CPUs", "0.0 CPUs"),
        ({"interrupts": 90300.0}, "90 k/s", "300 /s"),
        ({"switches": 150000.0}, "150 k/s", "0 /s"),
        ({"frequency_0": 8e8}, "0.80 GHz", "2.00 GHz"),
        ({"pressure_io_some": 0.4}, "40 %", "0 %"),
        ({"net_eth0_received": 2.0**23}, "8.0 MiB/s", "0 B/s"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_other_things_that_slow_a_program_down(
    tmp_path: Path, golden: Golden, values: dict[str, float], now: str, usually: str
) -> None:
    readings = [
        busy_second(n, 0.97 if n not in HIT else 0.33, **(values if n in HIT else {})) for n in range(1, 19)
    ]
    text = explained(tmp_path / "r", readings)
    assert re.search(rf"\b{now}.*\b{usually}", text)
    golden(text)


def test_a_kernel_message_of_these_seconds_is_quoted(tmp_path: Path) -> None:
    readings = [busy_second(n, 0.97 if n not in HIT else 0.33) for n in range(1, 19)]
    readings.append({"ns": 7_500_000_000, "level": 3, "kernel": "sda: I/O error,\n dev sda"})
    readings.append({"ns": 7_600_000_000, "level": 6, "kernel": "only a word"})
    text = explained(tmp_path / "r", readings)
    assert '"sda: I/O error, dev sda"' in text
    assert text.count("sda:") == 1


def test_where_nothing_was_unusual_it_says_so(tmp_path: Path, golden: Golden) -> None:
    readings = [busy_second(n, 0.97 if n not in HIT else 0.33) for n in range(1, 19)]
    assert explained(tmp_path / "r", readings) == NOTHING
    assert told(tmp_path / "r") == [], "unless it is asked for"
    golden(NOTHING)


def test_a_load_that_is_always_there_explains_nothing(tmp_path: Path) -> None:
    readings = [busy_second(n, 0.97 if n not in HIT else 0.33, foreign=0.8) for n in range(1, 19)]
    assert explained(tmp_path / "r", readings) == NOTHING


def test_a_trial_shorter_than_the_time_between_readings_is_told_as_such(
    tmp_path: Path, golden: Golden
) -> None:
    quiet = [second(5 * n, cpu_user=own) for n, own in enumerate((5.0, 3.0, 5.0, 3.0), 1)]
    directory = trials_of_seconds(tmp_path / "r", LENGTHS, None)
    write(directory / "monitor-1.jsonl", [head(every_s=5.0), columns(), *quiet])
    assert told(directory) == []
    (found,) = told(directory, every_outlier=True)
    assert NOTHING in found_text(found)
    assert " 5 s " in found_text(found)
    assert "--monitor 100ms" in advice(found)
    golden(warning_text(found))


def test_a_trial_that_was_not_read_is_told_as_such(tmp_path: Path, golden: Golden) -> None:
    text = explained(tmp_path / "r", [busy_second(n, 0.97) for n in range(1, 7)])
    assert text != NOTHING
    golden(text)


def test_readings_of_another_boot_explain_nothing(tmp_path: Path) -> None:
    assert told(trials_of_seconds(tmp_path / "r", LENGTHS, seconds(foreign=1.5), boot_id="another")) == []


def test_without_a_monitor_nothing_is_said(tmp_path: Path) -> None:
    assert told(trials_of_seconds(tmp_path / "r", LENGTHS, None)) == []


def test_a_monitor_s_file_that_cannot_be_read_costs_the_explanation_only(tmp_path: Path) -> None:
    directory = trials_of_seconds(tmp_path / "r", LENGTHS, [{"what": 1}])
    subject = read_subject(str(directory))
    assert isinstance(subject, Subject)
    found = verdict(subject)
    assert [w.kind for w in found.every] == ["note", "outliers"]
    (note,) = [w for w in found.every if w.kind == "note"]
    assert "monitor-1.jsonl:3: " in found_text(note)


def test_neighbours_of_the_burst_are_no_outliers_and_not_told_of(tmp_path: Path) -> None:
    """A burst that reaches into the next trial without slowing it down."""
    readings = [busy_second(n, 0.4, 1.5) if n in (*HIT, 10) else busy_second(n, 0.97) for n in range(1, 19)]
    assert "intruder" in explained(tmp_path / "r", readings)


def test_a_burst_around_a_short_trial_is_told_of_as_such(tmp_path: Path, golden: Golden) -> None:
    busy = [second(5 * n, cpu_user=own) for n, own in enumerate((5.0, 9.5, 5.0, 3.0), 1)]
    directory = trials_of_seconds(tmp_path / "r", LENGTHS, None)
    write(directory / "monitor-1.jsonl", [head(every_s=5.0), columns(), *busy])
    assert told(directory) == []
    (found,) = told(directory, every_outlier=True)
    assert re.search(r"\): .* 5 s .* 1\.3 CPUs", found_text(found))
    golden(found_text(found))


def test_many_outliers_are_not_all_looked_at(tmp_path: Path) -> None:
    """The farthest ten are, and told of in the order in which they were made."""
    lengths = [2 + n // 6 if n % 6 == 3 else 1 for n in range(1, 91)]
    readings = [busy_second(n, 0.97) for n in range(1, sum(lengths) + 1)]
    subject = read_subject(str(trials_of_seconds(tmp_path / "r", lengths, readings)))
    assert isinstance(subject, Subject)
    trials = [number for number, length in enumerate(lengths, 1) if length > 1]
    outliers = [warning("outliers", "a", "elapsed", Facts(), trials)]
    assert len(outliers_explained.explain_outliers(subject, outliers)) == 10
    found = outliers_explained.explain_outliers(subject, outliers, every_one=True)
    assert [each.trials for each in found] == [*((number,) for number in trials[-10:]), tuple(trials[:-10])]
    assert found[-1].facts == NotLookedAt(5)


def test_a_bystander_that_cannot_account_for_the_lost_time_is_not_named_as_the_cause(
    tmp_path: Path, golden: Golden
) -> None:
    """A trial that was stopped for 2 s beside another program's 0.3 CPUs, which kept nobody waiting."""
    lengths = [2] * 6 + [6] + [2] * 9
    hit = range(13, 19)
    readings = [
        busy_second(
            n,
            0.2 if n in hit else 0.5,
            0.3 if n in hit else 0.0,
            pressure_cpu_some=0.02 if n in hit else 0.01,
            pressure_memory_some=0.0,
        )
        for n in range(1, sum(lengths) + 1)
    ]
    (found,) = told(trials_of_seconds(tmp_path / "r", lengths, readings), every_outlier=True)
    assert found.trials == (7,)
    assert advice(found) == ""
    own, others = found_text(found).partition("): ")[2].split("; ")
    assert "SIGSTOP" in own
    assert re.search(r"at most \d+(\.\d+)? ms of 4\.", others)
    assert "intruder" not in found_text(found)
    golden(found_text(found))


@pytest.mark.parametrize("pressure", [0.01, 0.9])
def test_a_trial_is_said_to_have_been_stopped_only_where_it_can_be_known(
    tmp_path: Path, pressure: float
) -> None:
    """Pressure that is near its most has no room to rise, however long one process waits for a CPU."""
    hit = range(13, 19)
    readings = [
        busy_second(
            n,
            0.2 if n in hit else 0.5,
            0.15 if n in hit else 0.0,
            pressure_cpu_some=pressure,
            pressure_memory_some=0.0,
        )
        for n in range(1, 39)
    ]
    (found,) = told(trials_of_seconds(tmp_path / "r", [2] * 6 + [6] + [2] * 9, readings), every_outlier=True)
    assert ("SIGSTOP" in found_text(found)) == (pressure < 0.5)
    assert advice(found) == ""


@pytest.mark.parametrize("every_s", [1, 4])
def test_readings_longer_than_a_trial_do_not_tell_that_it_was_stopped(tmp_path: Path, every_s: int) -> None:
    """Among seconds of others' work a wait for a CPU of a part of one is not seen."""
    readings = [
        busy_second(
            n, 0.3 if n in HIT else 0.9, pressure_cpu_some=0.02 + 0.02 * (n % 2), pressure_memory_some=0.0
        )
        for n in range(1, 21)
    ]
    directory = trials_of_seconds(tmp_path / "r", LENGTHS, None)
    lines = [reading | {"ns": every_s * reading["ns"]} for reading in readings]
    write(directory / "monitor-1.jsonl", [head(every_s=float(every_s)), columns(), *lines])
    (found,) = told(directory, every_outlier=True)
    assert ("SIGSTOP" in found_text(found)) == (every_s == 1)


def test_a_trial_that_always_waits_for_the_disk_and_waits_longer_was_not_stopped(tmp_path: Path) -> None:
    """Trials of 2 s that wait for half of it, and one of 6 s: the pressure is as high, for longer."""
    lengths = [2] * 6 + [6] + [2] * 9
    hit = range(13, 19)
    readings = [
        busy_second(
            n,
            0.2 if n in hit else 0.5,
            pressure_io_some=0.5,
            cpu_iowait=0.9 if n in hit else 0.4,
            disk_sda_written=2.0**30 if n in hit else 2.0**20,
            disk_sda_busy=1.0 if n in hit else 0.5,
        )
        for n in range(1, sum(lengths) + 1)
    ]
    (found,) = told(trials_of_seconds(tmp_path / "r", lengths, readings), every_outlier=True)
    first = found_text(found).partition("): ")[2].split("; ")[0]
    assert "SIGSTOP" not in found_text(found)
    assert re.match("waiting for I/O|sda (written|busy)", first)
    assert "at most" not in first


def test_a_trial_that_was_ready_while_cpus_were_idle_had_a_quota(tmp_path: Path) -> None:
    readings = [
        busy_second(n, 0.33 if n in HIT else 0.97, pressure_cpu_some=0.66 if n in HIT else 0.01)
        for n in range(1, 19)
    ]
    assert "cpu.max" in explained(tmp_path / "r", readings).split("; ")[0]


def test_a_trial_that_computed_for_longer_is_told_as_such_where_nothing_else_explains_it(
    tmp_path: Path, golden: Golden
) -> None:
    readings = [busy_second(n, 0.97) for n in range(1, 19)]
    directory = trials_of_seconds(tmp_path / "r", LENGTHS, readings, user={7: 2.9})
    (found,) = told(directory, every_outlier=True)
    assert re.search(r"\): .* 1\.900 s .*2\.900 s.* 1\.000 s", found_text(found))
    assert advice(found) == ""
    golden(found_text(found))
    busy = [busy_second(n, 0.97, 0.9 if n in HIT else 0.0) for n in range(1, 19)]
    (found,) = told(trials_of_seconds(tmp_path / "busy", LENGTHS, busy, user={7: 2.9}), every_outlier=True)
    assert "intruder" in found_text(found)
    assert "2.900 s" not in found_text(found)


def test_major_faults_of_the_trial_itself_are_its_own_state(tmp_path: Path) -> None:
    directory = trials_of_seconds(tmp_path / "r", LENGTHS, seconds(), major_faults={7: 900})
    (found,) = told(directory, every_outlier=True)
    assert "900 major faults of its own (usually 0)" in found_text(found)


def faulting(directory: Path, faults: int, **hit: float) -> str:
    """The explanation of trial 7, which had major faults, by a kernel that tells pressures."""
    readings = [
        busy_second(n, 0.33, **hit) if n in HIT else busy_second(n, 0.97, pressure_memory_some=0.001)
        for n in range(1, 19)
    ]
    directory = trials_of_seconds(directory, LENGTHS, readings, major_faults={7: faults})
    (found,) = told(directory, every_outlier=True)
    return found_text(found).partition("): ")[2].split("; ")[0]


def test_major_faults_are_told_with_where_the_pages_had_gone(tmp_path: Path, golden: Golden) -> None:
    swapped = faulting(tmp_path / "swapped", 900, pressure_memory_some=0.6, paging_swapped_in=290.0)
    reclaimed = faulting(tmp_path / "reclaimed", 900, pressure_memory_some=0.6)
    read = faulting(tmp_path / "read", 900, pressure_io_some=0.6)
    assert all(" 900 major faults of its own (usually 0)" in text for text in (swapped, reclaimed, read))
    assert "290 /s" in swapped
    assert ("memory pressure" in reclaimed, "memory pressure" in read) == (True, False)
    assert ["swap" in text for text in (swapped, reclaimed, read)] == [True, False, False]
    golden("\n".join((swapped, reclaimed, read)))


def test_major_faults_that_nobody_waited_for_are_no_cause(tmp_path: Path) -> None:
    assert "SIGSTOP" in faulting(tmp_path / "r", 200)


@pytest.mark.parametrize("waiting", [False, True])
def test_context_switches_are_a_cause_of_time_that_was_waited_for_a_cpu(
    tmp_path: Path, waiting: bool
) -> None:
    """Else they are those of a trial that waits often, for a disk or another process."""
    hit = {"switches": 150000.0, "pressure_io_some": 0.01, "pressure_cpu_some": 0.66 * waiting}
    readings = [busy_second(n, 0.33, **hit) if n in HIT else busy_second(n, 0.97) for n in range(1, 19)]
    for reading in readings:
        reading["v"][3] = 0.1  # no CPU was free: it had no quota
    text = explained(tmp_path / "r", readings)
    assert ("most 0 s" in text) == (not waiting)
    assert "context switches 150 k/s (usually 0 /s)" in text
    assert ("SIGSTOP" in text) == (not waiting)


@pytest.mark.parametrize("waiting", [False, True])
def test_a_network_is_a_cause_of_time_that_shows_in_no_pressure(tmp_path: Path, waiting: bool) -> None:
    """What waited for a disk beside another program's transfer did not wait for the network."""
    readings = [
        busy_second(n, 0.33, net_eth0_received=2.0**23, pressure_io_some=0.66 if waiting else 0.02)
        if n in HIT
        else busy_second(n, 0.97)
        for n in range(1, 19)
    ]
    first, *rest = explained(tmp_path / "r", readings).split("; ")
    assert first.startswith("I/O pressure" if waiting else "eth0 received")
    assert [" at most " in text for text in rest if text.startswith("eth0")] == [True] * waiting


def test_the_bytes_of_a_device_and_of_the_one_below_it_are_told_once(tmp_path: Path) -> None:
    written = {"disk_sda_written": 2.0**23, "pressure_io_some": 0.66}
    for name, below, times in (("same", 2.0**23, 1), ("other", 2.0**22, 2)):
        hit = {**written, "disk_dm-0_written": below}
        readings = [busy_second(n, 0.33, **hit) if n in HIT else busy_second(n, 0.97) for n in range(1, 19)]
        assert explained(tmp_path / name, readings).count(" written ") == times


@pytest.mark.parametrize(
    ("kind", "lengths", "facts"),
    [
        ("bimodal", [1] * 6 + [3, 3] + [1] * 9, TwoGroups(2, 15, 1.0, 3.0, "s", 17, False)),
        ("late-level", [1] * 15 + [3, 3], Facts()),
        ("drift", [1] * 12 + [2, 2, 3, 3, 3, 3], Facts()),
    ],
    ids=["two-groups", "level", "drift"],
)
def test_of_several_disturbed_trials_the_slower_ones_are_explained_together(
    tmp_path: Path, kind: str, lengths: list[int], facts: Facts
) -> None:
    """Two neighbouring trials beside an intruder were two groups, and nobody said why."""
    slow, at = [], 0
    for number, length in enumerate(lengths, 1):
        slow += [(at + second, number) for second in range(1, length + 1) if length > 1]
        at += length
    hit = {second for second, _ in slow}
    readings = [busy_second(n, 0.4, 1.5) if n in hit else busy_second(n, 0.97) for n in range(1, at + 1)]
    subject = read_subject(str(trials_of_seconds(tmp_path / "r", lengths, readings)))
    assert isinstance(subject, Subject)
    trials = sorted({number for _, number in slow}) if kind == "late-level" else []
    (found,) = outliers_explained.explain_outliers(subject, [warning(kind, "a", "elapsed", facts, trials)])
    assert set(found.trials) == {number for _, number in slow}
    assert "intruder 1.5 CPUs" in found_text(found)
    quiet = [busy_second(n, 0.33 if n in hit else 0.97) for n in range(1, at + 1)]
    write(tmp_path / "r" / "monitor-1.jsonl", [head(), columns(), *quiet])
    assert not outliers_explained.explain_outliers(subject, [warning(kind, "a", "elapsed", facts, trials)])
