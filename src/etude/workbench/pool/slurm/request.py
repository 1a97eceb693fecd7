"""What of a job and a pool's keys becomes of sbatch's arguments, and which nodes they allow."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from etude.workbench.pool.ends import SCRIPT
from etude.workbench.pool.job import Job
from etude.workbench.pool.slurm.answers import Node
from etude.workbench.pool.slurm.hostlist import expand
from etude.workbench.pool.wanted import PoolSpec

_WORDS = re.compile("[A-Za-z0-9_.:-]+(?:[&|][A-Za-z0-9_.:-]+)*")


def arguments(job: Job, token: str, spec: PoolSpec, known: Collection[Node]) -> list[str]:
    """Of sbatch. `token` is the name by which it is found again; `known` are all nodes of the partition.

    Nodes are exclusive, with all of their memory; those that the job avoids are left out as long as enough others are
    as the pool's keys want them. A job never runs twice under one number: what Slurm would requeue is told as lost, and
    submitted anew elsewhere.
    """
    words = [
        f"--job-name={token}",
        f"--comment={job.name}",
        f"--nodes={job.nodes}-{job.nodes}",
        *("--ntasks-per-node=1", "--exclusive", "--mem=0", "--no-requeue", "--export=ALL"),
        *("--input=/dev/null", "--output=/dev/null", f"--chdir={job.place}"),
    ]
    for key in ("partition", "account", "qos", "constraint", "reservation"):
        if getattr(spec, key):
            words.append(f"--{key}={getattr(spec, key)}")
    if spec.time_s is not None:
        words.append(f"--time={math.ceil(spec.time_s / 60)}")
    names = {node.name for node in known}
    without = set(expand(spec.exclude) or ())
    if spec.nodelist:
        # --nodelist of sbatch asks for all of these nodes; here it means none but these.
        without |= names - set(expand(spec.nodelist) or ())
    if len({node.name for node in known if fits(node, spec)} - job.avoid) >= job.nodes:
        without |= job.avoid
    if job.only is not None:
        words.append(f"--nodelist={job.only}")
        without.discard(job.only)
    # A name that Slurm does not know, of a node that was taken out of it, would refuse the whole job.
    without &= names
    if without:
        words.append(f"--exclude={','.join(sorted(without))}")
    return [*words, str(job.place / SCRIPT)]


def fits(node: Node, spec: PoolSpec) -> bool:
    """Whether jobs of this pool may come to that node. Of constraints `a&b` and `a|b` are looked at; any other is
    Slurm's to judge, and counts as met."""
    if spec.nodelist and node.name not in (expand(spec.nodelist) or ()):
        return False
    if node.name in (expand(spec.exclude) or ()):
        return False
    if not _WORDS.fullmatch(spec.constraint):
        return True
    return any(
        all(feature in node.features for feature in either.split("&"))
        for either in spec.constraint.split("|")
    )
