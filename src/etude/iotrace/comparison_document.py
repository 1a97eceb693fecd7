"""Two profiles beside each other as one JSON document (docs/reference/formats.md, "Two profiles as JSON")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etude.iotrace.comparison import CallBeside, Form, ProfileComparison, all_s, ratio
from etude.iotrace.document import document
from etude.iotrace.profile import Profile, Transfers

FORMAT, VERSION = "etude-profiles", 1


def beside_document(found: ProfileComparison, top: int | None = None) -> dict[str, Any]:
    """All of it; with `top` so many files at most, of each list."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "same_program": found.same_program,
        "replay": found.replay,
        "a": document(found.a, top),
        "b": document(found.b, top),
        "ratios": _ratios(found),
        "sizes": _sizes(found),
        "files": {
            "alike": found.files.alike,
            "renamed": found.files.renamed,
            "different": [
                {
                    "path": each.path,
                    "count": list(each.counts),
                    "read_bytes": list(each.read_bytes),
                    "written_bytes": list(each.written_bytes),
                }
                for each in found.files.different[:top]
            ],
        },
    }


def _ratios(found: ProfileComparison) -> dict[str, Any]:
    a, b = _numbers(found.a), _numbers(found.b)
    return {
        **{name: ratio(a[name], b[name]) for name in a},
        "reads": _transfers(found.a.reads, found.b.reads),
        "writes": _transfers(found.a.writes, found.b.writes),
        "calls": {each.name: _call(each) for each in found.calls},
    }


def _numbers(profile: Profile) -> Mapping[str, float]:
    return {
        "events": profile.trace.events,
        "run_s": profile.run_s,
        "in_calls_s": profile.in_calls_s,
        "recording_s": profile.recording_s,
        "outside_s": profile.outside_s,
        "time_s": all_s(profile),
    }


def _transfers(a: Transfers, b: Transfers) -> dict[str, float | None]:
    return {
        "count": ratio(a.count, b.count),
        "bytes": ratio(a.bytes, b.bytes),
        "time_s": ratio(a.time_s, b.time_s),
    }


def _call(each: CallBeside) -> dict[str, float | None]:
    return {
        "count": ratio(*each.counts),
        "bytes": ratio(*each.bytes),
        "errors": ratio(*each.errors),
        "time_s": ratio(*each.times_s),
    }


def _sizes(found: ProfileComparison) -> dict[str, Any]:
    sides = [
        {
            "events": events,
            "trace_bytes": trace,
            "bytes_per_event": ratio(events, trace),
            "text_bytes": text,
            "text_bytes_per_event": ratio(events, text),
            "text_ratio": ratio(trace, text),
        }
        for events, trace, text in zip(found.events, found.trace_bytes, found.text_bytes, strict=True)
    ]
    return {
        "a": sides[0],
        "b": sides[1],
        "ratios": {name: _ratio(sides[0][name], sides[1][name]) for name in sides[0]},
        **{name: None if form is None else _form(form, found) for name, form in found.forms.items()},
    }


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else ratio(a, b)


def _form(form: Form, found: ProfileComparison) -> dict[str, Any]:
    return {
        "path": str(form.path),
        "bytes": form.bytes,
        "bytes_per_event": ratio(found.events[0], form.bytes),
        "text_ratio": ratio(form.bytes, found.text_bytes[0]),
    }
