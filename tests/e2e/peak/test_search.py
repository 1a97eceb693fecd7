"""The peak rate of a real server that is known: an nginx that is held to 200 requests a second."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from etude.program import engine_path
from support.places import EXAMPLES
from support.real import etude

pytestmark = [
    pytest.mark.quick,
    pytest.mark.needs_program("nginx", package="nginx-light"),
    pytest.mark.needs_program("curl"),
]
LIMIT_PER_S = 200.0
"""The rate to which nginx is held."""

HARNESS = f"""
[goal]
mean = "60 ms"
errors = "1 %"
[load]
unit = "requests/s"
lowest = 20
highest = 600
runlength = "1 s"
step = 5
[promise]
within = "30 %"
confidence = "90 %"
budget = "40 s"
[commands]
start = "exec {EXAMPLES}/lib/peak-nginx.sh {{place}} {{port}} {LIMIT_PER_S:.0f}"
ready = "curl --silent --fail --max-time 2 --output /dev/null http://127.0.0.1:{{port}}/alive"
load = "exec {engine_path()} load --url http://127.0.0.1:{{port}} --rate {{load}} --seconds {{runlength}} --window 0.1"
drain = "sleep 1"
[reader]
kind = "windows"
[factors]
port = 1
"""


def test_the_peak_of_an_nginx_is_near_its_limit(tmp_path: Path) -> None:
    (tmp_path / "nginx.toml").write_text(HARNESS)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ("peak", "nginx.toml", "--factor", f"port={port}", "-o", "r", "--json", "--quiet")
    done = etude(*words, cwd=tmp_path, check=None)
    assert done.returncode in (0, 1), done.stderr
    (search,) = json.loads(done.stdout)["searches"]
    # Offered at random, requests wait below the limit already; a machine that is busy with something else bears less.
    assert LIMIT_PER_S / 2 < search["rate"] < LIMIT_PER_S * 1.3, search
    assert search["low"] <= search["rate"] <= search["high"]
    loads = [trial["load"] for trial in search["trials"]]
    assert min(loads) < search["rate"] < max(loads)
