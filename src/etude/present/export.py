"""A verdict for other programs: JSON (docs/formats.md), CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from etude.analysis.comparison import Comparison
from etude.analysis.cross_session import CrossSession, overall
from etude.analysis.subject import ended_in
from etude.analysis.verdict import Verdict, not_compared
from etude.errors import cannot_write
from etude.osutil.named import write_named
from etude.present import text, verdict_text
from etude.present.sentences.result_notes import missing_reason
from etude.present.sentences.status import status_of
from etude.present.sentences.warnings import finding_document, group_text
from etude.present.status_line import status_line
from etude.results.delimited import text_cell
from etude.stats.compare import Ratio
from etude.stats.cross_session import NotSupported
from etude.units.formatting import quantity

FORMAT, VERSION = "etude-verdict", 1
_COLUMNS = (
    "count",
    "mean",
    "low",
    "high",
    "median",
    "median_low",
    "median_high",
    "minimum",
    "maximum",
    "deviation",
)


def write(verdict: Verdict, form: str, path: Path) -> None:
    """Write a verdict to a file.

    Raises:
        MachineRefuses: it cannot be written.
    """
    content = {"csv": to_csv, "json": to_json, "markdown": to_markdown}[form](verdict)
    try:
        write_named(path, (content if content.endswith("\n") else content + "\n").encode("utf-8", "replace"))
    except OSError as error:
        raise cannot_write(path, error) from error


def to_json(verdict: Verdict, across: Sequence[CrossSession] = (), machines: Sequence[str] = ()) -> str:
    """The verdict as one JSON document; with comparisons to a baseline of another session, if there are any.

    machines: a line for each compared result whose machine or settings are others.
    """
    ended = ended_in(verdict.subject.experiment or {})
    document = {
        "format": FORMAT,
        "version": VERSION,
        "results": verdict.subject.label,
        "primary": verdict.primary,
        "judged": list(verdict.judged),
        "status": list(status_of(verdict, across)),
        "warnings": list(map(group_text, verdict.warnings)),
        "findings": list(map(finding_document, verdict.every)),
        "tests": [
            {
                "test": test.test,
                "parameters": dict(test.parameters),
                "made": test.made,
                "kept": test.kept,
                "inner": test.inner,
                "metrics": {m.metric: _metric(m) for m in test.metrics},
                "spent": test.spent and asdict(test.spent),
                **({"ended": ended[test.test]} if test.test in ended else {}),
            }
            for test in verdict.tests
        ],
        "comparisons": [_comparison(c) for c in verdict.comparisons],
        "not_compared": (left := not_compared(verdict)) and asdict(left),
        "across": [_across(a) for a in across],
        "overall": [{"other": label} | asdict(found) for label, found in overall(across)],
        "machines": list(machines),
        "text": verdict_text.verdict_lines(verdict),
    }
    return json.dumps(_finite(document), indent=1, ensure_ascii=False)


def _metric(m: Any) -> dict[str, Any]:
    joined = {"joined": m.joined, "workers": m.workers} if m.joined else {}
    if m.summary is None:
        return {"unit": m.unit, "reason": missing_reason(m), **joined}
    return {
        "unit": m.unit,
        "kind": m.kind,
        "subtracted": m.corrected_s,
        **_figures(m.summary),
        "which": m.summary.which,
        "mean_reason": m.summary.mean_reason or text.interval_reason(m),
        "effective_count": m.summary.effective_count,
        "quartiles": list(m.summary.quartiles),
        "levels": m.levels and asdict(m.levels),
        **joined,
    }


def _comparison(c: Comparison) -> dict[str, Any]:
    ratio = asdict(c.ratio) | {"p": c.ratio.p, "smallest_found": c.ratio.smallest_found()}
    secondary = [asdict(s) | {"p": s.ratio.p} for s in c.secondary]
    return asdict(c) | {
        "ratio": ratio,
        "shift": c.shift and asdict(c.shift) | {"adjusted_p": c.shift_p},
        "secondary": secondary,
        "differs": c.differs,
        "varies": c.varies,
        "within_noise": c.within_noise,
        "opposed": c.opposed,
        "adjusted_p": c.adjusted_p,
    }


def _across(a: CrossSession) -> dict[str, Any]:
    document = asdict(a) | {"refused": isinstance(a.found, NotSupported), "adjusted_p": a.adjusted_p}
    if isinstance(a.found, Ratio):
        document["found"] |= {"p": a.found.p}
    return document


def _figures(summary: Any) -> dict[str, Any]:
    mean, median = summary.mean_interval, summary.median_interval
    return {
        "count": summary.count,
        "mean": summary.mean,
        "low": mean and mean.low,
        "high": mean and mean.high,
        "median": summary.median,
        "median_low": median and median.low,
        "median_high": median and median.high,
        "minimum": summary.minimum,
        "maximum": summary.maximum,
        "deviation": summary.deviation,
    }


def _finite(value: Any) -> Any:
    """JSON knows no infinity: null stands for it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, (list, tuple)) else value


def to_csv(verdict: Verdict) -> str:
    """One line per test and metric."""
    names = sorted({name for test in verdict.tests for name in test.parameters})
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["test", *map(text_cell, names), "metric", "unit", *_COLUMNS])
    for test in verdict.tests:
        for m in test.metrics:
            figures = _figures(m.summary) if m.summary else {}
            parameters = [test.parameters.get(name, "") for name in names]
            words = map(text_cell, [test.test, *parameters, m.metric, m.unit])
            writer.writerow([*words, *(figures.get(c, "") for c in _COLUMNS)])
    return out.getvalue()


def to_markdown(verdict: Verdict) -> str:
    """A table of the primary metric, and the sentences."""
    primary = verdict.primary
    lines = [
        f"| {primary} | mean | 95 % | median | min | max | trials |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for test in verdict.tests:
        m = test.metric(primary)
        if m is None or m.summary is None:
            continue
        s, like = m.summary, m.summary.mean
        interval = s.mean_interval
        cells = [quantity(x, m.unit, like) for x in (s.mean, s.median, s.minimum, s.maximum)]
        between = (
            f"{quantity(interval.low, m.unit, like)} … {quantity(interval.high, m.unit, like)}"
            if interval
            else "–"
        )
        name = " ".join(test.test.split()).replace("|", "\\|")
        lines.append(
            f"| {name} | {cells[0]} | {between} | {cells[1]} | {cells[2]} | {cells[3]} | {s.count} |"
        )
    notes = [
        *filter(None, [status_line(verdict)]),
        *map(group_text, verdict.warnings),
        *verdict_text.answer_lines(verdict),
    ]
    return "\n".join([*lines, "", *[f"- {note}" for note in notes], ""])
