"""`etude profile` of a program and of its recorded replay: what was played alone, and the same calls and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etude.program import engine_path
from support.real import etude
from support.recordings import environment, record

pytestmark = pytest.mark.beside


def test_a_replay_is_compared_without_its_own_start(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "d").mkdir(parents=True)
    for number in range(30):
        (work / "d" / f"f{number}").write_bytes(bytes(100 * number))
    settings = environment(tmp_path / "cache")
    done = record("tar", "cf", "x.tar", "d", at=tmp_path / "a.trace", cwd=work, env=settings)
    if done.status == 5:
        pytest.skip(f"programs cannot be recorded here: {done.stderr.decode().strip()}")
    etude("script", "a.trace", "-o", "a.script", cwd=tmp_path)
    etude("prepare", "-q", "a.script", "place", cwd=tmp_path)
    etude("compile", "-q", "a.script", cwd=tmp_path)
    words = (engine_path(), "replay", "a.roll", "place")
    assert record(*words, at=tmp_path / "b.trace", cwd=tmp_path, env=settings).status == 0
    made = json.loads(etude("profile", "a.trace", "b.trace", "--json", cwd=tmp_path).stdout)
    assert made["replay"]
    # What a replay does not make: calls on what was open before, sockets, and memory of no file.
    left_out = {"mmap", "munmap", "mprotect", "brk", "close", "fcntl", "socket", "connect"}
    counts = {name: each["count"] for name, each in made["ratios"]["calls"].items() if name not in left_out}
    assert counts
    assert set(counts.values()) == {1.0}, counts
    assert made["ratios"]["reads"]["bytes"] == made["ratios"]["writes"]["bytes"] == 1.0
    # Of libraries the replay knows where a link to them leads.
    assert not [each for each in made["files"]["different"] if each["path"].startswith("d")]
