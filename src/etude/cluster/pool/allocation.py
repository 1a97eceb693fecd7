"""The nodes of this process's Slurm allocation, and command lines that run on another of its nodes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from etude.cluster.pool.slurm.commands import Slurm
from etude.machine.remote.transport import Srun

PLACE_VARIABLE = "ETUDE_SYSTEM_PLACE"
"""Environment variable of all processes that `Node.line` starts: their directory."""

_HOLD = '/bin/sh -c "$1"; status=$?; [ "$status" -eq 0 ] && exec sleep infinity; exit "$status"'
"""Slurm ends a step together with all of its processes: a step that leaves a server running must not end."""
_SWEEP = r"""
left() { grep -lzxF -e "$1" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3; }
found=$(left "$1"); [ -n "$found" ] || exit 0
kill -TERM $found 2>/dev/null
looks=$2
while [ "$looks" -gt 0 ] && [ -n "$(left "$1")" ]; do sleep 0.1; looks=$((looks - 1)); done
found=$(left "$1"); [ -z "$found" ] || kill -KILL $found 2>/dev/null
exit 0
"""


@dataclass(frozen=True, slots=True)
class Node:
    """Another node of an allocation."""

    job: str
    name: str
    address: str
    """Address that other nodes reach it by: NodeAddr of Slurm."""

    def line(self, command: str, place: Path, *, hold: bool = False) -> str:
        """A command line that runs `command` on the node, in the directory `place`, with the same exit status.

        hold: keep processes that it leaves running if it ends with 0; the line then runs until it is ended itself.
        """
        marked = ["env", "-u", "ETUDE_PEAK_PLACE", f"{PLACE_VARIABLE}={place}", "/bin/sh", "-c"]
        words = [*marked, _HOLD, "sh", command] if hold else [*marked, command]
        return "exec " + shlex.join([*Srun(self.job, self.name, str(place)).words, *words])

    def sweep(self, place: Path, grace_s: float) -> str:
        """A command line that ends all remaining processes that lines for `place` have started on the node."""
        words = ["/bin/sh", "-c", _SWEEP, "sh", f"{PLACE_VARIABLE}={place}", str(round(grace_s * 10))]
        return "exec " + shlex.join([*Srun(self.job, self.name).words, *words])


def other_node(
    environment: Mapping[str, str] | None = None, ask: Callable[[Sequence[str]], str] | None = None
) -> Node | None:
    """The second node of the allocation that this process runs in; None if there is no second one.

    Raises:
        MachineRefuses: Slurm does not answer.
    """
    around = os.environ if environment is None else environment
    job, nodes = around.get("SLURM_JOB_ID", ""), around.get("SLURM_JOB_NODELIST", "")
    if not job or not nodes or around.get("SLURM_JOB_NUM_NODES", "1") == "1":
        return None
    asked = ask or Slurm().ask
    here = around.get("SLURMD_NODENAME", "")
    names = asked(["scontrol", "show", "hostnames", nodes]).split()
    others = [name for name in names if name != (here or names[0])]
    if not others:
        return None
    return Node(job, others[0], address_of(asked(["scontrol", "-o", "show", "node", others[0]]), others[0]))


def address_of(said: str, node: str) -> str:
    """NodeAddr in the output of `scontrol -o show node`; the node's name if it has none."""
    fields = dict(word.split("=", 1) for word in said.split() if "=" in word)
    return fields.get("NodeAddr") or node
