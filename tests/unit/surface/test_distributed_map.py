"""Cells over a pool: each is measured once, whatever ends nodes, jobs and controllers, and lost ones are visible."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from etude.cluster.pool.job import How, JobEnd
from etude.cluster.pool.journal import Journal
from etude.cluster.pool.simulated import Death
from etude.errors import CommandFailed, InputError, MachineRefuses
from etude.peak.record import utc_now
from etude.surface.configuration_jobs import read_request
from etude.surface.distributed_map import DistributedDisplay, machine_findings, machines_apart
from etude.surface.factors import Configuration, Factor, Space
from etude.surface.map_store import Attempt, MapStore, define_map, open_map, surface_result_of
from etude.surface.next_configuration import Rules, Visit
from etude.surface.run_map import MapBudget
from etude.surface.samples import Sample, known_samples
from support.charting import SPACE, lines, product
from support.golden import Golden
from support.spreading import Nodes, Response, mapped_over

WIDE = Space((Factor("a", "log", (1.0, 2.0, 4.0, 8.0)), Factor("b", "linear", (1.0, 2.0, 3.0))))


class Killed(BaseException):
    """What a controller that is killed does: nothing more."""


class Never(Nodes):
    """All of whose jobs are held before they begin."""

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        told = super().ended(timeout_s)
        for each in told:
            place = self.jobs[int(each.id) - 1].place
            (place / "node.json").unlink()
            (place / "sample.json").unlink()
            (place / "job.json").write_text("{}")
        return [replace(each, how="held", nodes=(), started_s=None, why="it was held") for each in told]


def test_each_cell_is_measured_once_on_the_nodes_that_there_are(tmp_path: Path) -> None:
    nodes = Nodes(2)
    kept = mapped_over(tmp_path, nodes)
    assert sorted(cell for cell, _ in nodes.ran) == list(SPACE)
    assert {node for _, node in nodes.ran} == {"node001", "node002"}
    assert {sample.cell: sample.value for sample in kept.samples()} == {cell: product(cell) for cell in SPACE}
    assert nodes.clock_s() == 180.0, "six cells of a minute, two at a time"
    assert Journal(tmp_path).unfinished() == ()


def test_each_line_says_its_machine_and_each_machine_is_a_sitting(tmp_path: Path) -> None:
    nodes = Nodes(2)
    document = mapped_over(tmp_path, nodes).document
    where = {tuple(line["surface"]["cell"]): line["host"] for line in lines(tmp_path)}
    assert where == dict(nodes.ran)
    sittings = {each["sitting"]: each for each in document["sittings"]}
    assert {each["host"] for each in sittings.values()} == {"node001", "node002"}
    assert document["machine"]["before"] == {"cpu": {"model": "one"}}
    for line in lines(tmp_path):
        assert sittings[line["sitting"]]["host"] == line["host"]
        assert sittings[line["sitting"]]["boot_id"] == line["boot_id"] == f"boot of {line['host']}"
    assert all(each["how_ended"] == "complete" for each in sittings.values())
    assert "several" not in document["surface"]["findings"]
    assert any(
        "measured on 2 machines (node001, node002)" in each for each in document["surface"]["findings"]
    )


def test_a_cell_whose_node_was_lost_is_measured_anew_elsewhere_and_the_attempt_stays(tmp_path: Path) -> None:
    told: list[str] = []
    nodes = Nodes(2, deaths=[Death("node001", 90.0)])
    display = DistributedDisplay(lost=lambda visit, ended: told.append(ended.how))
    kept = mapped_over(tmp_path, nodes, display=display)
    assert told == ["node-lost"]
    assert sorted(cell for cell, _ in nodes.ran) == list(SPACE)
    assert sorted(sample.cell for sample in kept.samples()) == list(SPACE)
    (lost,) = (line for line in kept.attempts() if line.lost)
    assert (lost.lost, lost.host, lost.sample.state, lost.sample.cost_s) == (
        "node-lost",
        "node001",
        "failed",
        30.0,
    )
    again = kept.attempt_place(lost.sample.cell, last=True)
    assert again.name == "attempt-2"
    assert (again / "sample.json").exists()
    assert dict(nodes.ran)[lost.sample.cell] == "node002"
    spent = sum(cost.cost_s for cost in surface_result_of(MapStore(tmp_path)).costs)
    assert spent == 6 * 60.0 + 30.0, "what was lost counts as benchmarking time"


def test_a_cell_is_not_given_to_the_node_that_was_lost_under_it(tmp_path: Path) -> None:
    nodes = Nodes(3, deaths=[Death("node001", 30.0, 31.0)])
    mapped_over(tmp_path, nodes)
    again = next(job for job in nodes.jobs if job.place.name == "attempt-2")
    assert again.avoid == {"node001"}


class Renamed(Nodes):
    """Nodes whose host names are not their names in the pool."""

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        told = super().ended(timeout_s)
        for each in told:
            path = self.jobs[int(each.id) - 1].place / "node.json"
            path.write_text(json.dumps({"host": f"{each.nodes[0]}.example", "boot_id": "b"}))
        return told


def test_a_later_session_avoids_the_node_that_was_lost_by_its_name_in_the_pool(tmp_path: Path) -> None:
    nodes = Renamed(3, ends=lambda cell, node: "node-lost" if node == "node002" else None)
    mapped_over(tmp_path, nodes, means=MapBudget({}, left_s=lambda: 300.0 if not nodes.clock_s() else 0.0))
    (lost,) = (line for line in MapStore(tmp_path).attempts() if line.lost)
    assert lost.host == "node002.example"
    nodes = Renamed(3)
    mapped_over(tmp_path, nodes)
    again = next(job for job in nodes.jobs if job.place.name == "attempt-2")
    assert again.avoid == {"node002"}


def test_a_cell_that_loses_three_nodes_has_failed(tmp_path: Path) -> None:
    nodes = Nodes(2, ends=lambda cell, node: "node-lost" if cell == (1, 1) else None)
    kept = mapped_over(tmp_path, nodes)
    bad = next(sample for sample in kept.samples() if sample.cell == (1, 1))
    assert bad.state == "failed"
    assert bad.why.startswith("3 nodes ")
    assert "node-lost" in bad.why
    assert [line.lost for line in kept.attempts() if line.sample.cell == (1, 1)] == [
        "node-lost",
        "node-lost",
        "",
    ]
    mapped_over(tmp_path, Nodes(2), retry=True)
    assert next(s for s in MapStore(tmp_path).samples()[::-1] if s.cell == (1, 1)).state == "measured"


def test_a_node_that_can_run_no_cell_is_left_alone(tmp_path: Path) -> None:
    nodes = Nodes(3, ends=lambda cell, node: "no-etude" if node == "node002" else None)
    kept = mapped_over(tmp_path, nodes)
    assert {sample.state for sample in kept.samples()} == {"measured"}
    assert len(kept.samples()) == SPACE.size
    (at,) = (n for n, line in enumerate(kept.attempts()) if line.lost == "no-etude")
    assert all(job.avoid == {"node002"} for job in nodes.jobs[-2:]), at


@pytest.mark.parametrize("when", range(1, 112, 10))
def test_a_controller_that_is_killed_loses_nothing_and_measures_nothing_twice(
    tmp_path: Path, when: int
) -> None:
    """Whenever that is: before or after each line that it writes."""
    nodes = Nodes(3, deaths=[Death("node002", 100.0, 200.0)])
    count = itertools.count(1)

    def tick(*_: object) -> None:
        if next(count) == when:
            raise Killed

    class Ticking(Journal):
        def _append(self, line: object) -> None:
            tick()
            super()._append(line)  # type: ignore[arg-type]
            tick()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("support.spreading.Journal", Ticking)
        display = DistributedDisplay(begins=tick, made=lambda *_: tick(), lost=lambda *_: tick())
        try:
            mapped_over(tmp_path, nodes, space=WIDE, display=display)
        except Killed:
            pass
        else:
            assert next(count) < when
    kept = mapped_over(tmp_path, nodes, space=WIDE)
    assert sorted(sample.cell for sample in kept.samples()) == sorted(WIDE)
    assert max(Counter(cell for cell, _ in nodes.ran).values()) == 1
    assert Journal(tmp_path).unfinished() == ()


def test_what_is_under_way_counts_in_the_budget(tmp_path: Path) -> None:
    nodes = Nodes(4)
    kept = mapped_over(tmp_path, nodes, space=WIDE, means=MapBudget({}, budget_s=400.0))
    assert "budget" in kept.document["surface"]["why"]
    assert len(kept.samples()) == 7, "as many as what is under way leaves time for"


def test_a_budget_is_not_spent_once_on_each_node_before_a_cell_has_told_its_cost(tmp_path: Path) -> None:
    kept = mapped_over(tmp_path, Nodes(4), space=WIDE, means=MapBudget({}, budget_s=100.0))
    assert len(kept.samples()) == 2, "one, and one with what is left"
    kept = mapped_over(tmp_path / "b", Nodes(4), space=WIDE, means=MapBudget({}, budget_s=100.0, cell_s=40.0))
    assert len(kept.samples()) == 3, "as many as it is enough for, by what each may take"


def test_cells_of_two_nodes_are_as_many_at_once_as_there_are_pairs(tmp_path: Path) -> None:
    nodes = Nodes(5)
    most = []
    display = DistributedDisplay(looks=lambda cells, running: most.append(len(cells)))
    mapped_over(tmp_path, nodes, space=WIDE, response=Response(nodes=2), display=display)
    assert {job.nodes for job in nodes.jobs} == {2}
    assert max(most) == 2


def test_nodes_are_avoided_only_while_enough_are_left_for_a_cell(tmp_path: Path) -> None:
    nodes = Nodes(2, ends=lambda cell, node: "no-space" if len(nodes.jobs) < 3 else None)
    kept = mapped_over(tmp_path, nodes, response=Response(nodes=2))
    assert len(kept.samples()) == SPACE.size
    assert {job.avoid for job in nodes.jobs} == {frozenset()}


def test_what_cells_taught_in_an_earlier_sitting_is_told_to_the_next(tmp_path: Path) -> None:
    mapped_over(tmp_path, Nodes(2), rules=Rules(count=2))
    response = Response()
    mapped_over(tmp_path, Nodes(1), rules=Rules(count=2), response=response)
    assert len(response.taught) == 1


def test_a_job_that_finds_another_spec_ends_the_map_and_is_no_cell_of_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it was failed"):
        mapped_over(tmp_path, Nodes(2, ends={(2, 1): "failed"}, code=InputError.exit_code))
    assert (2, 1) not in {sample.cell for sample in MapStore(tmp_path).samples()}
    mapped_over(tmp_path, Nodes(2))
    assert {sample.state for sample in MapStore(tmp_path).samples()} == {"measured"}


def test_a_job_that_never_ran_was_on_no_machine(tmp_path: Path) -> None:
    with pytest.raises(MachineRefuses):
        mapped_over(tmp_path, Never(2))
    assert [sitting["host"] for sitting in MapStore(tmp_path).document["sittings"]] == [""]


def test_no_cell_is_begun_that_would_not_end_before_the_deadline(tmp_path: Path) -> None:
    nodes = Nodes(2)
    kept = mapped_over(
        tmp_path, nodes, space=WIDE, means=MapBudget({}, left_s=lambda: 200.0 - nodes.clock_s())
    )
    assert nodes.clock_s() == 180.0
    assert len(kept.samples()) == 6
    assert "before the deadline" in kept.document["surface"]["why"]


def test_a_job_that_waits_at_the_deadline_is_withdrawn_and_its_cell_left_for_later(tmp_path: Path) -> None:
    nodes = Nodes(2, deaths=[Death("node002", 0.5)])
    nodes.width = lambda nodes=1: 2  # type: ignore[method-assign]  # nobody knows yet that one is dead
    kept = mapped_over(tmp_path, nodes, means=MapBudget({}, left_s=lambda: 130.0 - nodes.clock_s()))
    assert not nodes.running()
    waited = [line for line in kept.attempts() if line.lost == "interrupted"]
    assert waited
    assert not {line.sample.cell for line in waited} & {sample.cell for sample in kept.samples()}
    kept = mapped_over(tmp_path, Nodes(2))
    assert sorted(sample.cell for sample in kept.samples()) == list(SPACE)


def test_a_cell_may_take_what_one_may_and_no_more_than_is_left_of_all(tmp_path: Path) -> None:
    nodes = Nodes(1)
    mapped_over(tmp_path, nodes, means=MapBudget({}, budget_s=250.0, cell_s=100.0))
    assert [read_request(job.place).left_s for job in nodes.jobs][:4] == [100.0, 100.0, 100.0, 70.0]


def test_a_pool_that_takes_no_more_ends_the_map_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(MachineRefuses, match="it was held"):
        mapped_over(tmp_path, Nodes(2, ends={(2, 1): "held"}))
    kept = MapStore(tmp_path)
    assert (2, 1) not in {sample.cell for sample in kept.samples()}
    mapped_over(tmp_path, Nodes(2))
    assert len(MapStore(tmp_path).samples()) == SPACE.size


@pytest.mark.parametrize("how", ["cancelled", "out-of-time", "failed"])
def test_a_job_that_others_end_is_a_failed_cell(tmp_path: Path, how: str) -> None:
    kept = mapped_over(tmp_path, Nodes(2, ends={(1, 0): how}))  # type: ignore[dict-item]
    bad = [sample for sample in kept.samples() if sample.state == "failed"]
    assert [(sample.cell, sample.why) for sample in bad] == [((1, 0), f"it was {how}")]
    assert len(kept.samples()) == SPACE.size


def test_where_all_jobs_are_ended_by_others_so_is_the_map(tmp_path: Path) -> None:
    done: list[Configuration] = []

    def ends(cell: Configuration, node: str) -> str | None:
        if len(done) < 2 and cell not in done:
            done.append(cell)
        return None if cell in done else "cancelled"

    nodes = Nodes(1, ends=ends)  # type: ignore[arg-type]
    with pytest.raises(MachineRefuses, match=r"^3 jobs .*cancelled"):
        mapped_over(tmp_path, nodes)
    assert not nodes.running()
    with pytest.raises(CommandFailed, match=r"\b3 configurations"):
        mapped_over(tmp_path / "b", Nodes(1, ends=lambda cell, node: "cancelled"))


def test_jobs_that_others_end_now_and_then_do_not_end_the_map(tmp_path: Path) -> None:
    met: dict[Configuration, bool] = {}

    def ends(cell: Configuration, node: str) -> How | None:
        return "cancelled" if met.setdefault(cell, len(met) % 2 == 1) else None

    kept = mapped_over(tmp_path, Nodes(1, ends=ends), space=WIDE)
    states = Counter(sample.state for sample in kept.samples())
    assert states == {"measured": WIDE.size / 2, "failed": WIDE.size / 2}


def test_the_choice_counts_cells_under_way(tmp_path: Path) -> None:
    nodes = Nodes(3)
    kept = mapped_over(tmp_path, nodes, space=WIDE, rules=Rules(count=5))
    assert len(kept.samples()) == len(nodes.jobs) == 5
    assert nodes.clock_s() == 120.0, "three at once, then two"


def test_a_machine_whose_cells_are_apart_is_named(golden: Golden) -> None:
    draw = np.random.default_rng(1)
    hosts = [f"n{n % 4}" for n in range(40)]
    off = draw.normal(0.0, 0.02, 40)
    assert machines_apart(off, hosts) == []
    off[2::4] += 0.1
    (said,) = machines_apart(off, hosts)
    assert re.search(r"\bn2\b.*\b1[01]\.?\d* %", said)
    golden(said)
    few = [host if number < 12 else "n0" for number, host in enumerate(hosts)]
    assert machines_apart(off[:12], few[:12]) == [], "three cells on each tell nothing"


def test_equal_machines_are_seldom_named_apart() -> None:
    draw = np.random.default_rng(2)
    hosts = [f"n{n % 3}" for n in range(24)]
    named = sum(bool(machines_apart(draw.normal(0.0, 0.05, 24), hosts)) for _ in range(400))
    assert named / 400 < 0.08


def test_of_a_system_with_a_node_of_its_own_that_node_is_named_apart(tmp_path: Path) -> None:
    with open_map(tmp_path, define_map("made", WIDE, Rules(), Response(), ""), elsewhere=True) as kept:
        for number, cell in enumerate(WIDE):
            sample = Sample(cell, "measured", 100.0, 99.0, 101.0, 0.95, 60.0, 3)
            where = Attempt(f"client{number % 3}", "boot", utc_now(), system=f"system{number % 2}")
            kept.keep(Visit(cell, None, None, "why"), sample, where)
        off = [0.3 * (number % 2) + 0.01 * (number % 3) for number in range(WIDE.size)]
        left_out = SimpleNamespace(log=known_samples(kept.samples()).log - off)
        said = machine_findings(kept, SimpleNamespace(left_out=left_out))  # type: ignore[arg-type]
    assert [re.findall(r"configurations measured on (\w+)", each) for each in said][-1:] == [["system0"]]
