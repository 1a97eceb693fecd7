"""The file system that stalls (bench/load/stalls.py): it is one, and its reads alone wait."""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path

import pytest

from support.places import BENCH

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    bench = importlib.import_module("load.stalls")

pytestmark = pytest.mark.quick


@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.skipif(bool(bench.lacking()), reason=bench.lacking())
def test_a_stalling_file_system_is_one_and_its_reads_alone_wait() -> None:
    with bench.stalling() as mount:
        file = mount / "d" / "file"
        file.parent.mkdir()
        file.write_bytes(b"0123456789" * 1000)
        os.truncate(file, 5000)
        file.rename(mount / "d" / "other")
        (mount / "link").symlink_to("d/other")
        assert (mount / "link").read_bytes() == b"0123456789" * 500
        assert sorted(path.name for path in mount.rglob("*")) == ["d", "link", "other"]
        (mount / "link").unlink()
        waited = []
        # Of reads through more than a period, some meet the stall: never longer than it is, but for a busy machine.
        with (mount / "d" / "other").open("rb", buffering=0) as opened:
            until = time.monotonic() + 1.3
            while time.monotonic() < until:
                begin = time.monotonic()
                os.pread(opened.fileno(), 100, 0)
                waited.append(time.monotonic() - begin)
        assert max(waited) > 0.05
        assert sorted(waited)[len(waited) // 2] < 0.05
        (mount / "d" / "other").unlink()
        (mount / "d").rmdir()
        place = mount.parent
    assert not Path(place).exists()
