"""hey -o csv: windows from its lines, one a request, which it prints at the end.

hey has a fixed number of clients, each of which waits for its answer (`-c {load}`; `-q` slows them down): loads are
clients. Requests without an answer are on no line. Source: hey 0.1, what it prints.
"""

from __future__ import annotations

from functools import partial

from etude.peak.harnesses.single_requests import Request, SingleRequests

NEEDS = "csv"
SPINS = False
HISTOGRAM = ""
"""What it has to be told for percentiles."""


def request(line: str) -> Request | None:
    """Of one line: how long it took, its parts, the status and when it was begun; None for the heading."""
    if line.startswith("response-time"):
        return None
    fields = line.split(",")
    return Request(float(fields[7]), float(fields[0]), 200 <= int(fields[6]) < 400)


reader = partial(SingleRequests, tool="hey", parse=request)
