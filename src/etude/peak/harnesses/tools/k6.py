"""k6 run --out json=/dev/stdout: windows from its points of http_req_duration, one per request, while it runs.

An arrival rate of the script (`constant-arrival-rate`) offers loads in requests per second; a fixed number of users is
a load of clients. Times do not include the wait for a free user: allow enough of them. Source: k6 documentation, "JSON"
output.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial

from etude.errors import EDITED
from etude.peak.harnesses.tools.single_requests import Request, SingleRequests


def request(line: str) -> Request | None:
    """A request from a line; None for other metrics and for text that k6 prints."""
    if '"http_req_duration"' not in line or '"Point"' not in line:
        return None
    try:
        data = json.loads(line)["data"]
        took_s = float(data["value"]) * 1e-3
        ended_s = datetime.fromisoformat(data["time"]).timestamp()
        failed = (data["tags"] or {}).get("expected_response") == "false"
    except EDITED:
        raise ValueError("no point of k6") from None
    return Request(ended_s - took_s, took_s, not failed)


reader = partial(SingleRequests, tool="k6", parse=request)
