"""What a server is asked by `etude load`, by its presets: seen at the server, and compared with what the presets say.

ETUDE_LOAD_OPERATIONS: how many operations of each (20,000; a documented run has 1,000,000: bench/load_seen.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from preset_checks import Arrivals, arrivals, checks
from published import PUBLISHED
from seen_loads import Server, over_nfs, server

OPERATIONS = int(os.environ.get("ETUDE_LOAD_OPERATIONS", "20000"))
RATE = 2000.0
pytestmark = [
    pytest.mark.serial,
    pytest.mark.slow,
    pytest.mark.needs_root,
    pytest.mark.needs_program("ganesha.nfsd", package="nfs-ganesha"),
    pytest.mark.needs_program("rpcbind"),
    pytest.mark.needs_program("ip", package="iproute2"),
]


@pytest.fixture(scope="module")
def nfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("seen"), f"seen{os.getpid()}", "10.79.21") as made:
        yield made


@pytest.mark.parametrize("preset", list(PUBLISHED))
def test_a_server_is_asked_what_the_preset_says(nfs: Server, preset: str) -> None:
    found = over_nfs(nfs, preset, OPERATIONS, Arrivals(RATE, shape=False))
    assert found.tape.garbage == ()
    assert len(found.load.seen) == found.summary["started"]
    assert len(found.load.seen) > 0.9 * OPERATIONS
    done = list(checks(found.load))
    assert len(done) >= 6
    assert [check for check in done if not check.holds] == []


@pytest.mark.parametrize("poisson", [True, False], ids=["poisson", "constant"])
def test_requests_come_at_a_server_as_they_were_asked_for(nfs: Server, poisson: bool) -> None:
    # So seldom that also a busy machine is late by little of a gap, and a third of the gaps may be off by anything:
    # the other process is far beyond that.
    asked = Arrivals(100.0, poisson, moved=0.33, late=0.2, allowance=2.0)
    other = Arrivals(100.0, not poisson, moved=0.33, late=0.2, allowance=2.0)
    seen = over_nfs(nfs, "web", 1000, asked).load.seen
    assert [check for check in arrivals(seen.at_ns, asked) if not check.holds] == []
    assert not all(check.holds for check in arrivals(seen.at_ns, other))
