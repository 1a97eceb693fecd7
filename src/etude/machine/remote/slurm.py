"""Slurm's commands, as far as they lead to a node: one that runs something there, and one that asks."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence

from etude.errors import MachineRefuses
from etude.osutil.trust import tool_words

WITHIN_S = 30.0
"""Longest time that Slurm may take to answer what it knows."""


def srun(job: str, node: str) -> list[str]:
    """Words before a command that run it once on one node of a running job, beside whatever runs there, unconfined."""
    return [
        "srun",
        "--quiet",
        f"--jobid={job}",
        f"--nodelist={node}",
        *("--nodes=1", "--ntasks=1", "--overlap", "--cpu-bind=none", "--mem=0", "--export=ALL"),
    ]


def slurm(words: Sequence[str]) -> str:
    """What a command of Slurm prints.

    Raises:
        MachineRefuses: it fails, or does not answer in time.
    """
    try:
        done = subprocess.run(
            tool_words(words), capture_output=True, text=True, timeout=WITHIN_S, check=False
        )
    except OSError as error:
        raise MachineRefuses(f"{words[0]}: cannot be run: {error.strerror}; install slurm-client") from None
    except subprocess.TimeoutExpired:
        raise MachineRefuses(f"{words[0]}: no answer within {WITHIN_S:g} s; does slurmctld run?") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"returned {done.returncode}"]
        raise MachineRefuses(f"{shlex.join(words)}: {said[-1]}")
    return done.stdout
