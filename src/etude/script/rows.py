"""Output files of workers, and the rows of one EXEC: from the engine's rows and the workers' logs and output."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from etude.experiment.output_metric import METRIC_BYTES, OutputMetric, printed_metric
from etude.results.blocks import Block
from etude.results.model import from_line, metric_kind
from etude.results.res import parse_blocks, row_of_block
from etude.results.windows import NewWindows
from etude.script.state import OF_OUTPUT, RunningTest

MAX_LOG_BYTES = 64 << 20


def read_log(path: str) -> list[Block]:
    """The blocks that a worker wrote to its $APLOG, which is then removed; empty without a file."""
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    os.unlink(path)
    return [block for block in parse_blocks(text) if block.name]


def accepted_rows(rows: Sequence[dict[str, Any]], statuses: Sequence[int]) -> None:
    """Replace exit statuses of ACCEPT by 0 in these rows, and record them as `accepted`."""
    for row in rows:
        if row["exit_status"] in statuses:
            row["exit_status"], row["accepted"] = 0, row["exit_status"]


def rows_of(
    engine_rows: Sequence[Mapping[str, Any]],
    logs: Sequence[Sequence[Block]],
    printed: Sequence[Sequence[OutputMetric]],
    windows: Sequence[NewWindows],
    command: list[str],
    notes: Sequence[str],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of one EXEC, and the blocks that are no measurements.

    A worker whose script measured commands itself has a row for each of them, and none for the script as a whole; its
    windows, and metrics of the whole trial, are in the first row.
    """
    rows: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []
    partial = partial_notes(printed)
    for worker, (engine_row, log) in enumerate(zip(engine_rows, logs, strict=True)):
        measured = [block for block in log if block.name == "measurement"]
        own, problems = _own_rows(measured, engine_row, worker)
        if not own:
            own = [dict(engine_row) | {"worker": worker, "command": command}]
        elif worker == 0:
            own[0]["metrics"] |= _of_the_trial(engine_row["metrics"])
        own[0]["metrics"] = dict(own[0]["metrics"]) | {found.name: found.value for found in printed[worker]}
        if windows[worker].windows:
            own[0]["windows"] = windows[worker].windows
        problems += [note for note in (windows[worker].note, *(p.note for p in printed[worker])) if note]
        said = [*(engine_row.get("notes") or ()), *problems, *((*notes, *partial) if worker == 0 else ())]
        if said:
            own[0]["notes"] = said
        rows += own
        blocks += [
            {"worker": worker, "name": block.name, "lines": list(block.lines)}
            for block in log
            if block.name != "measurement"
        ]
    return rows, blocks


def _own_rows(
    blocks: Sequence[Block], engine_row: Mapping[str, Any], worker: int
) -> tuple[list[dict[str, Any]], list[str]]:
    rows, problems = [], []
    for block in blocks:
        row = row_of_block(block)
        if isinstance(row, str):
            problems.append(f"a block of $APLOG was left out: {row}")
            continue
        ending = {name: engine_row[name] for name in ("timed_out", "cancelled", "error")}
        rows.append({**ending, "inner": 1, **row, "worker": worker})
    return rows, problems


def _of_the_trial(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metrics.items() if metric_kind(name, value[1]).join == "first"}


def why_failed(
    test: RunningTest, rows: Sequence[Mapping[str, Any]], outputs: Sequence[Output | None]
) -> str | None:
    """Reason why an EXEC failed: the engine's, then the first worker with a status other than 0; None
    if it succeeded."""
    of = f"test {test.name!r}, trial {test.trial}"
    barrier = any("barrier" in note for row in rows for note in row.get("notes") or ())
    early = ", before all workers had reached the barrier" if barrier else ""
    for worker, row in enumerate(rows):
        measurement = from_line(row)
        if measurement.failed and not (measurement.cancelled and len(rows) > 1):
            which = f", thread {worker + 1}" if len(rows) > 1 else ""
            return f"{of}{which}: {measurement.ending_here()}{early}{_last_line(outputs[worker])}"
    if barrier:
        return f"{of}: a worker ended{early}"
    return f"{of}: ended with the experiment" if any(row["cancelled"] for row in rows) else None


def _last_line(output: Output | None) -> str:
    lines = tail(output).strip().splitlines()
    return f": {lines[-1].strip()}" if lines else ""


def printed_metrics(metrics: Sequence[Sequence[str]], output: Output | None) -> list[OutputMetric]:
    """Values of METRICs in a worker's output; those of other commands are found after the trial."""
    text = tail(output, METRIC_BYTES) if metrics else ""
    return [
        printed_metric(name, unit, regex, text, *join[:1])
        for name, unit, regex, *join in (metric for metric in metrics if len(metric) <= OF_OUTPUT)
    ]


def partial_notes(printed: Sequence[Sequence[OutputMetric]]) -> list[str]:
    """Notes on METRICs that only some workers printed: the joined value is of those alone."""
    notes = []
    for found in zip(*printed, strict=True):
        without = [each.value[0] is None for each in found]
        if any(without) and not all(without):
            first = without.index(True)
            why = found[first].value[2]
            count = f"{sum(without)} of {len(found)} workers"
            notes.append(f"METRIC {found[0].name}: {count} have no value, thread {first + 1} first ({why})")
    return notes


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
