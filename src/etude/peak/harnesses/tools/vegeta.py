"""vegeta attack … | vegeta encode --to csv: windows from its lines, one per request, while it runs.

A request is sent when it is due, by as many workers as needed (limited by `-max-workers`); its latency is measured from
the send time. Rates are whole numbers. Source: vegeta 12, the columns of its CSV.
"""

from __future__ import annotations

from functools import partial

from etude.peak.harnesses.tools.single_requests import Request, SingleRequests


def request(line: str) -> Request:
    """A request from a line: send time and response time, ns, status, and an error, empty if there is none."""
    sent_ns, _, took_ns, _, _, error, _ = line.split(",", 6)
    return Request(int(sent_ns) * 1e-9, int(took_ns) * 1e-9, not error)


reader = partial(SingleRequests, tool="vegeta", parse=request)
