"""Ports for servers that tests start."""

from __future__ import annotations

import itertools
import random
import socket

PORTS = range(20000, 32000)
"""Below those that the kernel gives to connections: none of these comes to hold a port that is free for a moment."""


def is_free(port: int) -> bool:
    """Whether nobody listens on it."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on, each another."""
    ports = random.SystemRandom().sample(PORTS, len(PORTS))
    return list(itertools.islice(filter(is_free, ports), count))
