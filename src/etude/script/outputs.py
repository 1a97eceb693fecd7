"""What workers print: a file each, kept as `logs/TRIAL-WORKER.log` where there is anything in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

TAIL_BYTES = 4096


class Output(NamedTuple):
    """What a worker printed during one EXEC."""

    path: str
    """The log of its trial."""
    begin: int
    """Where the EXEC's part begins, bytes. What stands before it is of earlier EXECs."""


def open_outputs(directory: str, workers: int) -> list[str]:
    """The empty files that the workers of the next EXEC append to.

    What a killed session has left in one is kept as `interrupted-WORKER.log`: it is of another command.
    """
    logs = os.path.join(directory, "logs")
    if not os.path.isdir(logs):
        os.mkdir(logs)
    outputs = [os.path.join(logs, f"worker-{worker}") for worker in range(workers)]
    for worker, output in enumerate(outputs):
        if os.path.exists(output) and os.stat(output).st_size > 0:
            os.rename(output, os.path.join(logs, f"interrupted-{worker}.log"))
    return outputs


def keep_outputs(outputs: Sequence[str], trial: int) -> list[Output | None]:
    """Where each worker's output of this EXEC is now; None for those that printed nothing."""
    return [_keep(output, trial, worker) for worker, output in enumerate(outputs)]


def drop_outputs(directory: str) -> None:
    """Remove the empty files, after a test."""
    logs = os.path.join(directory, "logs")
    for name in os.listdir(logs) if os.path.isdir(logs) else ():
        path = os.path.join(logs, name)
        if name.startswith("worker-") and os.stat(path).st_size == 0:
            os.unlink(path)


def tail(output: Output | None, most: int = TAIL_BYTES) -> str:
    """The end of an output, as text: whole lines where it was cut."""
    if output is None:
        return ""
    with open(output.path, "rb") as file:
        begin = max(output.begin, os.fstat(file.fileno()).st_size - most)
        file.seek(begin)
        text = file.read()
    return (text if begin == output.begin else after_cut(text)).decode("utf-8", "replace")


def after_cut(text: bytes) -> bytes:
    """What follows the first line, of which the beginning is missing; all where there is one line."""
    return text.partition(b"\n")[2] or text


def _keep(output: str, trial: int, worker: int) -> Output | None:
    try:
        if os.stat(output).st_size == 0:
            return None
    except FileNotFoundError:  # it was never started
        return None
    kept = os.path.join(os.path.dirname(output), f"{trial:04d}-{worker}.log")
    if not os.path.exists(kept):
        os.rename(output, kept)
        return Output(kept, 0)
    begin = os.stat(kept).st_size
    with open(output, "rb") as more, open(kept, "ab") as file:  # the trial's second EXEC
        while chunk := more.read(1 << 20):
            file.write(chunk)
    os.unlink(output)
    return Output(kept, begin)
