"""The shipped harnesses of servers: each searches for a short time, its server held to a tenth of a CPU."""

from __future__ import annotations

import json
import math
import re
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from etude.peak.search_store import SearchStore
from support.places import EXAMPLES
from support.real import etude, processes_with

pytestmark = [pytest.mark.serial, pytest.mark.needs_root]

OF_THE_READER = {"no-windows", "load-not-made", "generator-limited"}
PROGRAM = pytest.mark.needs_program
NGINX, CURL = PROGRAM("nginx", package="nginx-light"), PROGRAM("curl")
CGROUPS = Path("/sys/fs/cgroup")
HELD = {"cpu": "10", "client_cpu": "60"}
POSTGRES = pytest.mark.skipif(
    not sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres")),
    reason="no program postgres: install the Debian package postgresql",
)


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


def searched(
    tmp_path: Path, name: str, factors: Mapping[str, str], runlength_s: int, seed_load: int
) -> dict[str, Any]:
    """The answer of a search by a copy that was edited, as a user would: shorter trials, a wider target."""
    shutil.copytree(EXAMPLES / "lib", tmp_path / "lib")
    (tmp_path / "peak").mkdir()
    text = (EXAMPLES / "peak" / f"{name}.toml").read_text()
    edited, lines_edited = re.subn("(?m)^runlength = .*", f'runlength = "{runlength_s} s"', text)
    assert lines_edited == 1
    (tmp_path / "peak" / "mine.toml").write_text(edited)
    words = [word for pair in factors.items() for word in ("--factor", "=".join(pair))]
    done = etude(
        *("peak", "peak/mine.toml", "-o", "r", "--json", "--quiet", *words),
        *("--within", "30%", "--confidence", "90", "--budget", "60s", "--seed-load", str(seed_load)),
        cwd=tmp_path,
        check=None,
    )
    assert done.returncode in (0, 1), done.stderr
    assert not processes_with(str(tmp_path)), "nothing is left running"
    assert not [*CGROUPS.glob("etude-servers"), *CGROUPS.glob("cpu/etude-servers")], "no group is left"
    (search,) = json.loads(done.stdout)["searches"]
    return dict(search)


@pytest.mark.parametrize(
    ("name", "factors", "pieces", "seed_load"),
    [
        pytest.param("nginx", {}, 8, 20, id="nginx-wrk", marks=[NGINX, CURL, PROGRAM("wrk")]),
        pytest.param(
            "nginx-ab", {}, 8, 20, id="nginx-ab", marks=[NGINX, CURL, PROGRAM("ab", package="apache2-utils")]
        ),
        pytest.param("nginx-hey", {}, 4, 20, id="nginx-hey", marks=[NGINX, CURL, PROGRAM("hey")]),
        pytest.param(
            "redis",
            {"requests_per_s": "5000"},
            8,
            40,
            id="redis",
            marks=[
                PROGRAM("redis-server"),
                PROGRAM("redis-benchmark", package="redis-tools"),
            ],
        ),
        pytest.param("pgbench", {"scale": "1", "mix": "tpcb-like"}, 0, 50, id="pgbench", marks=POSTGRES),
        pytest.param(
            "mariadb",
            {"rows": "10000"},
            0,
            20,
            id="mariadb",
            marks=[PROGRAM("mariadbd", package="mariadb-server"), PROGRAM("sysbench")],
        ),
        pytest.param("http", {}, 0, 30, id="http", marks=CURL),
    ],
)
def test_the_harness_brackets_a_rate(
    name: str, factors: Mapping[str, str], pieces: int, seed_load: int, tmp_path: Path
) -> None:
    port = {"port": free_port()} if "{port}" in (EXAMPLES / "peak" / f"{name}.toml").read_text() else {}
    found = searched(tmp_path, name, {**HELD, **factors, **port}, pieces or 3, seed_load)
    assert found["rate"] is not None, found["why"]
    assert 0 < found["low"] <= found["rate"] <= found["high"] < math.inf
    readings = [trial["reading"] for trial in found["trials"]]
    assert min(readings) <= 1 < max(readings)
    assert not OF_THE_READER & {finding["kind"] for finding in found["findings"]}, found["findings"]
    windows = [trial.windows for trial in SearchStore(tmp_path / "r").trials()]
    assert max(map(len, windows)) > 1
    assert any(window.completed and window.mean_s for each in windows for window in each)
