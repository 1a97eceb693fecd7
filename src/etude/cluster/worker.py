"""The program of a job, `python -m etude.cluster.worker PLACE`: measures what the directory PLACE describes, a part of
an experiment or a configuration of a surface."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from etude.cluster.distributed.part import TASK, Part, read_part
from etude.errors import EtudeError, InputError
from etude.escaping import escaped

JOB_VARIABLE_PREFIXES = ("SLURM", "SBATCH", "ETUDE_JOB")
"""Prefixes of variables that a scheduler sets for a job."""


def _blocks(part: Part) -> None:
    _forget_job()
    from etude.cluster.distributed.blocks import measure

    measure(part)


def _tests(part: Part) -> None:
    _forget_job()
    from etude.script.distributed import measure

    measure(part)


def _forget_job() -> None:
    """Remove the scheduler's variables: the measured command sees the same environment as without a pool."""
    for name in [name for name in os.environ if name.startswith(JOB_VARIABLE_PREFIXES)]:
        if name != "SLURM_CONF":  # locates Slurm, independent of the job
            del os.environ[name]


def _search(part: Part) -> None:
    from etude.peak.distributed import measure

    measure(part)


CELL = "cell.json"
"""File that describes a configuration of a surface."""
KINDS: Mapping[str, Callable[[Part], None]] = {"blocks": _blocks, "tests": _tests, "search": _search}


def run_part(place: Path) -> int:
    """Measure the part; an error is written beside it, in one line. Returns the exit status."""
    if not (place / TASK).exists() and (place / CELL).exists():
        from etude.surface.worker import measure_on_node

        return measure_on_node(place)
    try:
        part = read_part(place)
    except EtudeError as error:
        print(escaped(f"etude: {error}"), file=sys.stderr)
        return error.exit_code
    try:
        kind = part.task["kind"]
        if kind not in KINDS:
            raise InputError(f"{place}: a part of kind {kind!r}; this Étude knows {', '.join(KINDS)}")
        KINDS[kind](part)
    except KeyboardInterrupt:
        return 128 + signal.SIGTERM
    except EtudeError as error:
        part.report_error(error)
        print(escaped(f"etude: {error}"), file=sys.stderr)
        return error.exit_code
    return 0


def _end(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt when the scheduler ends the job, so that its processes are stopped first."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    sys.exit(run_part(Path(sys.argv[1])))
