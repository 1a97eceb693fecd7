"""What servers and file systems are asked by `etude load`: seen there, and compared with what its presets say.

ETUDE_LOAD_OPERATIONS: how many operations of each (4,000; a documented run has 1,000,000: bench/load/seen.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.preset_checks import OF_ORDER, Arrivals, arrivals, checks
from support.published import PUBLISHED
from support.recordings import small_disk
from support.seen import Seen
from support.seen_loads import Server, over_directory, over_nfs, server

OPERATIONS = int(os.environ.get("ETUDE_LOAD_OPERATIONS", "4000"))
RATE = 2000.0
FEW = 250
TRIES = 4
SELDOM = 100.0
"""Requests/s: so few that also a busy machine is late by little of a gap."""
pytestmark = [pytest.mark.serial, pytest.mark.needs_root]


def needs_a_server(test: Callable[..., None]) -> Callable[..., None]:
    """The programs of a server of NFS."""
    for name, package in (("ganesha.nfsd", "nfs-ganesha"), ("rpcbind", "rpcbind"), ("ip", "iproute2")):
        test = pytest.mark.needs_program(name, package=package)(test)
    return test


@pytest.fixture(scope="module")
def nfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("seen"), f"seen{os.getpid()}", "10.79.21") as made:
        yield made


@needs_a_server
@pytest.mark.parametrize("preset", list(PUBLISHED))
def test_a_server_is_asked_what_the_preset_says(nfs: Server, preset: str) -> None:
    found = over_nfs(nfs, preset, OPERATIONS, Arrivals(RATE, shape=False))
    assert found.tape.garbage == ()
    assert len(found.load.seen) == found.summary["started"]
    assert len(found.load.seen) > 0.9 * OPERATIONS
    done = list(checks(found.load))
    assert len(done) >= 6
    assert [check for check in done if not check.holds] == []


@needs_a_server
@pytest.mark.parametrize("poisson", [True, False], ids=["poisson", "constant"])
def test_requests_come_at_a_server_as_they_were_asked_for(nfs: Server, poisson: bool) -> None:
    assert_as_asked(poisson, lambda asked: over_nfs(nfs, "web", FEW, asked).load.seen)


def assert_as_asked(poisson: bool, load: Callable[[Arrivals], Seen]) -> None:
    """A machine whose CPUs others take may send late, and so does one whose hypervisor does; it does not each time."""
    asked, other = seldom(poisson), seldom(not poisson)
    found = []
    for _ in range(TRIES):
        at_ns = load(asked).at_ns
        found.append([check for check in arrivals(at_ns, asked) if not check.holds])
        if not found[-1] and not all(check.holds for check in arrivals(at_ns, other)):
            return
    pytest.fail(f"in {TRIES} loads what did not hold was {found}")


def seldom(poisson: bool) -> Arrivals:
    # A third of the gaps may be off by anything: the other process is far beyond that.
    return Arrivals(SELDOM, poisson, moved=0.33, late=0.2, allowance=2.0)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """In memory: so one thread suffices for the rate, whatever a disk takes for a commit."""
    with small_disk(tmp_path / "disk", "1g") as made:
        yield made


@pytest.mark.parametrize(
    ("preset", "threads"),
    [("web", 64), ("web", 1), ("db_tp", 1), ("mail", 1)],
    ids=str,
)
def test_a_file_system_is_asked_what_the_preset_says(disk: Path, preset: str, threads: int) -> None:
    options = ["--outstanding", str(threads)]
    load, summary = over_directory(disk, preset, OPERATIONS, Arrivals(RATE, shape=False), options=options)
    assert len(load.seen) == summary["started"]
    assert len(load.seen) > 0.9 * OPERATIONS
    # Threads overtake each other between drawing and calling; one alone keeps the order.
    done = [check for check in checks(load) if threads == 1 or check.name not in OF_ORDER]
    assert len(done) >= 6
    assert [check for check in done if not check.holds] == []


@pytest.mark.parametrize("poisson", [True, False], ids=["poisson", "constant"])
def test_requests_come_at_a_file_system_as_they_were_asked_for(disk: Path, poisson: bool) -> None:
    assert_as_asked(poisson, lambda asked: over_directory(disk, "web", FEW, asked)[0].seen)
