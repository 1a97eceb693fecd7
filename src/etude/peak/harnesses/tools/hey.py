"""hey -o csv: windows from its lines, one per request, printed at the end.

hey has a fixed number of clients, each of which waits for its answer (`-c {load}`; `-q` slows them down): loads are
clients. Requests without an answer have no line. Source: output of hey 0.1.
"""

from __future__ import annotations

from functools import partial

from etude.peak.harnesses.tools.single_requests import Request, SingleRequests


def request(line: str) -> Request | None:
    """A request from a line: response time, its parts, the status and the begin; None for the heading."""
    if line.startswith("response-time"):
        return None
    fields = line.split(",")
    return Request(float(fields[7]), float(fields[0]), 200 <= int(fields[6]) < 400)


reader = partial(SingleRequests, tool="hey", parse=request)
