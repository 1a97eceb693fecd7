"""hyperfine's exports: JSON of versions 1 (lists of times) and 2 (a measurement per run), CSV, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.source import (
    UNFITTING,
    csv_rows,
    head_of,
    items,
    members,
    number,
    read_json,
    text_of,
    whole,
)
from etude.results.table import Quantity, Rows, Summaries, Table
from etude.units.parsing import BYTE, ONE, SECOND, TIME, number_in, unit_of

NAME = "hyperfine"

_METRICS = {
    "time_wall_clock": "elapsed",
    "time_user": "user",
    "time_system": "system",
    "peak_memory_usage": "peak_memory",
    "memory_peak_resident": "peak_memory",
}
_FIGURES = {"mean": "mean", "stddev": "deviation", "median": "median", "min": "minimum", "max": "maximum"}


_CSV = "command,mean,stddev,median,user,system,min,max"
_MARKDOWN = re.compile(r"\| Command \| Mean \[(?P<unit>\w+)\] \| Min \[\w+\] \| Max \[\w+\] \|(?P<more>.*)")
_CELL = re.compile(r"(?<!\\)\|")


def detect(path: Path, head: bytes) -> bool:
    first = head.lstrip()[:200].decode("utf-8", "replace").partition("\n")[0].rstrip("\r")
    return (
        first.startswith(_CSV)
        or _MARKDOWN.fullmatch(first) is not None
        or (
            head.lstrip().startswith(b"{")
            and b'"results"' in head
            and b'"command"' in head
            and any(name in head for name in (b'"times"', b'"measurements"', b'"stddev"', b'"exit_codes"'))
            and b'"commit_hash"' not in head
        )
    )


def read(path: Path) -> Table:
    if not head_of(path).lstrip().startswith(b"{"):
        return _exported(path)
    results = members(read_json(path)).get("results")
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise InputError(f"{path}: is not what hyperfine exports: expected a list of results")
    if not any(items(r.get("times")) or items(r.get("measurements")) for r in results):
        return _summaries(path, results)
    rows = Rows(path)
    for result in results:
        command = text_of(result.get("command", ""))
        parameters = _parameters(result)
        runs = list(_runs(rows, result))
        for metrics, status in runs:
            failed = status not in (0, None)
            rows.add(command, metrics, command=command, status=status, kept=not failed, parameters=parameters)
            if failed:
                rows.warn(f"{command}: a run ended with status {status} and is not kept")
        if not runs:
            rows.warn(f"{command}: has no single times, and is left out")
    return rows.table()


def _runs(rows: Rows, result: Mapping[str, Any]) -> Iterator[tuple[dict[str, Quantity], int | None]]:
    measured = items(result.get("measurements"))
    for run in map(members, measured):
        yield {_METRICS.get(name, name): q for name, q in _quantities(run)}, whole(run.get("exit_code"))
    if measured:
        return
    times, memory = items(result.get("times")), items(result.get("memory_usage_byte"))
    codes = items(result.get("exit_codes"))
    if times and ("user" in result or "system" in result):
        rows.warn("user and system time are there as means over all runs only, and are left out")
    for index, time in enumerate(times):
        metrics = {"elapsed": Quantity(number(time), SECOND)}
        if index < len(memory):
            metrics["peak_memory"] = Quantity(number(memory[index]), BYTE)
        yield metrics, whole(codes[index]) if index < len(codes) else None


def _quantities(run: Mapping[str, Any]) -> Iterator[tuple[str, Quantity]]:
    for name, quantity in run.items():
        if isinstance(quantity, dict) and "value" in quantity:
            named = str(quantity.get("unit", "1"))
            yield name, Quantity(number(quantity["value"]), unit_of(named) or ONE._replace(base=named))


def _parameters(result: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: text_of(value["value"] if isinstance(value, dict) and "value" in value else value)
        for name, value in members(result.get("parameters")).items()
    }


def _summaries(path: Path, results: list[Any]) -> Table:
    rows = Summaries(path)
    rows.warn("holds no single times, only what hyperfine made of them")
    for result in results:
        command, parameters = text_of(result.get("command", "")), _parameters(result)
        count = len(items(result.get("exit_codes"))) or None
        figures = {ours: number(result.get(theirs)) for theirs, ours in _FIGURES.items()}
        if figures["mean"] is not None:
            rows.add(command, "elapsed", SECOND, figures, count=count, parameters=parameters)
        for metric in ("user", "system"):
            mean = number(result.get(metric))
            if mean is not None:
                rows.add(command, metric, SECOND, {"mean": mean}, count=count, parameters=parameters)
    return rows.table()


def _exported(path: Path) -> Table:
    """CSV and Markdown: one line per command, with summaries only."""
    rows = Summaries(path)
    lines = rows.lines()
    if lines and lines[0].startswith(_CSV):
        _of_csv(rows, lines)
    else:
        _of_markdown(rows, lines)
    if len(rows):
        rows.warn("holds no single times (--export-json does), only what hyperfine made of them")
    return rows.table()


def _of_csv(rows: Summaries, lines: list[str]) -> None:
    """Add the rows of the CSV; always in seconds, whatever unit was shown."""
    header, *rest = csv_rows(rows.path, lines)
    for cells in rest:
        if len(cells) != len(header):
            rows.warn(UNFITTING)
            continue
        row = dict(zip(header, cells, strict=True))
        parameters = {n.removeprefix("parameter_"): t for n, t in row.items() if n.startswith("parameter_")}
        figures = {ours: number_in(row.get(theirs, "")) for theirs, ours in _FIGURES.items()}
        for metric, known in (
            ("elapsed", figures),
            ("user", {"mean": number_in(row["user"])}),
            ("system", {"mean": number_in(row["system"])}),
        ):
            if known["mean"] is None:
                rows.warn(f"{row['command']}: its mean of {metric} is no number, and is left out")
            else:
                rows.add(row["command"], metric, SECOND, known, parameters=parameters)


def _of_markdown(rows: Summaries, lines: list[str]) -> None:
    """`12.3 ± 0.4` is mean and deviation; a bar in a command is written with a backslash."""
    heading = next((match for line in lines if (match := _MARKDOWN.fullmatch(line))), None)
    unit = TIME.get(heading["unit"]) if heading else None
    for line in lines:
        cells = [cell.strip() for cell in _CELL.split(line)]
        command = cells[1] if len(cells) >= 6 else ""
        if unit is None or len(command) < 2 or not command.startswith("`") or not command.endswith("`"):
            continue
        mean, _, deviation = cells[2].partition("±")
        figures = {"mean": number_in(mean), "deviation": number_in(deviation)}
        figures |= {"minimum": number_in(cells[3]), "maximum": number_in(cells[4])}
        if figures["mean"] is None:
            rows.warn(f"{command[1:-1]}: its mean is no number, and it is left out")
        else:
            rows.add(command[1:-1].replace("\\|", "|"), "elapsed", unit, figures)
    if len(rows):
        rows.warn("times in Markdown are rounded")
