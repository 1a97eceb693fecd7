"""The loop of a controller, over this machine as a pool: what is repeated, where, how often, and by whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from etude.cluster.job_loop import EndedJob, JobLoop, Losses
from etude.cluster.pool.job import MAX_ATTEMPTS, NODE_UNSUITABLE, RETRYABLE, How, Job, JobEnd
from etude.cluster.pool.journal import Journal, JournaledPool
from etude.cluster.pool.local import LocalPool
from etude.errors import CommandFailed, EtudeError


@dataclass(frozen=True)
class Piece:
    key: str
    attempt: int


class Nodes(LocalPool):
    """This machine, as `nodes` nodes by turns, with a scheduler that ends jobs as it is told to."""

    nodes = 3

    def __init__(self, place: Path, ends: Callable[[str, int], How | None]) -> None:
        super().__init__(lock=place / "lock")
        self._ends, self.jobs, self._ids = ends, list[Job](), dict[str, int]()

    def width(self, nodes: int = 1) -> int:
        return self.nodes // nodes

    def submit(self, job: Job) -> str:
        id = super().submit(job)
        self.jobs.append(job)
        self._ids[id] = len(self.jobs)
        return id

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        return [self._told(each) for each in super().ended(timeout_s)]

    def _told(self, end: JobEnd) -> JobEnd:
        number = self._ids.get(end.id, 0)
        how = self._ends(self.jobs[number - 1].name, number) if number else None
        return replace(end, how=how or end.how, nodes=(f"n{number}",))


def work_of(job: Job) -> Piece:
    key, _, attempt = job.place.name.rpartition("-")
    return Piece(key, int(attempt))


class Controller:
    """Submits each piece until one of its jobs ends for good."""

    def __init__(self, place: Path, pool: LocalPool, pieces: Sequence[str], line: str = "true") -> None:
        self.place, self.line, self.left = place, line, list(pieces)
        self.ends: list[EndedJob[Piece]] = []
        self.loop = JobLoop(JournaledPool(pool, Journal(place)), work_of)
        self.error: EtudeError | None = None

    def submit(self) -> None:
        pending = {each.key for each in self.loop.under_way.values()}
        for key in self.left:
            if key not in pending:
                piece = Piece(key, self.loop.attempt(key))
                place = self.place / f"{key}-{piece.attempt}"
                job = Job(key, ("sh", "-c", f"echo {key} >>ran; {self.line}"), place, self.place)
                self.loop.submit(piece, job, key)

    def store(self, ended: EndedJob[Piece]) -> EtudeError | None:
        self.ends.append(ended)
        if not ended.again:
            self.left.remove(ended.work.key)
        return self.error

    def run(self) -> EtudeError | None:
        return self.loop.follow(self.submit, self.store)

    @property
    def jobs(self) -> list[tuple[str, set[str]]]:
        """Attempts in the journal, with the nodes that each avoids."""
        return [(each.job.place.name, set(each.job.avoid)) for each in self.loop.journal.jobs]


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Callable[..., Controller]]:
    pools = []

    def made(ends: Callable[[str, int], How | None], *pieces: str, line: str = "true") -> Controller:
        pools.append(Nodes(tmp_path, ends))
        return Controller(tmp_path, pools[-1], pieces, line)

    yield made
    for pool in pools:
        pool.close()


def first_job(how: How) -> Callable[[str, int], How | None]:
    return lambda name, number: how if number == 1 else None


def test_a_preempted_job_is_repeated_and_its_node_is_not_avoided(control: Callable[..., Controller]) -> None:
    made = control(first_job("preempted"), "a")
    assert made.run() is None
    assert [(each.end.how, each.again) for each in made.ends] == [("preempted", True), ("done", False)]
    assert made.jobs == [("a-1", set()), ("a-2", set())]


def test_a_lost_node_is_avoided_by_the_work_that_lost_it(control: Callable[..., Controller]) -> None:
    made = control(first_job("node-lost"), "a", "b")
    assert made.run() is None
    assert made.jobs == [("a-1", set()), ("b-1", set()), ("a-2", {"n1"})]
    made.left.append("c")
    made.run()
    assert made.jobs[-1] == ("c-1", set())


@pytest.mark.parametrize("how", sorted(NODE_UNSUITABLE))
def test_a_node_that_runs_no_job_of_this_kind_is_avoided_by_all(
    control: Callable[..., Controller], how: How
) -> None:
    made = control(first_job(how), "a", "b")
    made.run()
    made.left.append("c")
    made.run()
    assert made.jobs[2:] == [("a-2", {"n1"}), ("c-1", {"n1"})]


def test_nodes_are_avoided_only_while_there_are_others(
    control: Callable[..., Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Nodes, "nodes", 1)
    made = control(first_job("node-lost"), "a")
    made.run()
    assert made.jobs == [("a-1", set()), ("a-2", set())]


@pytest.mark.parametrize("how", sorted(RETRYABLE))
def test_what_loses_its_node_is_repeated_up_to_the_maximum(
    control: Callable[..., Controller], how: How
) -> None:
    made = control(lambda name, number: how, "a")
    assert made.run() is None
    assert [each.again for each in made.ends] == [True] * (MAX_ATTEMPTS - 1) + [False]
    assert made.loop.attempt("a") == 1, "whoever submits it again begins to count anew"


def test_a_failed_job_is_not_repeated_and_forgets_no_node_of_others(
    control: Callable[..., Controller],
) -> None:
    made = control(lambda name, number: "failed" if name == "a" else None, "a", "b")
    made.run()
    assert [(each.work.key, each.end.how, each.again) for each in made.ends] == [
        ("a", "failed", False),
        ("b", "done", False),
    ]


def test_a_controller_that_died_leaves_its_jobs_to_the_next_and_each_runs_once(
    control: Callable[..., Controller], tmp_path: Path
) -> None:
    line = "while [ ! -e go ]; do sleep 0.01; done"
    first = control(lambda name, number: None, "a", "b", line=line)
    first.submit()
    second = control(lambda name, number: None, "a", "b", line=line)
    assert second.loop.under_way == first.loop.under_way
    assert set(second.loop.under_way.values()) == {Piece("a", 1), Piece("b", 1)}
    (tmp_path / "go").touch()
    assert second.run() is None
    assert [(each.work.key, each.end.how) for each in second.ends] == [("a", "done"), ("b", "done")]
    assert (tmp_path / "ran").read_text() == "a\nb\n"
    assert second.loop.journal.unfinished() == ()


def test_a_result_is_stored_before_the_journal_has_its_end(control: Callable[..., Controller]) -> None:
    made = control(lambda name, number: None, "a")
    unfinished = []
    store = made.store

    def watched(ended: EndedJob[Piece]) -> EtudeError | None:
        unfinished.append([each.what for each in made.loop.journal.unfinished()])
        return store(ended)

    assert made.loop.follow(made.submit, watched) is None
    assert unfinished == [["a"]]
    assert made.loop.journal.unfinished() == ()


def test_losses_of_earlier_sessions_count(tmp_path: Path) -> None:
    pool = Nodes(tmp_path, lambda name, number: None)
    losses = {"a": Losses(2, frozenset({"n7"}))}
    loop = JobLoop(JournaledPool(pool, Journal(tmp_path)), work_of, losses)
    assert (loop.attempt("a"), loop.attempt("b")) == (3, 1)
    loop.submit(Piece("a", 3), Job("a", ("true",), tmp_path / "a-3", tmp_path), "a")
    assert pool.jobs[-1].avoid == {"n7"}
    pool.close()


def test_an_error_of_a_result_ends_the_loop_and_leaves_the_other_jobs_to_be_cancelled(
    control: Callable[..., Controller],
) -> None:
    made = control(lambda name, number: None, "a", "b")
    made.error = CommandFailed("a: exit status 1")
    assert made.run() is made.error
    assert [work.key for work, _ in made.loop.cancel("it failed")] == ["b"]
    ends = [each.ended for each in made.loop.journal.jobs]
    assert [end.how for end in ends if end is not None] == ["done", "cancelled"]


def test_as_many_jobs_are_free_as_nodes_that_fit_and_one_for_a_job_that_is_silently_dead(
    control: Callable[..., Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = control(lambda name, number: None, "a", line="sleep 1000")
    assert (made.loop.free(), made.loop.free(2)) == (3, 1)
    made.loop.unfit.add("n3")
    assert made.loop.free() == 2
    made.submit()
    assert made.loop.free() == 1
    monkeypatch.setattr(Nodes, "nodes", 2)
    assert (made.loop.running, made.loop.free()) == (1, 1), "its node is down, and its job not yet reported"
