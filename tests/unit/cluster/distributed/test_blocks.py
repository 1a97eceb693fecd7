"""Blocks of an experiment over a pool: as many as asked, nothing lost, each machine a block of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cluster.distributed import blocks
from etude.cluster.distributed.blocks import MIN_BLOCKS, Blocks, split_blocks
from etude.cluster.distributed.jobs import Jobs
from etude.cluster.distributed.part import new_part, parts_of
from etude.cluster.distributed.request import document_of, stored_request
from etude.cluster.pool.job import MAX_ATTEMPTS, JobEnd
from etude.cluster.pool.journal import Journal
from etude.cluster.pool.pool_config import PoolSpec
from etude.cluster.pool.simulated import Death, SimulatedPool
from etude.cluster.pool.slurm.commands import SlurmUnreachable
from etude.errors import CommandFailed, MachineRefuses, UsageError
from etude.experiment.plan import Plan, digest, make_plan, to_document
from etude.experiment.test import Test
from etude.results.reader import load_results
from support.builders import still_machine
from support.nodes import Nodes, sittings
from support.telling import Telling


@pytest.fixture(autouse=True)
def _still_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)


def plan_of(*tests: str, **options: Any) -> Plan:
    return make_plan([Test(name, (name,)) for name in tests], seed=1, **options)


def spread(plan: Plan, where: Path, pool: SimulatedPool, said: list[str] | None = None) -> Blocks:
    document = document_of("bench", plan.name, to_document(plan), digest(plan), PoolSpec("slurm"))
    say = [].append if said is None else said.append
    return Blocks(plan, Jobs(where, pool, say=say), document, None, say)


def pool_of(nodes: Nodes, count: int = 3, deaths: Sequence[Death] = ()) -> SimulatedPool:
    return SimulatedPool(count, nodes.duration_s, nodes.finish, deaths)


def kept(where: Path, test: str) -> int:
    return sum(m.kept for m in load_results(where).measurements[test])


def wobble(block: int) -> float:
    """Noise of one percent."""
    return 1.0 + 0.01 * math.sin(block * 2.4)


@pytest.mark.parametrize("schedule", ["blocks", "in-turn"])
@pytest.mark.parametrize(("trials", "nodes"), [(1, 3), (7, 3), (20, 3), (5, 1)])
def test_a_fixed_number_of_trials_is_made_exactly_and_dealt_to_the_nodes(
    tmp_path: Path, trials: int, nodes: int, schedule: str
) -> None:
    made = Nodes()
    plan = plan_of("a", "b", trials=trials, schedule=schedule)
    decisions = spread(plan, tmp_path, pool_of(made, nodes)).run()
    assert all(decision.enough for decision in decisions)
    assert [kept(tmp_path, name) for name in "ab"] == [trials, trials]
    assert len({s["host"] for s in sittings(tmp_path)}) == max(min(nodes, trials // MIN_BLOCKS), 1)
    assert not Journal(tmp_path).unfinished()
    assert json.loads((tmp_path / "experiment.json").read_text())["pool"]["ended"] == "complete"


def test_each_sitting_has_the_host_and_the_machine_of_its_node(tmp_path: Path) -> None:
    spread(plan_of("a", trials=6), tmp_path, pool_of(Nodes())).run()
    found = load_results(tmp_path)
    first, *others = found.experiment["sittings"]
    assert found.experiment["machine"]["before"] == {"of": first["host"]}
    assert [s["machine"] for s in others] == [{"of": s["host"]} for s in others]
    hosts = {s["sitting"]: s["host"] for s in found.experiment["sittings"]}
    assert all(hosts[m.sitting] == m.host for m in found.measurements["a"])


def test_the_order_is_another_in_each_job_and_the_same_for_the_same_seed(tmp_path: Path) -> None:
    seeds = []
    for where in (tmp_path / "one", tmp_path / "two"):
        where.mkdir()
        spread(plan_of("a", "b", trials=6), where, pool_of(Nodes())).run()
        seeds.append([part.task["plan"]["seed"] for part in parts_of(where)])
    assert len(set(seeds[0])) == 3
    assert seeds[0] == seeds[1]


def ratio(test: str, node: str, block: int) -> float:
    """Nodes of other levels, on which the ratio is another, too."""
    level = float(node[-1])
    return (level * (1 + level / 10) if test == "b" else level) * (wobble(block) if test == "b" else 1.0)


def test_a_ratio_that_is_another_on_each_machine_is_no_noise_for_the_stop_rule(tmp_path: Path) -> None:
    plan = plan_of("a", "b", min_trials=12, max_trials=60, precision=0.02)
    (decision,) = spread(plan, tmp_path, pool_of(Nodes(ratio))).run()
    assert decision.converged
    assert kept(tmp_path, "a") == 12


def test_levels_of_machines_are_no_noise_for_the_stop_rule_of_a_mean(tmp_path: Path) -> None:
    plan = plan_of("a", min_trials=12, max_trials=60, precision=0.05)
    values = Nodes(lambda test, node, block: float(node[-1]) + wobble(block) - 1.0)
    (decision,) = spread(plan, tmp_path, pool_of(values)).run()
    assert decision.converged
    assert kept(tmp_path, "a") == 12


def test_more_blocks_are_made_until_the_ratio_is_known_and_no_more_than_allowed(tmp_path: Path) -> None:
    plan = plan_of("a", "b", min_trials=6, max_trials=25, precision=0.0001, budget_s=1e9)
    (decision,) = spread(plan, tmp_path, pool_of(Nodes(ratio))).run()
    assert decision.converged is False
    assert kept(tmp_path, "a") == kept(tmp_path, "b") == 25


def test_of_a_lost_node_what_was_whole_is_kept_and_the_rest_is_measured_elsewhere(tmp_path: Path) -> None:
    made = Nodes()
    pool = pool_of(made, deaths=[Death("node002", 1.5)])
    spread(plan_of("a", "b", trials=9), tmp_path, pool).run()
    assert [kept(tmp_path, name) for name in "ab"] == [9, 9]
    how = {each.job.place.name: each.ended for each in Journal(tmp_path).jobs if each.ended}
    lost = [name for name, ended in how.items() if ended.how == "node-lost"]
    assert [node for name, node in made.begun if name in lost] == ["node002"]
    assert [s["how_ended"] for s in sittings(tmp_path)].count(None) == 1  # its one whole block counts
    assert [p.task["attempt"] for p in parts_of(tmp_path)] == [1, 1, 1, 2]
    assert Journal(tmp_path).jobs[-1].job.avoid == {"node002"}


class Died(BaseException):
    """The controller was killed."""


class Killing(SimulatedPool):
    """A pool during whose nth wait the controller is killed."""

    waits = 0
    at = 0

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        self.waits += 1
        if self.waits == self.at:
            raise Died
        return super().ended(timeout_s)


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_controller_that_was_killed_is_gone_on_with_and_nothing_is_measured_twice(
    tmp_path: Path, at: int
) -> None:
    made = Nodes(ratio)
    pool = Killing(3, made.duration_s, made.finish)
    pool.at = at
    plan = plan_of("a", "b", min_trials=7, max_trials=21, precision=0.0001, budget_s=1e9)
    with pytest.raises(Died):
        spread(plan, tmp_path, pool).run()
    document, spec = stored_request(tmp_path) or ({}, PoolSpec())
    assert (spec, document["pool"]["ended"]) == (PoolSpec("slurm"), None)
    spread(plan, tmp_path, pool).run()
    names = [name for name, _ in made.begun]
    assert len(set(names)) == len(names) == len(parts_of(tmp_path))
    assert kept(tmp_path, "a") == kept(tmp_path, "b") == 21


def test_nothing_is_begun_again_where_enough_was_measured(tmp_path: Path) -> None:
    made = Nodes()
    plan = plan_of("a", trials=6)
    spread(plan, tmp_path, pool_of(made)).run()
    before = len(made.begun)
    spread(plan, tmp_path, pool_of(made)).run()
    assert len(made.begun) == before


@pytest.mark.parametrize("error", [CommandFailed("a: exit status 1"), UsageError("metric x: none")])
def test_what_a_job_tells_is_told_and_no_job_is_left(
    tmp_path: Path, error: CommandFailed | UsageError
) -> None:
    made = Nodes(error={"a": error})
    pool = Telling(2, made.duration_s, made.finish)
    with pytest.raises(type(error), match=str(error)):
        spread(plan_of("a", trials=8), tmp_path, pool).run()
    assert not pool.running()
    assert not Journal(tmp_path).unfinished()


def test_nodes_that_die_one_after_the_other_end_it_in_one_line(tmp_path: Path) -> None:
    made = Nodes(left=0)
    deaths = [Death(f"node00{n}", 0.5 + n, math.inf) for n in range(1, 6)]
    pool = pool_of(made, 1)
    pool = SimulatedPool(5, lambda job, node: made.duration_s(job, node) + 100, made.finish, deaths)
    with pytest.raises(MachineRefuses, match=f"attempt {MAX_ATTEMPTS} of {MAX_ATTEMPTS}"):
        spread(plan_of("a", trials=1), tmp_path, pool).run()


def test_a_job_that_ends_well_and_leaves_nothing_is_told_and_not_taken_for_measured(tmp_path: Path) -> None:
    pool = SimulatedPool(2, lambda job, node: 1.0, lambda job, node: None)
    with pytest.raises(MachineRefuses, match="has no results"):
        spread(plan_of("a", trials=4), tmp_path, pool).run()
    assert not Journal(tmp_path).unfinished()


def test_a_node_that_was_up_again_is_avoided_only_by_what_it_lost(tmp_path: Path) -> None:
    made = Nodes(ratio)
    pool = pool_of(made, 2, [Death("node001", 0.5, 0.6)])
    spread(plan_of("a", "b", min_trials=4, max_trials=12, precision=1e-9, budget_s=1e9), tmp_path, pool).run()
    jobs = {part.name: part.task["attempt"] for part in parts_of(tmp_path)}
    avoid = [(jobs[each.what], set(each.job.avoid)) for each in Journal(tmp_path).jobs]
    assert [attempt for attempt, _ in avoid][2:4] == [2, 1]
    assert all(nodes == ({"node001"} if attempt == 2 else set()) for attempt, nodes in avoid)


def test_a_part_whose_controller_died_is_gone_on_with_where_it_has_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = new_part(tmp_path, {"kind": "blocks", "plan": {}, "command_line": []})
    (part.results).mkdir()
    (part.results / "experiment.json").write_text("{}")
    gone_on: list[Path] = []
    monkeypatch.setattr(blocks, "resume", gone_on.append)
    blocks.measure(part)
    assert gone_on == [part.results]


class Silent(SimulatedPool):
    """A pool whose scheduler does not answer any more."""

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        raise SlurmUnreachable("Slurm has not answered")

    def cancel(self, id: str) -> None:
        raise AssertionError(f"job {id} was to go on")


def test_jobs_go_on_where_the_scheduler_is_silent(tmp_path: Path) -> None:
    made = Nodes()
    with pytest.raises(SlurmUnreachable):
        spread(plan_of("a", trials=6), tmp_path, Silent(3, made.duration_s, made.finish)).run()
    assert len(Journal(tmp_path).unfinished()) == 3


def test_a_node_that_was_to_blame_may_have_been_mended_when_it_is_gone_on_with(tmp_path: Path) -> None:
    made = Nodes()
    pool = Killing(2, made.duration_s, made.finish, [Death("node002", 0.5)])
    pool.at = 2
    with pytest.raises(Died):
        spread(plan_of("a", trials=8), tmp_path, pool).run()
    lost = [each.ended.how for each in Journal(tmp_path).jobs if each.ended]
    assert lost == ["node-lost"]
    spread(plan_of("a", trials=12), tmp_path, pool).run()
    assert not Journal(tmp_path).jobs[-1].job.avoid


@given(st.integers(1, 10_000), st.integers(1, 600))
def test_blocks_are_dealt_evenly_and_none_is_lost(blocks: int, jobs: int) -> None:
    found = split_blocks(blocks, jobs)
    assert sum(found) == blocks
    assert len(found) <= jobs
    assert max(found) - min(found) <= 1
    assert blocks < MIN_BLOCKS or min(found) >= MIN_BLOCKS
