"""Results for Conbench's /api/benchmark-results/: a list, each item one metric of one test.

The fields are those of its create schema, and of benchadapt's BenchmarkResult. It knows the units B/s, s, ns and i/s.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

from etude.export.document import Document, Exported, NotExported, Point, Run, omit_point, one_line
from etude.store.entry import Machine
from etude.version import __version__

_UNITS = {"s": "s", "B/s": "B/s", "1/s": "i/s"}
_FACTS = {
    "architecture_name": "architecture",
    "cpu_model_name": "processor",
    "kernel_name": "kernel",
}
_NUMBERS = (
    "cpu_core_count",
    "cpu_thread_count",
    "cpu_frequency_max_hz",
    "cpu_l1d_cache_bytes",
    "cpu_l1i_cache_bytes",
    "cpu_l2_cache_bytes",
    "cpu_l3_cache_bytes",
    "gpu_count",
    "memory_bytes",
)
_CACHES = {"L1 data": "l1d", "L1 instruction": "l1i", "L2 unified": "l2", "L3 unified": "l3"}


def write(document: Document) -> Exported:
    """Its server computes means and quartiles itself, from `data`; a test without a kept trial is an `error`."""
    results, left_out = [], list[NotExported]()
    for point in document.points:
        if point.unit not in _UNITS:
            left_out.append(omit_point(point, f"Conbench has no unit {point.unit}"))
        elif point.figures is not None and not point.values:
            left_out.append(omit_point(point, "no value of a single trial is known"))
        elif point.run.measured is None:
            left_out.append(omit_point(point, "the time of measuring is not recorded"))
        else:
            results.append(_result(document, point))
    return Exported(json.dumps(results, indent=1, ensure_ascii=False) + "\n", tuple(left_out))


def _result(document: Document, point: Point) -> dict[str, Any]:
    run = point.run
    assert run.measured is not None
    result: dict[str, Any] = {
        "run_id": _digest(run),
        "batch_id": _digest(run),
        "run_name": f"{document.reason or 'etude'}: {run.commit or run.source}",
        "run_reason": document.reason or "etude",
        "timestamp": run.measured.isoformat(),
        "tags": _tags(point),
        "info": {"etude_version": __version__, "source": one_line(run.source)}
        | ({"tags": one_line(",".join(run.tags))} if run.tags else {}),
        "context": {"benchmark_language": "etude"},
        "machine_info": _machine(run.machine),
    }
    if point.known:
        stats = {"data": list(point.known), "unit": _UNITS[point.unit], "iterations": 1}
        result["stats"] = stats | {"times": [], "time_unit": "s"}
    else:
        result["error"] = {"reason": point.reason or "no trial was kept"}
    if document.repository and run.commit:
        result["github"] = {"repository": document.repository, "commit": run.commit}
        result["github"] |= {"branch": run.branch} if run.branch and ":" in run.branch else {}
    return result


def _tags(point: Point) -> dict[str, str]:
    """Tags of the case, the metric among them, since a case has one series of numbers."""
    tags = {one_line(name): one_line(value) for name, value in point.parameters}
    return tags | {"name": one_line(point.test), "metric": one_line(point.metric)}


def _digest(run: Run) -> str:
    """The same for all results of a run, whenever it is exported."""
    words = (run.source, str(run.measured), run.machine.name if run.machine else "", run.commit or "")
    return hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:32]


def _machine(machine: Machine | None) -> dict[str, Any]:
    """All members that it demands, as text; "0" is its own word for a number that is not known."""
    facts = dict(machine.facts) if machine else {}
    numbers = dict.fromkeys(_NUMBERS, "0") | {"cpu_thread_count": _count(facts.get("cores"))}
    numbers |= {
        "cpu_core_count": numbers["cpu_thread_count"],
        "memory_bytes": _memory(facts.get("memory", "")),
    }
    for cache in facts.get("caches", "").split(", "):
        if match := re.fullmatch(r"(L\d \w+) (\d+) KiB", cache):
            name = _CACHES.get(match[1])
            numbers |= {f"cpu_{name}_cache_bytes": str(int(match[2]) * 1024)} if name else {}
    named = {member: facts.get(fact, "") for member, fact in _FACTS.items()}
    known = {
        "name": machine.name if machine else "unknown",
        "os_name": "Linux",
        "os_version": facts.get("kernel", ""),
    }
    return {**known, **named, **numbers, "gpu_product_names": []}


def _count(text: str | None) -> str:
    return text if text is not None and text.isdecimal() else "0"


def _memory(text: str) -> str:
    match = re.fullmatch(r"([\d.]+) GiB", text)
    return str(math.floor(float(match[1]) * 2**30)) if match else "0"
