"""What the machine did beside a trial, from the kernel's counters, and which trials it disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.codec import decoded
from etude.peak.machine_state import (
    MachineState,
    counters,
    machine_member,
    state_between,
    steal_share,
)


def machine(root: Path, steal: int, idle: int, waited_us: int | None) -> Path:
    (root / "proc" / "pressure").mkdir(parents=True, exist_ok=True)
    (root / "proc" / "stat").write_text(f"cpu  100 0 50 {idle} 0 0 0 {steal} 7 0\ncpu0 1 2\n")
    if waited_us is not None:
        (root / "proc" / "pressure" / "cpu").write_text(f"some avg10=0.00 total={waited_us}\n")
    return root


def test_steal_and_pressure_are_shares_of_the_time_between_two_looks(tmp_path: Path) -> None:
    before = counters(machine(tmp_path, 10, 1000, 2_000_000), at_s=100.0)
    after = counters(machine(tmp_path, 30, 1180, 4_500_000), at_s=110.0)
    found = state_between(before, after)
    assert found == MachineState(steal=pytest.approx(0.1), cpu_pressure=pytest.approx(0.25))
    assert decoded(MachineState, machine_member(found), "") == found


def test_what_the_kernel_does_not_report_is_unknown(tmp_path: Path) -> None:
    nothing = counters(tmp_path, at_s=0.0)
    assert state_between(nothing, counters(tmp_path, at_s=1.0)) == MachineState()
    some = counters(machine(tmp_path, 10, 1000, None), at_s=1.0)
    assert state_between(nothing, some) == state_between(some, some) == MachineState()
    assert machine_member(MachineState()) == {}


def test_a_trial_is_disturbed_by_steal_time_that_the_others_did_not_have() -> None:
    def flags(*steal: float | None) -> list[bool]:
        return steal_share([None if share is None else MachineState(share) for share in steal])

    assert flags(0.0, 0.2, 0.01, None) == [False, True, False, False]
    assert flags(0.0, 0.04, 0.0) == [False] * 3
    # A machine that always has some is like that.
    assert flags(0.12, 0.1, 0.15) == [False] * 3
    assert flags(None, None) == [False] * 2
    assert flags() == []
