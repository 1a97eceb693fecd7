"""Which reader reads which input, and what of it is held: the one place that names the readers.

A reader that is moved or renamed is named anew here; no golden file changes. Each function takes the input's path and
returns data that `plain` can take.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from etude.analysis.load_subject import Summaries, read_subject
from etude.analysis.subject import subject_of
from etude.analysis.warnings import work_warnings
from etude.cluster.pool.journal import Journal
from etude.errors import EtudeError
from etude.history.backtest import read_rules
from etude.iolab.points import swept_of
from etude.iotrace.reader import read_trace
from etude.peak.harnesses.spec import read_harness
from etude.peak.search_store import SearchStore
from etude.present.sentences.result_notes import note_text
from etude.present.sentences.warnings import advice, found_text
from etude.results.blocks import read_blocks
from etude.results.bundle import open_bundle, verify
from etude.results.columns import read_columns
from etude.results.engine_reports import read_report
from etude.results.histograms import decode
from etude.results.monitor import load as load_monitor
from etude.results.reader import load_results
from etude.results.readers import formats_of, read_table
from etude.script.checkpoint import load as load_state
from etude.script.parse import parse_script
from etude.store.database import open_store
from etude.surface.map_store import MapStore, surface_result_of
from etude.surface.spec import read_spec
from golden.plain import plain

Read = Callable[[Path], Any]


def results(path: Path) -> Any:
    """All of a results directory: its document as far as it is looked at, lines, columns, blocks, the monitor."""
    found = load_results(path)
    document = {
        name: each for name, each in found.experiment.items() if name not in ("machine", "plan", "metrics")
    }
    tests = found.experiment["tests"]
    told = {
        "experiment": document,
        "torn": found.torn,
        "measurements": {name: folded(rows) for name, rows in found.measurements.items()},
        "frame": {name: str(kind) for name, kind in found.frame().schema.items()},
        "columns": attempted(columns, path),
        "tests": attempted(judged, path),
    }
    if path.is_dir():
        told["blocks"] = {t["name"]: read_blocks(path / t["directory"] / "blocks.jsonl") for t in tests}
        told["monitor"] = [load_monitor(path, sitting["sitting"]) for sitting in found.experiment["sittings"]]
    return told


def attempted(read: Read, path: Path) -> Any:
    """What is read, or why it is refused."""
    try:
        return read(path)
    except EtudeError as error:
        return {"refused": str(error), "exit code": error.exit_code}


def judged(path: Path) -> Any:
    """The tests as verdicts are passed on them."""
    found = read_subject(str(path))
    if isinstance(found, Summaries):
        return {"summaries": found.rows}
    told = {
        "primary": found.asked.primary,
        "groups": found.asked.groups,
        "work": [
            found_text(each) + (f": {advice(each)}" if difference.between else "")
            for difference, each in zip(found.work, work_warnings(found.work), strict=True)
        ],
        "notes": tuple(map(note_text, found.notes)),
    }
    series = {"tests": found.tests, "again": found.twins, "shell": [found.shell] if found.shell else []}
    return told | {role: {each.test: series_members(each) for each in many} for role, many in series.items()}


def series_members(series: Any) -> dict[str, Any]:
    """One test, without what stands in its lines as it is."""
    columns = {name: [c.unit, c.kind, c.reason, c.values.tolist()] for name, c in series.columns.items()}
    names = (
        "trials",
        "kept",
        "blocks",
        "sittings",
        "stretches",
        "why",
        "failures",
        "inner",
        "parameters",
        "spans",
    )
    members = {name: getattr(series, name) for name in names}
    known = {name: each.tolist() if hasattr(each, "tolist") else each for name, each in members.items()}
    return {"columns": columns} | {name: each for name, each in known.items() if each is not None}


def columns(path: Path) -> Any:
    """What the engine makes of many lines: sums, for the lines themselves are held already."""
    if not path.is_dir():
        return None
    found = read_columns(path)
    metrics = {
        name: [m.unit, m.kind, int(np.isfinite(m.values).sum()), float(np.nansum(m.values)), m.reasons]
        for name, m in found.metrics.items()
    }
    trials = found.trial, found.block, found.worker, found.sitting, found.status, found.flags
    return {"metrics": metrics, "warnings": found.warnings, "trials": [t.tolist() for t in trials]}


def folded(rows: Iterable[Any]) -> dict[str, Any]:
    """Rows as columns; of a member that is the same in all rows its value once, of nulls the names."""
    lines = [plain(row) for row in rows]
    metrics = dict.fromkeys(name for line in lines for name in line.get("metrics", ()))
    for line in lines:
        line |= {f"metric {name}": line["metrics"].get(name) for name in metrics}
        line.pop("metrics", None)
    found: dict[str, Any] = {"lines": len(lines)}
    for name in lines[0] if lines else ():
        values = [line[name] for line in lines]
        same = all(json.dumps(value) == json.dumps(values[0]) for value in values)
        found[name] = {"all": values[0]} if same else values
    empty = [name for name, values in found.items() if values == {"all": None}]
    return {name: values for name, values in found.items() if name not in empty} | {"null": empty}


def search(path: Path) -> Any:
    """Of `etude peak`."""
    kept = SearchStore(path)
    trials = [plain(trial) for trial in kept.trials()]
    for trial in trials:
        trial["windows"] = folded(trial["windows"])
    return {"sought": kept.sought, "answer": kept.answer, "trials": trials, "results": results(path)}


def surface(path: Path) -> Any:
    """Of `etude surface`."""
    kept = MapStore(path)
    mapped = surface_result_of(kept)
    told = {
        "charted": {**plain(kept.definition), "space": list(kept.definition.space)},
        "attempts": kept.attempts(),
    }
    told |= {"surrogate": mapped.surrogate, "estimates": [mapped.estimate(cell) for cell in mapped.space]}
    return told | {"results": results(path)}


def sweep(path: Path) -> Any:
    """Of `etude io sweep`."""
    found = swept_of(subject_of(load_results(path)))
    return {"swept": found, "results": results(path)}


def table(path: Path) -> Any:
    """A file of any format, as the table of measurements, and as the tests that are judged."""
    return {"formats": formats_of(path), "table": rows_of(path), "tests": judged(path)}


def rows_of(path: Path) -> Any:
    """The table, with its attributes where it has some."""
    found = plain(read_table(path))
    if not found["attributes"]:
        del found["attributes"]
    return found


def res(path: Path) -> Any:
    """A file in Auto-pilot's format."""
    return {"table": rows_of(path), "results": results(path)}


def trace(path: Path) -> Any:
    """A recording: every call, with its texts; of one that is cut short what is there."""
    found = read_trace(path, partial=True)
    calls = {
        "start_ns": found.start_ns,
        "duration_ns": found.duration_ns,
        "result": found.result,
        "thread": found.thread,
        "call": [found.names[code] for code in found.call],
        "texts": [[found.text(int(code)) for code in codes] for codes in zip(*found.texts, strict=True)],
        "arguments": np.column_stack(found.arguments),
    }
    more = {"header": found.header, "meta": found.meta, "footer": found.footer, "partial": found.partial}
    return {**calls, **more}


def script(path: Path) -> Any:
    """A script in the Auto-pilot language."""
    program = parse_script(path, [path.parent])
    listed = [f"{i.op} {i.text} {Path(i.file).name}:{i.line} {i.target}" for i in program.instructions]
    return {"instructions": listed, "files": [Path(file).name for file in program.lines]}


def store(path: Path) -> Any:
    """All that is asked of one."""
    with open_store(path) as found:
        tests = {test: found.metrics(test) for test in found.tests()}
        told = {"results": found.results(), "tests": tests, "wrong": found.check()}
        return told if told["wrong"] else told | {"entries": found.entries(), "marks": found.marks()}


def bundle(path: Path) -> Any:
    """Its results directories, if it is whole."""
    problems = verify(path)
    if problems:
        return {"problems": problems}
    with open_bundle(path) as directories:
        return {"problems": problems, "results": {d.name: results(d) for d in directories}}


def state(path: Path) -> Any:
    """Of a script that was stopped."""
    path.chmod(0o600)
    return load_state(path)


def journal(path: Path) -> Any:
    """Jobs of a pool, from the directory that has them."""
    found = Journal(path)
    return {"jobs": found.jobs, "torn": found.torn}


def histograms(path: Path) -> Any:
    """Latencies of `etude load`, a window a line."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [decode(line["latency"]) for line in lines if line.get("latency")]


def harness(path: Path) -> Any:
    """A HARNESS.toml, but for the functions that it becomes."""
    found = read_harness(path)
    names = ("name", "task", "text", "unit", "generator", "factors", "window_s", "nodes")
    return {name: getattr(found, name) for name in names}


READERS: Mapping[str, Read] = {
    "bench/*": results,
    "run/*": results,
    "pools/*": journal,
    "peak/*": search,
    "surface/*": surface,
    "io/*": sweep,
    "readers/*": table,
    "tables/*.csv": table,
    "tables/*.res": res,
    "postmark/*.res": res,
    "autopilot/*.res": res,
    "autopilot/*.ap": script,
    "states/*": state,
    "traces/*": trace,
    "stores/*": store,
    "bundles/*": bundle,
    "load/*": histograms,
    "replays/*": read_report,
    "specs/*.rules.toml": read_rules,
    "specs/*.harness.toml": harness,
    "specs/*.surface.toml": read_spec,
}
"""By patterns of inputs' names; what none fits is read by the engine alone, whose verbs are in calls.py."""


def reader_of(name: str) -> Read | None:
    return next((read for pattern, read in READERS.items() if fnmatch(name, pattern)), None)
