"""A profile as one JSON document (docs/reference/formats.md, "A profile as JSON")."""

from __future__ import annotations

import errno
from typing import Any

from etude.iotrace.profile import FileProfile, ProcessProfile, Profile, Transfers

FORMAT, VERSION = "etude-profile", 1


def document(profile: Profile, top: int | None = None) -> dict[str, Any]:
    """All of it; with `top` so many files at most."""
    trace, over = profile.trace, profile.over_time
    return {
        "format": FORMAT,
        "version": VERSION,
        "trace": str(trace.path),
        "argv": list(trace.header["argv"]),
        "technique": trace.header["technique"],
        "partial": trace.partial or None,
        "events": trace.events,
        "waits": profile.waits,
        "run_s": profile.run_s,
        "in_calls_s": profile.in_calls_s,
        "recording_s": profile.recording_s,
        "outside_s": profile.outside_s,
        "completeness": {
            "kernel": None if profile.kernel is None else dict(profile.kernel),
            "recorded": dict(profile.recorded),
            "missing": list(profile.missing),
        },
        "notes": list(profile.notes),
        "calls": {
            each.name: {
                "count": each.count,
                "bytes": each.bytes,
                "errors": sum(each.errors.values()),
                "time_s": each.time_s,
                "median_s": each.median_s,
                "p99_s": each.p99_s,
                "longest_s": each.longest_s,
                "errors_by_name": {error_name(number): many for number, many in each.errors.items()},
            }
            for each in profile.calls
        },
        "reads": _transfers(profile.reads),
        "writes": _transfers(profile.writes),
        "files": [_file(each) for each in profile.files[:top]],
        "processes": [_process(each) for each in profile.processes],
        "over_time": {
            "edges_s": over.edges_s.tolist(),
            "read_s": over.read_s.tolist(),
            "write_s": over.write_s.tolist(),
            "other_s": over.other_s.tolist(),
            "in_calls_s": over.in_calls_s.tolist(),
        },
    }


def error_name(number: int) -> str:
    """`ENOENT`; the number where the kernel alone has a name for it."""
    return errno.errorcode.get(number, str(number))


def _transfers(found: Transfers) -> dict[str, Any]:
    return {
        "count": found.count,
        "bytes": found.bytes,
        "time_s": found.time_s,
        "sizes": [{"from": low, "count": count} for low, count in found.sizes],
        "smallest": found.smallest,
        "largest": found.largest,
        "judged": found.judged,
        "sequential": found.sequential,
    }


def _file(each: FileProfile) -> dict[str, Any]:
    return {
        "path": each.path,
        "count": each.count,
        "errors": each.errors,
        "read_bytes": each.read_bytes,
        "written_bytes": each.written_bytes,
        "time_s": each.time_s,
        "judged": each.judged,
        "sequential": each.sequential,
    }


def _process(each: ProcessProfile) -> dict[str, Any]:
    return {
        "process": each.process,
        "parent": each.parent,
        "pid": each.pid,
        "command": list(each.command),
        "threads": each.threads,
        "count": each.count,
        "read_bytes": each.read_bytes,
        "written_bytes": each.written_bytes,
        "time_s": each.time_s,
        "in_calls_s": each.in_calls_s,
        "life_s": each.life_s,
    }
