"""examples/cache/cooling.ap as it is, in all ways of the paper: residency stands in each row, and cold is cold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.guest.machine import BOOTED, Machine

pytestmark = pytest.mark.restarts

WAYS = ("warm", "chill", "drop", "remount", "remount+chill", "reboot", "reboot+chill")


def test_the_example_cools_in_all_ways_of_the_paper(restarting: Machine) -> None:
    guest = restarting
    guest.restore(BOOTED)
    guest.check("etude boot-resume install")
    boot = guest.boot_id()
    guest.spawn(
        "cd /root && TREE_MB=88 ETUDE_SETTLE_S=1 etude run /opt/etude/share/etude/examples/cache/cooling.ap TRIALS=1 "
        "-o /root/cooling >/root/log 2>&1"
    )
    for _ in range(2):
        boot = guest.wait_restart(boot)
    guest.wait_text("/root/cooling/experiment.json", b'"how_ended": "complete"')
    seen: dict[str, dict[str, Any]] = {}
    for line in guest.check("cat /root/cooling/*/results.jsonl").splitlines():
        row = json.loads(line)
        if row["kept"]:
            seen[row["test"]] = row["cache"]
    assert set(seen) == {f"grep:{way}" for way in WAYS}
    for way in WAYS:
        cache = seen[f"grep:{way}"]
        assert (cache["declared"], cache["performed"]) == (way, way)
        assert cache["files"] > 1000
        left = cache["resident_bytes"] / cache["bytes"]
        if way not in ("warm", "chill"):
            assert cache["names_cached"] == 0, "looking loads no names"
        if way == "chill":
            assert cache["resident_bytes"] < 40 << 20, "docs/howto/chill.md: up to 32 MiB, of 91"
        elif way != "warm":
            assert left <= 0.01
            assert "wrong" not in cache
        assert cache["names_cached"] is not None
