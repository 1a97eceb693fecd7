"""The tests of a script over a pool: each a job, begun anew where it lost its node, and one result of all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etude.cluster.distributed.jobs import Jobs, document_of
from etude.cluster.distributed.part import parts_of
from etude.cluster.pool.job import PoolSpec
from etude.cluster.pool.journal import Journal
from etude.cluster.pool.simulated import Death, SimulatedPool
from etude.errors import CommandFailed, UsageError
from etude.experiment.monitoring import Monitoring
from etude.results.reader import load_results
from etude.script import distributed as tests
from etude.script.distributed import Tests, groups_of
from etude.script.run import ScriptOptions, plan_of, read_script
from support.builders import still_machine
from support.nodes import Nodes
from support.telling import Telling

SCRIPT = """\
TEST a 2
EXEC a
DONE
INTERLEAVE
TEST b 2
EXEC b
DONE
TEST c 2
EXEC c
DONE
DONE
TEST d 2
EXEC d
DONE
"""


@pytest.fixture(autouse=True)
def _still_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)


def spread(where: Path, pool: SimulatedPool) -> Tests:
    (where / "s.ap").write_text(SCRIPT)
    asked = read_script(str(where / "s.ap"), seed=1)
    document = document_of("run", "s", plan_of(asked), asked.program.digest, PoolSpec("slurm"))
    out = where / "out"
    out.mkdir(exist_ok=True)
    return Tests(asked, groups_of(asked.dry_run(), "s.ap"), Jobs(out, pool), document)


def test_a_node_runs_its_tests_as_they_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.ap").write_text(SCRIPT)
    asked = read_script(
        str(tmp_path / "s.ap"), ["N=3"], seed=7, res=False, counters="off", masks=("k-[0-9]+",)
    )
    document = document_of("run", "s", plan_of(asked), asked.program.digest, PoolSpec("slurm"))
    (out := tmp_path / "out").mkdir()
    made, monitor = Nodes(), Monitoring(0.5, 2)
    jobs = Jobs(out, SimulatedPool(1, made.duration_s, made.finish))
    Tests(asked, groups_of(asked.dry_run(), "s.ap"), jobs, document, monitor).run()
    run: list[tuple[ScriptOptions, Monitoring]] = []
    monkeypatch.setattr(tests, "run_script", lambda its, *_, monitor, **__: run.append((its, monitor)))
    for part in parts_of(out):
        tests.measure(part)
    assert [sorted(its.only or ()) for its, _ in run] == [["a"], ["b", "c"], ["d"]]
    for its, its_monitor in run:
        assert (plan_of(its), its_monitor) == (plan_of(asked), monitor)


def only(where: Path) -> list[list[str]]:
    return [part.task["only"] for part in parts_of(where / "out")]


def test_each_test_and_each_interleave_is_a_job_of_its_own(tmp_path: Path) -> None:
    made = Nodes()
    spread(tmp_path, SimulatedPool(2, made.duration_s, made.finish)).run()
    assert only(tmp_path) == [["a"], ["b", "c"], ["d"]]
    found = load_results(tmp_path / "out")
    assert list(found.measurements) == ["a", "b", "c", "d"]
    assert [len(rows) for rows in found.measurements.values()] == [2, 2, 2, 2]
    assert found.experiment["pool"]["ended"] == "complete"


def test_of_a_test_that_lost_its_node_only_the_new_attempt_counts(tmp_path: Path) -> None:
    made = Nodes()
    pool = SimulatedPool(2, made.duration_s, made.finish, [Death("node001", 0.5)])
    spread(tmp_path, pool).run()
    found = load_results(tmp_path / "out")
    assert [len(rows) for rows in found.measurements.values()] == [2, 2, 2, 2]
    assert {m.host for rows in found.measurements.values() for m in rows} == {"node002"}
    assert [part.task["attempt"] for part in parts_of(tmp_path / "out")] == [1, 1, 1, 2]


def test_a_test_that_fails_does_not_keep_the_others_from_being_run(tmp_path: Path) -> None:
    made = Nodes(error={"a": CommandFailed("given up: a")})
    with pytest.raises(CommandFailed, match="given up: a") as failed:
        spread(tmp_path, Telling(2, made.duration_s, made.finish)).run()
    assert failed.value.results == tmp_path / "out"  # whose table is shown before the error
    found = load_results(tmp_path / "out")
    assert [len(found.measurements[name]) for name in "bcd"] == [2, 2, 2]
    assert not Journal(tmp_path / "out").unfinished()
    assert found.experiment["pool"]["ended"] is None  # so that who goes on with it is told the same
    with pytest.raises(CommandFailed, match="given up: a"):
        spread(tmp_path, Telling(2, made.duration_s, made.finish)).run()
    assert len(parts_of(tmp_path / "out")) == 3


def test_what_was_run_is_not_run_again(tmp_path: Path) -> None:
    made = Nodes()
    spread(tmp_path, SimulatedPool(2, made.duration_s, made.finish)).run()
    spread(tmp_path, SimulatedPool(2, made.duration_s, made.finish)).run()
    assert len(only(tmp_path)) == 3


@pytest.mark.parametrize("line", ["CHECKPOINT x", "REBOOT", "TEST z 1\nCACHE reboot\nEXEC e\nDONE"])
def test_a_script_that_does_what_no_job_may_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "s.ap").write_text(f"{line}\n")
    asked = read_script(str(tmp_path / "s.ap"))
    with pytest.raises(UsageError, match=r"s\.ap: .* --pool"):
        groups_of(asked.dry_run(), "s.ap")


def test_the_plan_of_the_whole_script_is_kept(tmp_path: Path) -> None:
    made = Nodes()
    spread(tmp_path, SimulatedPool(1, made.duration_s, made.finish)).run()
    plan = json.loads((tmp_path / "out" / "experiment.json").read_text())["plan"]
    assert plan["kind"] == "script"
    assert "only" not in plan
