"""CPU time of named processes between two readings."""

from __future__ import annotations

from etude.machine.remote.host import Process, usage_metrics, used_ns

MS = 1_000_000


def process(pid: int, cpu_ms: int, threads: dict[int, int], *, began: int = 5, name: str = "nfsd") -> Process:
    return Process(pid, name, began, cpu_ms * MS, threads)


def test_it_is_exact_while_all_threads_live() -> None:
    assert used_ns([process(1, 10, {1: 11 * MS})], [process(1, 20, {1: 13 * MS, 2: 5})]) == 2 * MS + 5


def test_it_is_in_ticks_once_a_thread_has_ended() -> None:
    assert used_ns([process(1, 10, {1: 4, 2: 6})], [process(1, 30, {1: 9})]) == 20 * MS


def test_a_number_that_is_used_again_is_another_process() -> None:
    assert used_ns([process(1, 90, {1: 90 * MS})], [process(1, 0, {1: 3}, began=6)]) == 3


def test_each_name_is_a_metric_of_its_host() -> None:
    before = [process(1, 0, {1: 0}), process(2, 0, {2: 0}, name="a-name-of-15-ch")]
    after = [process(1, 0, {1: 5 * MS}), process(2, 0, {2: 3 * MS}, name="a-name-of-15-ch")]
    found, gone = usage_metrics("server", ["nfsd", "a-name-of-15-characters", "none"], before, after)
    *none, why = found.pop("server.none.cpu")
    assert none == [None, "s"]
    assert why
    assert found == {"server.nfsd.cpu": [0.005, "s"], "server.a-name-of-15-characters.cpu": [0.003, "s"]}
    assert gone == []


def test_a_name_whose_processes_have_all_ended_is_told() -> None:
    found, gone = usage_metrics("h", ["nfsd"], [process(1, 0, {})], [process(1, 0, {}, began=9)])
    assert len(gone) == 1
    assert gone[0].startswith("nfsd (process 1) ")
    assert found["h.nfsd.cpu"][0] is None
    assert usage_metrics("h", ["nfsd"], [process(1, 0, {}), process(2, 0, {})], [process(2, 0, {})])[1] == []
