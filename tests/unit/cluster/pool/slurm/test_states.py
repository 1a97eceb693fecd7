from __future__ import annotations

import pytest

from etude.cluster.pool.job import RETRYABLE, How
from etude.cluster.pool.slurm import states
from etude.cluster.pool.slurm.answers import SlurmJob


@pytest.mark.parametrize(
    ("state", "reason", "code", "how"),
    [
        ("COMPLETED", "None", 0, "done"),
        ("FAILED", "NonZeroExitCode", 3, "failed"),
        ("FAILED", "NonZeroExitCode", 121, "no-etude"),
        ("FAILED", "NonZeroExitCode", 122, "other-architecture"),
        ("FAILED", "NonZeroExitCode", 123, "no-space"),
        ("FAILED", "NonZeroExitCode", 124, "no-space"),
        ("FAILED", "JobLaunchFailure", 1, "node-lost"),
        ("FAILED", "BadConstraints", 0, "held"),
        ("OUT_OF_MEMORY", "OutOfMemory", None, "failed"),
        ("NODE_FAIL", "NodeDown", 0, "node-lost"),
        ("BOOT_FAIL", "None", 0, "node-lost"),
        ("PREEMPTED", "None", None, "preempted"),
        ("SUSPENDED", "None", None, "preempted"),
        ("TIMEOUT", "TimeLimit", None, "out-of-time"),
        ("DEADLINE", "DeadLine", None, "out-of-time"),
        ("CANCELLED", "None", None, "cancelled"),
        ("SPECIAL_EXIT", "None", None, "held"),
        ("A_STATE_OF_SLURM_99", "None", None, "failed"),
    ],
)
def test_a_final_state_is_an_end(state: str, reason: str, code: int | None, how: How) -> None:
    found = states.end_of_state(SlurmJob("1", state, reason, (), None, None, code))
    assert found is not None
    assert found[0] == how
    assert bool(found[1]) == (how != "done")


@pytest.mark.parametrize("state", sorted(states.WAITING | states.RUNNING))
def test_what_waits_or_runs_has_not_ended(state: str) -> None:
    assert states.end_of_state(SlurmJob("1", state)) is None


def test_a_node_that_cannot_run_it_says_nothing_of_the_job() -> None:
    assert all(how in RETRYABLE for how, _ in states.REFUSALS.values())


@pytest.mark.parametrize(
    "reason",
    [
        *("JobHeldUser", "JobHeldAdmin", "PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints"),
        *("InvalidAccount", "InvalidQOS", "AssocMaxNodePerJobLimit", "QOSMaxWallDurationPerJobLimit"),
        *("AssocGrpCPUMinutesLimit", "launch failed requeued held"),
    ],
)
def test_a_reason_that_no_time_mends_is_a_hold(reason: str) -> None:
    assert states.held_reason(reason)


@pytest.mark.parametrize("reason", ["None", "Priority", "Resources", "BeginTime", "Dependency", ""])
def test_a_turn_is_waited_for(reason: str) -> None:
    assert states.held_reason(reason) is None
    assert not states.is_stuck(reason)


@pytest.mark.parametrize(
    "reason",
    ["ReqNodeNotAvail, UnavailableNodes:n3", "PartitionDown", "AssocGrpNodeLimit", "QOSMaxJobsPerUserLimit"],
)
def test_what_is_not_a_turn_is_waited_for_with_bounds(reason: str) -> None:
    assert states.held_reason(reason) is None
    assert states.is_stuck(reason)
