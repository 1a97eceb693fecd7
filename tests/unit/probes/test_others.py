"""The probe that says who else used the CPU, on machines that are laid out and records that are made up."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from etude.osutil.processes import TICKS_PER_S
from etude.probes.others import Others
from etude.probes.probe import Context, Reading
from etude.probes.taskstats import Exit, NoRecords
from support.golden import Golden

Lay = Callable[[Mapping[str, str]], Path]
OWN, ENGINE = 10, 11
HERE = Context(engine_pid=ENGINE)


class Records:
    """Exit records, a batch each time they are asked for: in start, in end, after the second reading."""

    def __init__(self, *batches: Sequence[Exit], lost: int | None = None) -> None:
        self.batches = list(batches)
        self.lost = lost
        self.asked = 0
        self.closed = False

    def __call__(self, cpus: str) -> Records:
        self.cpus = cpus
        return self

    def drain(self) -> tuple[list[Exit], bool]:
        self.asked += 1
        exits = self.batches.pop(0) if self.batches else ()
        return list(exits), self.asked == self.lost

    def close(self) -> None:
        self.closed = True


def refused(cpus: str) -> Records:
    raise NoRecords("not today")


def tree(cpu_s: Mapping[str, float], busy: int = 0) -> dict[str, str]:
    """A machine with these processes, by name; the fixed ones have numbers below 20, others 30, 31, …"""
    files = {
        "proc/stat": f"cpu  {100 + busy} 0 50 {200 + 2 * busy} 7 0 0 {busy // 2} 0 0\ncpu0 1 2 3\n",
        "sys/devices/system/cpu/possible": "0-3\n",
        "proc/self/stat": "10 (python) R 1\n",
    }
    fixed = {"init": (1, 0), "kthreadd": (2, 0), "python": (OWN, 1), "etude-engine": (ENGINE, OWN)}
    others = {name: (30 + n, 1) for n, name in enumerate(cpu_s) if name not in fixed}
    for name, (pid, parent) in (fixed | others).items():
        ns = round(cpu_s.get(name, 0) * 1e9)
        ticks = ns * TICKS_PER_S // 10**9
        files[f"proc/{pid}/stat"] = (
            f"{pid} ({name}) S {parent} 0 0 0 0 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5 0\n"
        )
        files[f"proc/{pid}/schedstat"] = f"{ns} 0 1\n"
    return files


def exit_of(pid: int, name: str, parent: int, cpu_s: float) -> Exit:
    ns = round(cpu_s * 1e9)
    return Exit(pid, pid, parent, name, 10**12, ns, True)


def between(
    lay: Lay, before: Mapping[str, str], after: Mapping[str, str], listen: object, probe: Others | None = None
) -> Reading:
    probe = probe or Others(lay(before), listen, OWN)  # type: ignore[arg-type]
    root = lay(before)
    state = probe.start(HERE)
    shutil.rmtree(root / "proc")
    lay(after)
    return probe.end(state, HERE)


def lines(reading: Reading) -> list[str]:
    (block,) = reading.blocks
    assert block.name == "others"
    return list(block.lines)


def test_everybody_but_the_measured_command_is_listed_most_first(lay: Lay, golden: Golden) -> None:
    records = Records(
        [exit_of(90, "before", 1, 9.0)],
        [exit_of(91, "cc", 92, 3.0), exit_of(92, "make", ENGINE, 0.5), exit_of(93, "cron", 1, 0.25)],
        [exit_of(94, "cron", 1, 0.25)],
    )
    before = tree({"python": 1.0, "etude-engine": 1.0, "sshd": 4.0, "idle": 2.0})
    after = tree({"python": 1.01, "etude-engine": 1.02, "sshd": 5.5, "idle": 2.0}, busy=600)
    reading = between(lay, before, after, records)
    assert reading.metrics == {"others_cpu": [pytest.approx(2.03), "s"], "others_coverage": [1, "1"]}
    assert [line.split()[0] for line in lines(reading)] == [
        "sshd", "cron", "(etude)", "(measured)", "(machine)", "(coverage)"
    ]  # fmt: skip
    golden("\n".join(lines(reading)))
    assert reading.notes == ()
    assert (records.cpus, records.closed) == ("0-3", True)


def test_without_records_it_says_so_each_time_and_notes_it_once(lay: Lay, golden: Golden) -> None:
    probe = Others(lay(tree({})), refused, OWN)  # type: ignore[arg-type]
    before, after = tree({"sshd": 1.0}), tree({"sshd": 2.0})
    for notes in (1, 0):
        reading = between(lay, before, after, None, probe)
        assert reading.metrics["others_coverage"] == [0, "1"]
        assert [line.split()[0] for line in lines(reading)] == ["sshd", "(machine)", "(coverage)"]
        assert len(reading.notes) == notes
        golden("\n".join((*lines(reading), *reading.notes)))


def test_hidden_processes_are_told(lay: Lay) -> None:
    before = {path: text for path, text in tree({"sshd": 1.0}).items() if not path.startswith("proc/1/")}
    reading = between(lay, before, before, refused)
    assert "(hidepid)" in reading.notes[0]


@pytest.mark.parametrize("when", [2, 3])
def test_lost_records_are_told_every_time(lay: Lay, when: int, golden: Golden) -> None:
    same = tree({"sshd": 1.0})
    probe = Others(lay(same), lambda _: Records(lost=when), OWN)  # type: ignore[arg-type, return-value]
    for _ in range(2):
        reading = between(lay, same, same, None, probe)
        assert reading.metrics["others_coverage"] == [0, "1"]
        (note,) = reading.notes
        assert "lost" in note
        assert "lost" in lines(reading)[-1]
    golden(f"{note}\n{lines(reading)[-1]}")


def test_a_process_that_ended_while_proc_was_read_is_none_that_was_there(lay: Lay) -> None:
    records = Records([exit_of(30, "gone", 1, 4.0)])
    reading = between(lay, tree({"gone": 4.0}), tree({"heir": 1.0}), records)
    assert lines(reading)[0] == "heir = 1.000 s (1 process)"


def test_what_would_be_shown_as_nothing_is_summed_up(lay: Lay) -> None:
    after = tree({"a": 0.0006, "b": 0.0004, "c": 0.0003})
    assert lines(between(lay, tree({"a": 0, "b": 0, "c": 0}), after, refused))[:2] == [
        "a = 0.001 s (1 process)",
        "(rest) = 0.001 s (2 processes)",
    ]


def test_many_names_are_cut_short_and_little_is_summed_up(lay: Lay) -> None:
    names = {f"p{n:02}": float(n) for n in range(1, 60)} | {"speck": 0.0001, "mote": 0.0002}
    reading = between(lay, tree(dict.fromkeys(names, 0.0)), tree(names), refused)
    listed = lines(reading)[:-2]
    assert len(listed) == 51
    assert listed[0] == "p59 = 59.000 s (1 process)"
    assert listed[49] == "p10 = 10.000 s (1 process)"
    assert listed[50] == "(rest) = 45.000 s (11 processes)"
    assert reading.metrics["others_cpu"][0] == pytest.approx(sum(names.values()))


def test_a_machine_without_its_ticks_still_has_others(lay: Lay) -> None:
    before, after = tree({"sshd": 1.0}) | {"proc/stat": "nonsense"}, tree({"sshd": 2.0})
    assert [line.split()[0] for line in lines(between(lay, before, after, refused))] == ["sshd", "(coverage)"]


@pytest.mark.parametrize("when", ["start", "end"])
def test_whatever_goes_wrong_the_kernel_is_told_to_send_no_more(lay: Lay, when: str) -> None:
    root = lay(tree({}))
    records = Records()
    probe = Others(root, records, OWN)  # type: ignore[arg-type]
    state = probe.start(HERE) if when == "end" else None
    shutil.rmtree(root / "proc")
    with pytest.raises(FileNotFoundError):
        probe.start(HERE) if state is None else probe.end(state, HERE)
    assert records.closed


def test_without_proc_it_cannot_be_used(tmp_path: Path) -> None:
    assert "/proc" in (Others(tmp_path).unavailable() or "")
    assert Others().unavailable() is None
