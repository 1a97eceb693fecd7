"""Claims of the examples: measured here, bundled, and verified in the test machine, whose processor is emulated."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from etude.api.claims import claims
from etude.present.bundle import gather
from etude.results.bundle import write_bundle
from support.guest.machine import Machine
from support.places import EXAMPLES

WITHIN_S = 900.0


def test_a_ratio_holds_there_and_a_rate_does_not(
    guest: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page names the processor as what differs; exit code 1."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    here = claims(EXAMPLES / "claims" / "caches.toml", scale="quick", directory=tmp_path / "caches")
    assert {(r.claim.id, r.status, r.failed) for r in here.results} == {
        ("cold", "supported", ""),
        ("memory", "supported", ""),
    }
    contents = gather([tmp_path / "caches"])
    write_bundle(tmp_path / "b.tar.gz", contents.root, contents.members, contents.time_s)
    guest.put_source()
    guest.put(tmp_path / "b.tar.gz", "/root")
    answer = guest.run(
        "cd /root && etude claims verify b.tar.gz -q --json --page p.html -o ours", within_s=WITHIN_S
    )
    assert answer.status == 1, answer.err
    told = json.loads(answer.out)
    assert {c["id"]: (c["theirs"], c["ours"]) for c in told["claims"]} == {
        "cold": ("supported", "supported"),
        "memory": ("supported", "refuted"),
    }
    page = guest.fetch("/root/p.html", tmp_path / "there").read_text("utf-8")
    assert "cpu.model" in page[page.index('id="claim-memory"') : page.index('id="differs"')]
