"""Output of Slurm's commands as data: squeue, scontrol, sinfo, sacct, each in a format that we request; lists of nodes.

Times are requested as seconds since the epoch (SLURM_TIME_FORMAT=%s), so no time zone matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

QUEUE_FORMAT = "%A|%T|%N|%S|%e|%r|%k"
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
    comment: str = ""


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
        id, state, nodes, started, ended, rest = fields
        reason, _, comment = rest.partition("|")
        if id.isdigit():
            times = _seconds(started), _seconds(ended)
            found[id] = SlurmJob(id, state, reason, expand(nodes) or (), *times, comment=comment)
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


MAX_NODES = 65536
"""Maximum nodes of a list: Slurm's own bound."""

_PART = re.compile(r"[A-Za-z0-9._-]+|\[([0-9,-]+)\]")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def expand(text: str) -> tuple[str, ...] | None:
    """Names in a list of nodes, in order: `n[1-3,07],login` is n1, n2, n3, n07 and login (hostlist of Slurm's manual).
    An empty tuple for an empty list, None for an invalid one."""
    names: list[str] = []
    for word in re.split(r",(?![^\[]*\])", text) if text else ():
        found = _names(word)
        if found is None or len(names) + len(found) > MAX_NODES:
            return None
        names += found
    return tuple(names)


def _names(word: str) -> list[str] | None:
    names, at = [""], 0
    while at < len(word):
        part = _PART.match(word, at)
        ends = [part[0]] if part and part[1] is None else _ends(part[1]) if part else None
        if part is None or ends is None or len(names) * len(ends) > MAX_NODES:
            return None
        names = [name + end for name in names for end in ends]
        at = part.end()
    return names if word else None


def _ends(ranges: str) -> list[str] | None:
    ends: list[str] = []
    for each in ranges.split(","):
        found = _RANGE.fullmatch(each)
        if found is None:
            return None
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last < first + MAX_NODES:
            return None
        ends += _numbers(first, last, len(found[1]))
    return ends if len(ends) <= MAX_NODES else None


def _numbers(first: int, last: int, width: int) -> Iterator[str]:
    """Numbers padded to the width of the first: [07-10] is 07, 08, 09, 10."""
    return (str(number).zfill(width) for number in range(first, last + 1))
