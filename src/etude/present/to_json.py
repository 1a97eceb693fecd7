"""Documents as JSON, in one way for all verbs; and the document of a verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from etude.analysis.cross_session import CrossSession, overall
from etude.analysis.subject import ended_in
from etude.analysis.verdict import not_compared
from etude.present.sentences.comparison import interval_reason
from etude.present.sentences.result_notes import missing_reason
from etude.present.sentences.status import status_of
from etude.present.sentences.verdict import verdict_lines
from etude.present.sentences.warning_numbers import finding_document
from etude.present.sentences.warnings import group_text
from etude.stats.cross_session import NotSupported
from etude.stats.ratio import Ratio

if TYPE_CHECKING:
    from etude.analysis.comparison import Comparison
    from etude.analysis.verdict import Verdict

FORMAT, VERSION = "etude-verdict", 1


def json_text(document: Any) -> str:
    """A document as JSON. What is infinite, or no number, is null there."""
    return json.dumps(_plain(document), indent=1, ensure_ascii=False)


def print_json(document: Any) -> None:
    """Print a document on standard output, where nothing else is printed then."""
    print(json_text(document))


def verdict_documents(
    verdicts: Sequence[Verdict], across: Sequence[CrossSession], machines: Sequence[str] = ()
) -> Any:
    """The document of one verdict, or a list of those of several: what was compared stands in the last one."""
    *first, last = verdicts
    documents = [*map(verdict_document, first), verdict_document(last, across, machines)]
    return documents if first else documents[0]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(member) for member in value] if isinstance(value, (list, tuple)) else value


def verdict_document(
    verdict: Verdict, across: Sequence[CrossSession] = (), machines: Sequence[str] = ()
) -> dict[str, Any]:
    """The verdict as JSON-able data (docs/reference/formats.md).

    across: comparisons with a baseline of another session. machines: a line for each compared result whose machine or
    settings are others.
    """
    ended = ended_in(verdict.subject.experiment or {})
    return {
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
        "text": verdict_lines(verdict),
    }


def _metric(m: Any) -> dict[str, Any]:
    joined = {"joined": m.joined, "workers": m.workers} if m.joined else {}
    if m.summary is None:
        return {"unit": m.unit, "reason": missing_reason(m), **joined}
    return {
        "unit": m.unit,
        "kind": m.kind,
        "subtracted": m.corrected_s,
        **summary_figures(m.summary),
        "which": m.summary.which,
        "mean_reason": m.summary.mean_reason or interval_reason(m),
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


def summary_figures(summary: Any) -> dict[str, Any]:
    """The figures of a sample, by the names that they have in JSON and CSV."""
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
