"""Auto-pilot's results format: blocks of text; `[measurement]` holds one `name = value` per line.

Its rules are in docs/reference/formats.md, "Auto-pilot's results files". Scripts and hooks append blocks of their
own, and blocks may be truncated, so reading raises no errors here.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.blocks import Block
from etude.results.model import METRICS, Measurement, MetricValue, from_line
from etude.results.regular import read_regular
from etude.results.results import FORMAT, VERSION, Results
from etude.results.shell_words import escaped, from_one_line, join_words, one_line, split_words
from etude.results.trial_join import JOINS, join_in_row
from etude.results.writer import directory_name

MEASUREMENT = "measurement"

_HEADER = re.compile(r"\[([A-Za-z0-9_.:+-]+)\]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_METRIC = re.compile(rf"({_NUMBER.pattern}|null)(?:\s+(\$'(?:[^'\\]|\\.)*'|\S+))?(?:\s+(.*))?", re.DOTALL)
_WHOLE = re.compile(r"[0-9]{1,18}")
_COUNT = re.compile(r"[0-9]{1,9}")
_NAME = re.compile(r"[A-Za-z_][\w.:%+/-]*")

# Auto-pilot's name of a metric, and ours.
_THEIRS = {"sys": "system"}
_TIMES = ("user", "system", "elapsed")
_COUNTS = ("thread", "epoch", "status", "signal")
_ENDINGS = ("timed_out", "cancelled", "error", "set_aside")
_OTHERS = (*_COUNTS, "accepted", "command", "start", "start_ns", "inner", *_ENDINGS)


def parse_blocks(text: str) -> list[Block]:
    """The blocks of a text. Text before the first header is a block without a name.

    A header is a word in brackets that has its line to itself and begins in the first column.
    """
    *lines, last = text.split("\n")
    cut = last != ""
    lines += [last] if cut else []
    blocks: list[Block] = []
    name, first, inside = "", 1, list[str]()
    for number, line in enumerate((line.rstrip("\r") for line in lines), 1):
        header = _HEADER.fullmatch(line)
        if header is None:
            inside.append(line)
            continue
        if name or inside:
            blocks.append(Block(name, tuple(inside), first))
        name, first, inside = header[1], number, []
    if name or inside:
        blocks.append(Block(name, tuple(inside), first, cut))
    return blocks


def fields(block: Block) -> dict[str, str]:
    """The `name = value` lines of a block; of two with one name the first counts, other lines are ignored.

    A value may contain ` = `. An unterminated last line is ignored, since its value may be truncated; but a status is
    accepted.
    """
    found: dict[str, str] = {}
    for place, line in enumerate(block.lines, 1):
        name, equals, value = line.partition(" = ")
        is_cut = block.cut and place == len(block.lines) and name.strip() != "status"
        if equals and not is_cut:
            found.setdefault(name.strip(), value)
    return found


def metric_of(text: str, unit: str = "1") -> list[Any] | None:
    """`12.5 B` as [12.5, "B"], `null B why not` as [None, "B", "why not"], anything else as None.

    `unit` is that of a number without one.
    """
    match = _METRIC.fullmatch(text.strip())
    if match is None or (match[1] != "null" and match[3] not in (None, *JOINS)):
        return None
    stated = unit if match[2] is None else from_one_line(match[2])
    if match[1] == "null":
        return [None, stated, from_one_line(match[3] or "no reason given")]
    value = _number(match[1])
    return None if value is None else [value, stated, *([match[3]] if match[3] else [])]


def row_of_block(block: Block) -> dict[str, Any] | str:
    """Members of a measurement from a `[measurement]` block; or one line with the reason why it is unusable.

    `worker` counts from 0 (a thread from 1) and is 0 without a thread; `trial` is None without an epoch.
    """
    found = fields(block)
    if not found.get("status", "").strip():
        return "was cut short: it has no status"
    counts = {name: found[name].strip() for name in _COUNTS if name in found}
    for name, value in counts.items():
        if _COUNT.fullmatch(value) is None and (name, value) != ("status", "null"):
            return f"its {name} is no number: {_short(value)}"
    thread, epoch, status, signal = (_whole(counts.get(name)) for name in _COUNTS)
    if thread == 0:
        return "its thread is 0: threads count from 1"
    metrics = _metrics(found)
    wrong = next(
        (name for name in (*_TIMES, "sys") if name in found and _THEIRS.get(name, name) not in metrics), None
    )
    if wrong is not None:
        return f"its {wrong} is no number: {_short(found[wrong])}"
    by_signal = signal is not None and status == 128 + signal  # the shell's convention
    return {
        "worker": 0 if thread is None else thread - 1,
        "trial": epoch,
        **_command(found.get("command", "").strip()),
        "start": _text(found, "start"),
        "start_ns": _whole(found.get("start_ns")),
        "inner": _whole(found.get("inner")) or 1,
        "exit_status": None if by_signal else status,
        "signal": signal,
        "accepted": _whole(found.get("accepted")),
        "timed_out": found.get("timed_out") == "yes",
        "cancelled": found.get("cancelled") == "yes",
        "error": _text(found, "error"),
        "kept": "set_aside" not in found,
        "why": _text(found, "set_aside"),
        "metrics": metrics,
    }


def format_block(block: Block) -> str:
    """The block as text. Invalid characters of a header become `-`; a line that looks like one is indented
    by a blank."""
    header = [f"[{re.sub(r'[^A-Za-z0-9_.:+-]+', '-', block.name)}]"] if block.name else []
    lines = [line.rstrip("\r") for each in block.lines for line in each.split("\n")]
    lines = [f" {line}" if _HEADER.fullmatch(line) else line for line in lines]
    return "".join(f"{line}\n" for line in (*header, *lines))


def format_measurement(measurement: Measurement) -> str:
    """A `[measurement]` block, which `row_of_block` reads back with the same values."""
    return f"[{MEASUREMENT}]\n" + "".join([f"{name} = {value}\n" for name, value in _fields_of(measurement)])


def format_snapshot(machine: Mapping[str, Any]) -> str:
    """The parts of a snapshot of the machine, one block each; nested members get names with dots."""
    text = ""
    for name, part in machine.items():
        lines = tuple(f"{key} = {value}" for key, value in _flat("", part))
        text += format_block(Block(name, lines))
    return text


def _number(text: str) -> float | None:
    """The finite number in the text, as int if it is written so."""
    if re.fullmatch(r"[+-]?[0-9]{1,19}", text) and abs(int(text)) < 2**63:
        return int(text)
    value = float(text)
    return value if math.isfinite(value) else None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and _WHOLE.fullmatch(text.strip()) else None


def _text(found: Mapping[str, str], name: str) -> str | None:
    return from_one_line(found[name]) if name in found else None


def _command(text: str) -> dict[str, Any]:
    """Its words; and the text, if it would be written differently, for selecting by text."""
    words = split_words(text)
    words = [text] if words is None else words
    return {"command": words, "command_text": text if text and join_words(words) != text else None}


def _metrics(found: Mapping[str, str]) -> dict[str, MetricValue]:
    metrics: dict[str, MetricValue] = {}
    for written, value in found.items():
        name = _THEIRS.get(written) or from_one_line(written)
        metric = None if written in _OTHERS else metric_of(value, _own_unit(name))
        if metric is not None:
            metrics.setdefault(name, metric)
    return metrics


def _own_unit(metric: str) -> str:
    kind = METRICS.get(metric)
    return kind.unit if kind else "1"


def _fields_of(m: Measurement) -> Iterator[tuple[str, object]]:
    """Fields in the order of the paper, then additional ones."""
    yield "thread", m.worker + 1
    yield "epoch", m.trial
    yield "command", m.command_line
    for name in _TIMES:
        if name in m.metrics:
            yield "sys" if name == "system" else name, _metric_text(name, m.metrics[name])
    if m.exit_status is not None:
        yield "status", m.exit_status
    else:
        yield "status", "null" if m.signal is None else 128 + m.signal
    if m.signal is not None:
        yield "signal", m.signal
    for name, value in m.metrics.items():
        if name not in _TIMES:
            yield _written(name), _metric_text(name, value)
    yield from _rest_of(m)


def _rest_of(m: Measurement) -> Iterator[tuple[str, object]]:
    if m.start is not None:
        yield "start", one_line(m.start)
    if m.start_ns is not None:
        yield "start_ns", m.start_ns
    if m.inner != 1:
        yield "inner", m.inner
    if m.accepted is not None:
        yield "accepted", m.accepted
    if m.timed_out:
        yield "timed_out", "yes"
    if m.cancelled:
        yield "cancelled", "yes"
    if m.error is not None:
        yield "error", one_line(m.error)
    if not m.kept:
        yield "set_aside", one_line(m.why or "?")


@lru_cache(maxsize=4096)  # the same few, at every trial
def _written(metric: str) -> str:
    plain = _NAME.fullmatch(metric) and metric not in _OTHERS and metric not in _THEIRS
    return metric if plain else escaped(metric)


@lru_cache(maxsize=4096)
def _stated(unit: str) -> str:
    plain = re.fullmatch(r"[^\s$][^\s]*", unit) and not any(c < " " for c in unit)
    return unit if plain else escaped(unit)


def _metric_text(name: str, metric: MetricValue) -> str:
    value, unit, *reason = metric
    if value is None:
        return f"null {_stated(unit)} {one_line(reason[0])}"
    text = _time_text(value) if name in _TIMES else _number_text(value)
    if asked := join_in_row(metric):
        return f"{text} {_stated(unit)} {asked}"
    own = unit == _own_unit(name) and (name in _TIMES or unit == "1")
    return text if own else f"{text} {_stated(unit)}"


def _time_text(seconds: float) -> str:
    """The time with nine decimals, or more if the value has them."""
    text = f"{seconds:.9f}"
    return text if float(text) == seconds else _number_text(seconds)


def _number_text(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for number, inner in enumerate(value):
            yield from _flat(f"{name}.{number}", inner)
    else:
        yield name or "value", _plain_text(value)


def _plain_text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_plain_text, value))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return one_line(str(value)) if str(value) else ""


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")


INCOMPLETE = "incomplete"
"""Reason of exclusion of a trial that lacks a worker or a usable block."""


def read_res(path: str | os.PathLike[str]) -> Results:
    """Read a `.res` file; its test has the name of the file.

    An unusable block is left out and listed in the document's `left_out` (`line`, `reason`); its trial, and any trial
    that lacks a worker, is excluded.

    Raises:
        InputError: it cannot be read, or holds no block at all.
    """
    file = Path(path)
    blocks = parse_blocks(_file_text(file))
    if not any(block.name for block in blocks):
        raise InputError(
            f"{file}: is no results file: expected blocks that begin with a line as [measurement]"
        )
    rows, left_out = _Reading(), list[dict[str, Any]]()
    for block in blocks:
        if block.name == MEASUREMENT:
            reason = rows.add(block)
            left_out += [{"line": block.line, "reason": reason}] if reason else []
    name = file.stem or file.name
    place = {"test": name, "host": "", "boot_id": ""} | _machine(blocks)
    measurements = tuple(from_line(row | place) for row in rows.finished())
    document = _document(name, measurements, place, left_out)
    return Results(file, document, {name: measurements}, (str(file),) if left_out else ())


def _file_text(file: Path) -> str:
    try:
        return read_regular(file).decode("utf-8", "replace")
    except FileNotFoundError:
        raise InputError(f"{file}: no results here: there is no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _machine(blocks: Sequence[Block]) -> dict[str, str]:
    system = next((fields(block) for block in blocks if block.name == "system"), {})
    ours = {"host": system.get("hostname"), "boot_id": system.get("boot_id")}
    return {name: value for name, value in ours.items() if value}


@dataclass
class _Reading:
    """The rows so far. An epoch that is smaller than its predecessor starts another run, appended to the file."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    sitting: int = 1
    before: int = 0
    """Number of trials of earlier runs, added to an epoch."""
    epoch: int = 0
    seen: set[tuple[int, int]] = field(default_factory=set)
    spoilt: set[int] = field(default_factory=set)
    doubtful: set[int] = field(default_factory=set)
    """Trials that may have had the block that is left out: it does not name its trial."""

    def add(self, block: Block) -> str | None:
        """Add a block; returns the reason if it is left out."""
        row = row_of_block(block)
        if isinstance(row, str):
            self._spoil(fields(block).get("epoch", ""))
            return row
        epoch, worker = self.epoch + 1 if row["trial"] is None else row["trial"], row["worker"]
        if epoch < self.epoch and (epoch, worker) in self.seen:
            self.sitting += 1
            self.before = max(row["trial"] for row in self.rows)
            self.seen.clear()
        self.epoch = epoch
        self.seen.add((epoch, worker))
        self.rows.append(row | {"trial": self.before + epoch, "sitting": self.sitting})
        return None

    def _spoil(self, epoch: str) -> None:
        if epoch.strip().isascii() and epoch.strip().isdigit() and len(epoch) < 19:
            self.spoilt.add(self.before + int(epoch))
        else:
            self.doubtful.add(self.before + self.epoch)

    def finished(self) -> list[dict[str, Any]]:
        made = Counter(row["trial"] for row in self.rows)
        workers = Counter(trial for trial, _ in {(row["trial"], row["worker"]) for row in self.rows})
        broken = self.spoilt | {t for t in workers if workers[t] < max(workers.values())}
        broken |= {t for t in self.doubtful if made[t] < max(made.values(), default=0)}
        aside = {row["trial"]: row["why"] for row in reversed(self.rows) if not row["kept"]}
        aside = dict.fromkeys(broken, INCOMPLETE) | aside
        return [
            row
            | {"block": row["trial"], "order": 0}
            | {"kept": row["trial"] not in aside, "why": aside.get(row["trial"])}
            for row in self.rows
        ]


def _document(
    name: str,
    measurements: Sequence[Measurement],
    place: Mapping[str, str],
    left_out: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    test = {
        "name": name,
        "directory": directory_name(name, ()),
        "role": "test",
        "parameters": {},
        "workers": 1 + max((m.worker for m in measurements), default=0),
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "verb": "res",
        "command_line": [],
        "plan": {"kind": "res", "primary": "elapsed", "check_output": "first"},
        "tests": [test],
        "sittings": [
            {
                "sitting": sitting,
                "host": place["host"],
                "boot_id": place["boot_id"],
                "start": None,
                "end": None,
                "how_ended": "complete",
            }
            for sitting in sorted({m.sitting for m in measurements} | {1})
        ],
        "left_out": list(left_out),
    }
