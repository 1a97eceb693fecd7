"""Slurm's job states and reasons, as ends of our jobs (the manual pages of squeue and sacct list them)."""

from __future__ import annotations

from etude.cluster.pool.job import How
from etude.cluster.pool.job_files import REFUSALS
from etude.cluster.pool.slurm.answers import SlurmJob

WAITING = frozenset(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "RESV_DEL_HOLD"))
RUNNING = frozenset(("RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT"))

_ENDS: dict[str, tuple[How, str]] = {
    "TIMEOUT": ("out-of-time", "its time limit ended it: give jobs more, as time=2h"),
    "DEADLINE": ("out-of-time", "its deadline in Slurm has passed"),
    "NODE_FAIL": ("node-lost", "its node failed"),
    "BOOT_FAIL": ("node-lost", "its node did not boot"),
    "PREEMPTED": ("preempted", "Slurm gave its nodes to a job of higher priority"),
    "SUSPENDED": ("preempted", "Slurm suspended it in favour of another job: what it measured is void"),
    "STOPPED": ("preempted", "it was stopped, and its nodes kept: what it measured is void"),
    "CANCELLED": ("cancelled", "it was cancelled"),
    "REVOKED": ("cancelled", "another cluster of the federation took it"),
    "OUT_OF_MEMORY": ("failed", "Slurm ended it: it used more memory than its nodes have"),
    "REQUEUE_HOLD": ("held", "Slurm holds it after a failure to start"),
    "SPECIAL_EXIT": ("held", "Slurm holds it: special exit"),
}

_FOR_A_PERSON = {
    "JobHeldUser": "its owner holds it",
    "JobHeldAdmin": "an administrator holds it",
    "PartitionNodeLimit": "it asks for more or fewer nodes than the partition allows",
    "PartitionTimeLimit": "it asks for more time than the partition allows: time=",
    "PartitionConfig": "the partition has not as many nodes, or does not allow as much time: time=",
    "BadConstraints": "no node is as it asks for: constraint=, nodelist=",
    "InvalidAccount": "there is no such account: account=",
    "AccountNotAllowed": "its account may not use the partition",
    "InvalidQOS": "there is no such quality of service: qos=",
    "QOSNotAllowed": "its account may not use the quality of service",
    "DependencyNeverSatisfied": "it depends on a job that failed",
    "AdminAction": "an administrator holds it",
    "launch failed requeued held": "Slurm holds it after a failure to start",
}
"""Reasons to wait that never resolve by themselves."""

_PATIENT = ("ReqNodeNotAvail", "PartitionDown", "PartitionInactive", "Reservation", "Licenses", "NodeDown")
_LIMITS = ("Assoc", "QOS", "MaxMemPerLimit")


def held_reason(reason: str) -> str | None:
    """Reason why a waiting job needs a person; None if it waits for its turn or for something temporary."""
    name = reason.replace(" ", "") if reason.startswith("JobHeld") else reason
    for known, words in _FOR_A_PERSON.items():
        if name.strip("()").startswith(known):
            return words
    limit = reason.startswith(_LIMITS)
    if limit and ("PerJob" in reason or "Minutes" in reason):
        return "it is beyond a limit of its account or quality of service"
    return None


def is_stuck(reason: str) -> bool:
    """True if the job waits for more than its turn: nodes that are down, a limit that others use up."""
    return reason.startswith((*_PATIENT, *_LIMITS))


def end_of_state(seen: SlurmJob) -> tuple[How, str] | None:
    """End of a job by Slurm's account, and the reason; None while it waits or runs."""
    if seen.state in WAITING or seen.state in RUNNING:
        return None
    if seen.state in _ENDS:
        how, why = _ENDS[seen.state]
        if how == "cancelled" and seen.reason in ("BadConstraints", "NODE_FAIL"):
            return "held", _FOR_A_PERSON["BadConstraints"]
        return how, why
    if seen.state == "COMPLETED":
        return "done", ""
    if seen.code in REFUSALS:
        return REFUSALS[seen.code]
    if seen.reason == "BadConstraints":
        return "held", _FOR_A_PERSON["BadConstraints"]
    if seen.reason in ("JobLaunchFailure", "SystemFailure", "Prolog"):
        return "node-lost", f"its node could not start it ({seen.reason})"
    return (
        "failed",
        f"exit status {seen.code}" if seen.code else f"Slurm reports {seen.state} ({seen.reason})",
    )
