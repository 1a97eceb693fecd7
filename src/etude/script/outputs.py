"""What workers print: a file each, kept as `logs/TRIAL-WORKER.log` where there is anything in it."""

from __future__ import annotations

import os
from collections.abc import Sequence

TAIL_BYTES = 4096


def open_outputs(directory: str, workers: int) -> list[str]:
    """The files that the workers of the next EXEC append to: they are there already, and empty, after silent ones."""
    logs = os.path.join(directory, "logs")
    if not os.path.isdir(logs):
        os.mkdir(logs)
    return [os.path.join(logs, f"worker-{worker}") for worker in range(workers)]


def keep_outputs(outputs: Sequence[str], trial: int) -> list[str | None]:
    """Where each worker's output of this trial is now; None for those that printed nothing."""
    return [_keep(output, trial, worker) for worker, output in enumerate(outputs)]


def drop_outputs(directory: str) -> None:
    """Remove the empty files, after a test."""
    logs = os.path.join(directory, "logs")
    for name in os.listdir(logs) if os.path.isdir(logs) else ():
        path = os.path.join(logs, name)
        if name.startswith("worker-") and os.stat(path).st_size == 0:
            os.unlink(path)


def tail(output: str | None, most: int = TAIL_BYTES) -> str:
    """The end of an output, as text."""
    if output is None:
        return ""
    with open(output, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read().decode("utf-8", "replace")


def _keep(output: str, trial: int, worker: int) -> str | None:
    try:
        if os.stat(output).st_size == 0:
            return None
    except FileNotFoundError:  # it was never started
        return None
    kept = os.path.join(os.path.dirname(output), f"{trial:04d}-{worker}.log")
    if not os.path.exists(kept):
        os.rename(output, kept)
        return kept
    with open(output, "rb") as more, open(kept, "ab") as file:  # the trial's second EXEC
        while chunk := more.read(1 << 20):
            file.write(chunk)
    os.unlink(output)
    return kept
