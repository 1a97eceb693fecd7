"""A URL of `etude peak --url` is read as the engine reads it."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from etude.errors import MachineRefuses, UsageError
from etude.peak.harnesses.harness_text import HarnessOptions, harness_text, http_url
from support.places import DATA

VECTORS = [json.loads(line) for line in (DATA / "vectors" / "urls.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: ascii(vector["text"]))
def test_every_vector_is_read_as_it_says(vector: dict[str, Any]) -> None:
    if vector["host"] is None:
        with pytest.raises(UsageError, match=r"^--url ") as caught:
            harness_text(HarnessOptions(vector["text"], limits_s={"p95": 0.1}))
        assert "\n" not in str(caught.value)
        return
    found = http_url(vector["text"])
    assert (found.host, found.port, found.path) == (vector["host"], vector["port"], vector["path"])
    harness_text(HarnessOptions(vector["text"], limits_s={"p95": 0.1}))


def test_a_host_without_an_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def unknown(host: bytes, port: int, **_: Any) -> None:
        asked.append((host, port))
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(MachineRefuses, match=r"nix\.invalid .*Name or service"):
        http_url("http://nix.invalid/").resolve()
    with pytest.raises(MachineRefuses):
        http_url("http://[::1]:8/").resolve()
    assert asked == [(b"nix.invalid", 80), (b"::1", 8)]


def test_a_host_of_any_length_is_looked_up() -> None:
    http_url("http://127.0.0.1:9/").resolve()
    with pytest.raises(MachineRefuses):
        http_url(f"http://{'a' * 300}/").resolve()
