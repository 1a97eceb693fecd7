"""Output of workers: one file each, stored as `logs/TRIAL-WORKER.log` if it is not empty."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

TAIL_BYTES = 4096


class Output(NamedTuple):
    """Output of a worker during one EXEC."""

    path: str
    """Log of its trial."""
    begin: int
    """Offset of the EXEC's part, bytes. Earlier bytes are of earlier EXECs."""


def open_outputs(directory: str, workers: int) -> list[str]:
    """The empty files that the workers of the next EXEC append to.

    Output that a killed session has left is renamed to `interrupted-WORKER.log`: it is of another command.
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
    """Output of each worker in this EXEC, after renaming; None for those without output."""
    return [_keep(output, trial, worker) for worker, output in enumerate(outputs)]


def drop_outputs(directory: str) -> None:
    """Remove the empty files, after a test."""
    logs = os.path.join(directory, "logs")
    for name in os.listdir(logs) if os.path.isdir(logs) else ():
        path = os.path.join(logs, name)
        if name.startswith("worker-") and os.stat(path).st_size == 0:
            os.unlink(path)


def tail(output: Output | None, most: int = TAIL_BYTES) -> str:
    """The end of an output, as text: whole lines if it was cut."""
    if output is None:
        return ""
    with open(output.path, "rb") as file:
        begin = max(output.begin, os.fstat(file.fileno()).st_size - most)
        file.seek(begin)
        text = file.read()
    return (text if begin == output.begin else after_cut(text)).decode("utf-8", "replace")


def after_cut(text: bytes) -> bytes:
    """The text after the first, truncated line; all of it if there is only one line."""
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
