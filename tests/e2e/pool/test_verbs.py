"""`etude bench`, `run` and `peak` over two real nodes, of which one is killed, or the controller is."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cluster.pool.journal import Journal
from etude.results.reader import load_results
from support.places import DOCS
from support.real import ETUDE, called, experiment, one_line
from support.slurm_cluster import Cluster, needs_slurm, wait_until

pytestmark = pytest.mark.beside

POOL = ("--pool", "slurm", "--monitor", "off")


def kept(directory: Path, test: str) -> int:
    return sum(m.kept for m in load_results(directory).measurements[test])


def measured_in(directory: Path, part: str, test: str) -> int:
    """Lines that a part has on disk."""
    file = directory / ".pool" / part / "results" / test / "results.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def hosts(directory: Path) -> list[str]:
    return [sitting["host"] for sitting in experiment(directory)["sittings"]]


@needs_slurm
def test_a_comparison_that_loses_a_node_on_the_way_is_completed_on_the_other(
    start: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = start(nodes=2)
    words = [
        ETUDE,
        "bench",
        "sleep 0.3",
        "sleep 0.4",
        "-n",
        "a",
        "-n",
        "b",
        "--trials",
        "8",
        "-o",
        "out",
        *POOL,
    ]
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as bench:
        try:
            out = tmp_path / "out"
            wait_until(lambda: measured_in(out, "part-0001", "b") >= 3, cluster.log)
            (lost,) = (each.job.place.name for each in Journal(out).jobs[:1])
            node = "n1" if "n1" in (out / ".pool" / lost / "begun.json").read_text() else "n2"
            cluster.kill_node(node)
            cluster.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed")
            _, errors = bench.communicate(timeout=60)
        finally:
            bench.kill()
    assert bench.returncode == 0, errors
    assert "node-lost" in errors
    assert min(kept(out, "a"), kept(out, "b")) == 8
    assert set(hosts(out)) == {"n1", "n2"}
    assert hosts(out).count("n2" if node == "n1" else "n1") == 2  # its own part, and what the other lacked
    (comparison,) = json.loads(called("stats", "--json", out.name, cwd=out.parent).stdout)["comparisons"]
    assert len(comparison["machines"]) == 2
    whole = load_results(out)
    sittings = {s["sitting"]: s["host"] for s in whole.experiment["sittings"]}
    assert all(sittings[m.sitting] == m.host for rows in whole.measurements.values() for m in rows)


SCRIPT = """\
TEST slow 3
  EXEC sleep 0.5
DONE
INTERLEAVE
TEST quick 3
  EXEC sleep 0.01
DONE
TEST quicker 3
  EXEC true
DONE
DONE
TEST last 2
  EXEC true
DONE
"""


@needs_slurm
def test_a_script_whose_controller_was_killed_is_gone_on_with_and_no_test_runs_twice(
    near: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "s.ap").write_text(SCRIPT)
    out = tmp_path / "out"
    words = [ETUDE, "run", "s.ap", "-o", "out", *POOL]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        try:
            wait_until(lambda: measured_in(out, "part-0001", "slow") >= 1, near.log)
        finally:
            run.send_signal(signal.SIGKILL)
    done = called("run", "--resume", "out", cwd=tmp_path)
    assert [kept(out, name) for name in ("slow", "quick", "quicker", "last")] == [3, 3, 3, 2]
    assert [each.ended.how for each in Journal(out).jobs if each.ended] == ["done"] * 3
    assert {"slow", "quick", "quicker", "last"} <= set(done.stdout.split())
    by_test = {name: {m.host for m in rows} for name, rows in load_results(out).measurements.items()}
    assert by_test["quick"] == by_test["quicker"]
    assert all(len(names) == 1 for names in by_test.values())
    assert not any("SLURM_JOB" in text for text in (out / "experiment.json").read_text().split('"'))


@needs_slurm
def test_a_search_over_a_pool_finds_what_it_finds_here_and_says_where_it_was_made(
    near: Cluster, tmp_path: Path
) -> None:
    words = ("peak", "--simulate", "mm1", "--policy", "binsearch", "-q", "--json")
    pool = ("-o", "there", "--pool", "slurm")
    there = called(*words, *pool, cwd=tmp_path)
    here = called(*words, "-o", "here", cwd=tmp_path)
    found, expected = (json.loads(done.stdout)["searches"][0] for done in (there, here))
    assert {**found, "results": ""} == {**expected, "results": ""}
    assert hosts(tmp_path / "there")[0] in ("n1", "n2")
    again = called(*words, *pool, cwd=tmp_path)
    assert again.stdout == there.stdout
    assert len(Journal(tmp_path / "there").jobs) == 1
    other = called(*words, "--within", "5%", *pool, cwd=tmp_path, check=3)
    assert "another search" in one_line(other.stderr)


@needs_slurm
def test_what_goes_wrong_on_a_node_is_told_as_if_it_had_gone_wrong_here(
    near: Cluster, tmp_path: Path
) -> None:
    failed = called("bench", "false", "--trials", "4", "-o", "f", *POOL, check=4, cwd=tmp_path)
    assert "exit status 1" in failed.stderr.splitlines()[-1]
    assert re.search(r"part-000[12] on n", failed.stderr.splitlines()[-1])  # whichever fails first
    unknown = called("bench", "true", "--primary", "nothing", "-o", "u", *POOL, check=2, cwd=tmp_path)
    assert "'nothing'" in unknown.stderr.splitlines()[-1]
    nowhere = ("--pool", "slurm,partition=none")
    refused = called("bench", "true", "-o", "p", *nowhere, check=5, cwd=tmp_path)
    assert "partition 'none'" in one_line(refused.stderr)
    assert "measured" not in refused.stderr
    missing = ("--pool", "slurm,python=/nowhere/python")
    lost = called("bench", "true", "--trials", "2", "-o", "e", *missing, check=5, cwd=tmp_path).stderr
    assert "no-etude" in lost.splitlines()[-1]
    assert "attempt 3 of 3" in lost.splitlines()[-1]
    assert lost.endswith("--resume e\n")
    wait_until(lambda: not near.run("squeue", "-h"), near.log)


def test_a_search_leaves_other_results_as_they_are(tmp_path: Path) -> None:
    called("bench", "true", "--trials", "2", "--monitor", "off", "-o", "b", cwd=tmp_path)
    before = (tmp_path / "b" / "experiment.json").read_bytes()
    search = ("peak", "--simulate", "mm1", "-q", "--pool", "local", "-o")
    done = called(*search, "b", cwd=tmp_path, check=3)
    assert "etude: b: " in one_line(done.stderr)
    assert (tmp_path / "b" / "experiment.json").read_bytes() == before
    done = called(*search, "b/experiment.json/x", cwd=tmp_path, check=5)
    assert "b/experiment.json/x" in one_line(done.stderr)


def test_what_a_job_cannot_do_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "c.ap").write_text("CHECKPOINT state\n")
    (tmp_path / "b.ap").write_text("REBOOT\n")
    for words, what in (
        (("bench", "true", "--cool", "reboot"), "--cool reboot"),
        (("run", "c.ap"), "CHECKPOINT"),
        (("run", "b.ap"), "REBOOT"),
        (("peak", "--simulate", "mm1", "--rehearse"), "--rehearse"),
        (("bench", "--resume", "x"), "--resume"),
    ):
        done = called(*words, "--pool", "local", cwd=tmp_path, check=2)
        assert what in one_line(done.stderr)
    assert not (tmp_path / "etude-results").exists()


def test_the_tests_that_were_measured_are_shown_before_the_error_of_those_that_failed(tmp_path: Path) -> None:
    (tmp_path / "s.ap").write_text("TEST bad 2\nEXEC false\nDONE\nTEST good 2\nEXEC true\nDONE\n")
    words = ("run", "s.ap", "--json", "--pool", "local", "--monitor", "off", "-o", "out")
    done = called(*words, cwd=tmp_path, check=4)
    kept_of = {test["test"]: test["kept"] for test in json.loads(done.stdout)["tests"]}
    assert kept_of["good"] == 2
    assert "bad" in done.stderr.splitlines()[-1]
    again = called("run", "--resume", "out", "--json", cwd=tmp_path, check=4)
    assert json.loads(again.stdout)["tests"] == json.loads(done.stdout)["tests"]


def test_the_page_runs_as_it_is_printed(tmp_path: Path) -> None:
    page = (DOCS / "howto" / "spread.md").read_text()
    environment = os.environ | {"PATH": f"{Path(ETUDE).parent}:{os.environ['PATH']}"}
    for line in re.findall(r"^\$ (.*)$", page, re.MULTILINE):
        done = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert kept(tmp_path / "two", "sleep 0.01") == 6
    assert len(Journal(tmp_path / "two").jobs) == 1  # going on with what is complete begins nothing
    called("bundle", "two", "-o", "two.tar.gz", cwd=tmp_path)
