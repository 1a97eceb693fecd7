"""A search over a pool: one job, begun anew where it lost its node, and its directory as if it had been made here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from etude.cluster import worker
from etude.cluster.distributed.jobs import Jobs, document_of
from etude.cluster.distributed.part import parts_of
from etude.cluster.pool.job import Job, PoolSpec
from etude.cluster.pool.journal import Journal
from etude.cluster.pool.simulated import Death, SimulatedPool
from etude.errors import InputError
from etude.peak.distributed import search_on_pool
from etude.peak.search import Bench
from etude.peak.search_store import SearchSpec, SearchStore
from etude.peak.sources import of_harness, of_simulation
from support.builders import still_machine

WORDS = {"simulate": "mm1:500"}


@pytest.fixture(autouse=True)
def _still_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)


def done(job: Job, node: str) -> None:
    assert worker.run_part(job.place) == 0


def sought(within: float = 0.2) -> SearchSpec:
    source = of_simulation(WORDS["simulate"])
    return SearchSpec(source.name, replace(source.task, within=within), "binsearch", source.text)


def search(where: Path, pool: SimulatedPool, asked: SearchSpec) -> SearchStore:
    document = document_of("peak", asked.name, asked.plan(), "", PoolSpec("slurm"))
    return search_on_pool(Jobs(where, pool), of_simulation(WORDS["simulate"]), WORDS, asked, document)


def test_it_is_found_and_kept_as_if_it_had_been_made_here(tmp_path: Path) -> None:
    kept = search(tmp_path, SimulatedPool(2, lambda job, node: 1.0, done), sought())
    assert kept.answer is not None
    assert kept.answer.rate == pytest.approx(500.0, rel=0.25)
    assert kept.trials() == SearchStore(parts_of(tmp_path)[0].results).trials()
    assert kept.document["pool"]["kind"] == "slurm"


def test_a_search_that_lost_its_node_begins_anew_on_another(tmp_path: Path) -> None:
    pool = SimulatedPool(2, lambda job, node: 5.0, done, [Death("node001", 2.0)])
    kept = search(tmp_path, pool, sought())
    assert kept.answer is not None
    assert [part.task["attempt"] for part in parts_of(tmp_path)] == [1, 2]
    assert Journal(tmp_path).jobs[-1].job.avoid == {"node001"}


def test_what_was_found_is_not_searched_again_and_another_search_is_refused(tmp_path: Path) -> None:
    pool = SimulatedPool(1, lambda job, node: 1.0, done)
    first = search(tmp_path, pool, sought())
    assert search(tmp_path, pool, sought()).answer == first.answer
    assert len(parts_of(tmp_path)) == 1
    with pytest.raises(InputError, match="another search"):
        search(tmp_path, pool, sought(within=0.1))


def test_the_node_searches_with_the_factors_and_until_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = of_simulation(WORDS["simulate"])
    opened: list[dict[str, str]] = []

    class Made:
        name, task, text = "made", server.task, "made 1"

        def bench(self, factors: Mapping[str, str], place: Path) -> AbstractContextManager[Bench]:
            opened.append(dict(factors))
            return server.bench({}, place, (), 1)

    module = ModuleType("made_harness")
    module.Made = Made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_harness", module)
    words = {"harness": "made_harness:Made"}
    asked = replace(sought(), name="made", harness="made 1", factors={"n": "2"})
    document = document_of("peak", asked.name, asked.plan(), "", PoolSpec("slurm"))
    pool = SimulatedPool(1, lambda job, node: 1.0, done)
    past = datetime(2000, 1, 1, tzinfo=UTC)
    kept = search_on_pool(Jobs(tmp_path, pool), of_harness(words["harness"]), words, asked, document, past)
    assert opened == [{"n": "2"}]
    assert kept.sought.factors == {"n": "2"}
    assert kept.trials() == []
    assert kept.answer is not None
    assert (kept.answer.rate, kept.answer.kept) == (None, False)
