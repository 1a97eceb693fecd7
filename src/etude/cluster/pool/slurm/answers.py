"""Output of Slurm's commands as data: squeue, scontrol, sinfo, sacct, each in a format that we request.

Times are requested as seconds since the epoch (SLURM_TIME_FORMAT=%s), so no time zone matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from etude.cluster.pool.slurm.hostlist import expand

QUEUE_FORMAT = "%A|%T|%N|%S|%e|%r"
NODE_FORMAT = "%N|%T|%P|%f"
ACCOUNTING_FORMAT = "JobIDRaw,State,ExitCode,Start,End,NodeList"

_USABLE = frozenset(("idle", "allocated", "mixed", "completing", "planned", "reserved"))
_PAIR = re.compile(r"(?:^|(?<= ))([A-Z][A-Za-z/:_]*)=")


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job as Slurm reports it."""

    id: str
    state: str
    """PENDING, RUNNING, COMPLETED, NODE_FAIL, …"""
    reason: str = ""
    """Reason why it waits, or why it ended."""
    nodes: tuple[str, ...] = ()
    started_s: float | None = None
    ended_s: float | None = None
    """Seconds since the epoch; of a running job, its time limit."""
    code: int | None = None
    """Exit status; None if unknown, or if a signal ended it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node in a partition."""

    name: str
    usable: bool
    """True if it runs or accepts jobs: not down, drained, reserved for maintenance or silent."""
    partition: str
    is_default: bool
    features: frozenset[str]


def queue(text: str) -> dict[str, SlurmJob]:
    """Jobs by id, from `squeue -h -o QUEUE_FORMAT`; other lines are ignored."""
    found = {}
    for fields in _rows(text, 6):
        id, state, nodes, started, ended, reason = fields
        if id.isdigit():
            found[id] = SlurmJob(id, state, reason, expand(nodes) or (), _seconds(started), _seconds(ended))
    return found


def job(text: str) -> SlurmJob | None:
    """Job of `scontrol -o show job ID`; None if there is none. User text (a comment) comes after all fields used
    here."""
    pairs = _pairs(text)
    if not pairs.get("JobId", "").isdigit() or not pairs.get("JobState"):
        return None
    reason = pairs.get("Reason", "").strip()
    return SlurmJob(
        pairs["JobId"],
        pairs["JobState"].strip(),
        reason,
        expand(pairs.get("NodeList", "").replace("(null)", "").strip()) or (),
        _seconds(pairs.get("StartTime", "")),
        _seconds(pairs.get("EndTime", "")),
        _code(pairs.get("ExitCode", "")),
    )


def nodes(text: str) -> tuple[Node, ...]:
    """Nodes of `sinfo -h -N -o NODE_FORMAT`; a node in several partitions appears once for each."""
    found = []
    for name, state, partition, features in _rows(text, 4):
        usable = state.rstrip("~#^+") in _USABLE  # asleep or waking up: Slurm wakes it for a job
        named = frozenset(features.replace("(null)", "").replace("(", "").replace(")", "").split(",")) - {""}
        found.append(Node(name, usable, partition.removesuffix("*"), partition.endswith("*"), named))
    return tuple(found)


def accounted_job(text: str) -> SlurmJob | None:
    """Last row of `sacct -n -P -X -o ACCOUNTING_FORMAT`: the last run of a job that was requeued."""
    last = None
    for id, state, code, started, ended, nodes_of in _rows(text, 6):
        if id.isdigit() and state:
            where = () if nodes_of == "None assigned" else expand(nodes_of) or ()
            last = SlurmJob(id, state.split()[0], "", where, _seconds(started), _seconds(ended), _code(code))
    return last


def _rows(text: str, fields: int) -> Iterator[list[str]]:
    """Rows of fields; the last field may contain bars."""
    for line in text.split("\n"):
        found = [field.strip() for field in line.split("|", fields - 1)]
        if len(found) == fields:
            yield found


def _pairs(text: str) -> Mapping[str, str]:
    """`Key=value Key=value`, the first of each key; a value may contain spaces."""
    _, *parts = _PAIR.split(text)
    pairs: dict[str, str] = {}
    for key, value in zip(parts[::2], parts[1::2], strict=True):
        pairs.setdefault(key, value.strip())
    return pairs


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch("[0-9]{1,12}", text.strip()) else None


def _code(text: str) -> int | None:
    """`3:0` is exit status 3, `0:9` is signal 9."""
    found = re.fullmatch("([0-9]{1,6}):([0-9]{1,6})", text.strip())
    return int(found[1]) if found and found[2] == "0" else None
