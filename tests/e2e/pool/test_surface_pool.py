"""A surface over real Slurm nodes: one is killed while it measures, and so is the controller; both end complete."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.real import ETUDE, called, one_line
from support.slurm_cluster import Cluster, needs_slurm, wait_until

pytestmark = pytest.mark.beside

SPEC = """
[response]
command = "echo {{a}} {{b}} >> {place}/runs; while [ ! -e {place}/gate ]; do sleep 0.05; done; echo v={{b}}{{a}}"
metric = "v"
pattern = "v=([0-9]+)"
unit = "B"
precision = "50 %"

[factor.a]
levels = [{levels}]

[factor.b]
levels = [1, 2]

[budget]
cell = "30 s"
"""


def spec(place: Path, count: int) -> Path:
    """Of `count` times two cells, each of which ends once there is a gate."""
    path = place / "cells.toml"
    levels = ", ".join(str(level) for level in range(1, count + 1))
    path.write_text(SPEC.format(place=place, levels=levels))
    return path


def surface(path: Path, *more: str) -> list[str]:
    return [ETUDE, "surface", str(path), "-o", str(path.parent / "map"), *more]


def under_way(place: Path) -> dict[str, Path]:
    """Nodes that measure a cell now, with its directory."""
    begun = (place / "map").rglob("node.json")
    return {
        json.loads(file.read_text())["host"]: file.parent
        for file in begun
        if not (file.parent / "sample.json").exists() and (place / "runs").exists()
    }


def kept(place: Path) -> list[dict[str, Any]]:
    files = (place / "map").glob("*/results.jsonl")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@needs_slurm
def test_a_surface_goes_on_over_the_other_node_when_one_is_killed(tmp_path: Path) -> None:
    with Cluster(nodes=2, options={"SlurmdTimeout": "3"}) as cluster:
        words = surface(spec(tmp_path, 2), "--pool", "slurm,partition=bench")
        with subprocess.Popen(
            words, env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            wait_until(lambda: set(under_way(tmp_path)) == {"n1", "n2"}, lambda: f"{under_way(tmp_path)}")
            lost = under_way(tmp_path)["n1"]
            cluster.kill_node("n1")
            (tmp_path / "gate").touch()
            said, told = run.communicate(timeout=120)
        assert run.returncode == 0, told
    lines = kept(tmp_path)
    counting = [line for line in lines if "lost" not in line["surface"]]
    assert sorted(line["surface"]["value"] for line in counting) == [11, 12, 21, 22]
    assert [
        (line["surface"]["lost"], line["host"], line["kept"]) for line in lines if line not in counting
    ] == [("node-lost", "n1", False)]
    assert {line["host"] for line in counting} == {"n2"}
    assert not (lost / "sample.json").exists()
    assert (lost / "attempt-2" / "sample.json").exists()
    assert told.count("node-lost") == 2  # as it happens, and in the timeline
    assert [row for row in told.splitlines() if row.split()[:1] == ["waited"]]
    assert "4 of 4 configurations" in said


@needs_slurm
def test_the_controller_may_be_killed_and_the_next_goes_on_with_its_jobs(
    near: Cluster, tmp_path: Path
) -> None:
    path = spec(tmp_path, 2)
    pool = ("--pool", "slurm")
    with subprocess.Popen(surface(path, *pool), stderr=subprocess.DEVNULL) as run:
        try:
            wait_until(lambda: len(under_way(tmp_path)) == 2, lambda: f"{under_way(tmp_path)}")
        finally:
            run.send_signal(signal.SIGKILL)
    here = called(*surface(path)[1:], cwd=tmp_path, check=3)
    assert "2 jobs" in one_line(here.stderr)
    (tmp_path / "gate").touch()
    found = json.loads(called(*surface(path, *pool)[1:], "--json", cwd=tmp_path).stdout)
    assert {cell["state"] for cell in found["cells"]} == {"measured"}
    runs = Counter((tmp_path / "runs").read_text().splitlines())
    trials = {" ".join(cell["factors"].values()): 1 + cell["trials"] for cell in found["cells"]}
    assert runs == trials, "one run to warm up, and nothing was measured twice"
    assert not list(tmp_path.rglob("attempt-2"))
