"""Cells of every kind over real Slurm nodes: a server apart from its load, a script under a quota, an engine alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.places import EXAMPLES
from support.ports import free_ports
from support.real import ETUDE, called, processes_with
from support.slurm_cluster import Cluster, needs_slurm, wait_until

pytestmark = pytest.mark.beside


def words(spec: Path, pool: str = "slurm") -> list[str]:
    return ["surface", str(spec), "-o", str(spec.parent / "map"), "--pool", pool]


def lines(place: Path) -> list[dict[str, Any]]:
    files = (place / "map").glob("*/results.jsonl")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def groups(place: Path) -> list[str]:
    """Control groups in which the script has found itself, and that are still there."""
    seen = {name for file in place.glob("seen-*") for name in re.findall(r"etude-held-\w+", file.read_text())}
    return [name for _, names, _ in os.walk("/sys/fs/cgroup") for name in names if name in seen]


@needs_slurm
def test_a_cell_of_a_server_that_is_apart_has_two_nodes(near: Cluster, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    text = (EXAMPLES / "surface" / "known-server.toml").read_text()
    engine = Path(sys.executable).parent / "etude-engine"
    for old, new in (
        ("[commands]", "[commands]\napart = true"), ("--listen 127.0.0.1:", "--listen 0.0.0.0:"),
        ("127.0.0.1", "{server}"), ("18420", str(port)), ('"20 s"', '"0.5 s"'), ("--drain 1", "--drain 0.2"),
        ("--window 1 --warm-up 2", "--window 0.25 --warm-up 0.1"),
        ('start = "exec etude-engine', f'start = "uname -n >{{here}}/server; exec {engine}'),
        ("\nexec etude-engine", f"\nuname -n >{{here}}/client; exec {engine}"),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "apart.toml").write_text(text)
    spec = tmp_path / "spec.toml"
    spec.write_text(
        '[response]\npeak = "apart.toml"\n[factor.workers]\nlevels = [2]\n[budget]\ncell = "1 s"\n'
    )
    done = called(*words(spec), cwd=tmp_path, check=None)
    (line,) = lines(tmp_path)
    assert line["surface"]["state"] in ("measured", "bounded"), (line, done.stderr)
    assert [(tmp_path / who).read_text().strip() for who in ("client", "server")] == ["n1", "n2"]
    assert (line["host"], line["surface"]["system"]) == ("n1", "n2")
    assert "on n1 and n2: " in done.stderr
    assert processes_with(f":{port}") == []


@needs_slurm
def test_a_script_under_a_quota_leaves_its_node_as_it_was_also_when_its_job_is_cancelled(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text(f"cat /proc/self/cgroup >{tmp_path}/seen-$1; [ $1 = 1 ] || sleep 600")
    (tmp_path / "s.ap").write_text(f'TEST nap 2\n  EXEC sh {tmp_path}/in "%n%"\nDONE\n')
    spec = tmp_path / "spec.toml"
    spec.write_text(
        '[response]\nscript = "s.ap"\n[factor.n]\nlevels = [1, 2]\n'
        '[factor.cpu]\nresource = "quota"\nlevels = [0.5]\n'
    )
    with subprocess.Popen(
        [ETUDE, *words(spec)], env=cluster.environment, stderr=subprocess.PIPE, text=True
    ) as run:
        wait_until((tmp_path / "seen-2").exists, lambda: f"{lines(tmp_path)}")
        wait_until(lambda: len(groups(tmp_path)) < 2 and lines(tmp_path), lambda: f"{lines(tmp_path)}")
        assert groups(tmp_path)
        cluster.run("scancel", *cluster.run("squeue", "-h", "-o", "%A").split())
        _, told = run.communicate(timeout=60)
    assert run.returncode == 1
    assert "it was cancelled" in told
    assert {line["test"]: line["kept"] for line in lines(tmp_path)} == {
        "n=1 cpu=0.5": True,
        "n=2 cpu=0.5": False,
    }
    assert "etude-held" in (tmp_path / "seen-1").read_text()
    wait_until(lambda: not groups(tmp_path), lambda: f"{groups(tmp_path)}")


@needs_slurm
def test_an_engine_alone_on_the_node_measures_commands_and_the_line_says_which_node(
    near: Cluster, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text('[response]\ncommand = "sleep {n}"\nprecision = "50 %"\n[factor.n]\nlevels = [0.01]\n')
    called(*words(spec, "slurm,etude=copied,nodelist=n2"), cwd=tmp_path)
    assert [line["host"] for line in lines(tmp_path)] == ["n2"]
    (sitting,) = json.loads((tmp_path / "map" / "experiment.json").read_text())["sittings"]
    assert sitting["host"] == "n2"
