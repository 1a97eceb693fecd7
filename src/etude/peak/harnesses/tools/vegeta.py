"""vegeta attack … | vegeta encode --to csv: windows from its lines, one a request, while it runs.

A request is sent when it is due, by as many workers as that takes (`-max-workers` limits them); its latency is counted
from when it was sent. Rates are whole numbers. Source: vegeta 12, the columns of its CSV.
"""

from __future__ import annotations

from functools import partial

from etude.peak.harnesses.single_requests import Request, SingleRequests

NEEDS = "csv"
SPINS = False
HISTOGRAM = ""
"""What it has to be told for percentiles."""


def request(line: str) -> Request:
    """Of one line: when it was sent and how long it took, ns, the status, and an error, empty where there is none."""
    sent_ns, _, took_ns, _, _, error, _ = line.split(",", 6)
    return Request(int(sent_ns) * 1e-9, int(took_ns) * 1e-9, not error)


reader = partial(SingleRequests, tool="vegeta", parse=request)
