"""Connecting to a host: what may pass is tried again for its patience, and which part of the way failed is data."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from etude.machine.remote.hosts import Entry
from etude.machine.remote.link import HostUnreachable, connect_with_retries

ENTRY = Entry("server", "10.77.0.2", patience_s=10.0)
REFUSED = "ssh: connect to host 10.77.0.2 port 22: Connection refused"


class Time:
    now = 0.0

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def failing(times: int, why: str) -> Callable[[Entry], int]:
    """A way that fails so many times; then how often it was tried."""
    tries = 0

    def way(entry: Entry) -> int:
        nonlocal tries
        tries += 1
        if tries <= times:
            raise HostUnreachable(entry, why)
        return tries

    return way


@pytest.mark.parametrize(
    ("why", "part", "passes"),
    [
        (REFUSED, "port", True),
        ("kex_exchange_identification: Connection closed by remote host", "port", True),
        ("ssh: connect to host h port 22: No route to host", "address", True),
        ("ssh: connect to host h port 22: Connection timed out", "address", True),
        ("ssh: Could not resolve hostname h: Temporary failure in name resolution", "address", True),
        ("ssh: Could not resolve hostname h: Name or service not known", "address", False),
        ("root@h: Permission denied (publickey).", "key", False),
        ("Host key verification failed.", "key", False),
        ("something else", "", False),
    ],
)
def test_which_part_it_was(why: str, part: str, passes: bool) -> None:
    error = HostUnreachable(ENTRY, why)
    assert (error.part, error.passes) == (part, passes)


def test_a_host_that_starts_meanwhile_is_reached() -> None:
    time = Time()
    assert connect_with_retries(failing(3, REFUSED), ENTRY, time.clock, time.pause) == 4
    assert time.now == 3.0


def test_patience_ends() -> None:
    time = Time()
    with pytest.raises(HostUnreachable, match="tried 11 times in 10 s"):
        connect_with_retries(failing(99, REFUSED), ENTRY, time.clock, time.pause)
    assert time.now == 10.0


def test_what_does_not_pass_is_not_tried_again() -> None:
    time = Time()
    with pytest.raises(HostUnreachable):
        connect_with_retries(failing(1, "Permission denied (publickey)."), ENTRY, time.clock, time.pause)
    assert time.now == 0.0
