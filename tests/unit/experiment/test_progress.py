"""From measurements to samples: workers joined, trials in order, pairs within block and session."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.experiment.progress import paired_samples, trials_of
from etude.results.model import METRICS, Measurement, join_trial, metric_kind
from support.builders import measurement


def workers(metric: str, *values: float | None, unit: str = "s") -> list[Measurement]:
    return [
        measurement(worker=i, metrics={metric: [v, unit] if v is not None else [None, unit, "not here"]})
        for i, v in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("metric", "joined"),
    [
        ("elapsed", 3.0),
        ("user", 6.0),
        ("system", 6.0),
        ("minor_faults", 6.0),
        ("peak_memory", 3.0),
        ("tree_cpu", 1.0),
        ("cycles", 1.0),
        ("one_of_the_programs_own", 3.0),
    ],
)
def test_elapsed_is_the_longest_workers_and_cpu_time_is_summed(metric: str, joined: float) -> None:
    assert join_trial(workers(metric, 1.0, 3.0, 2.0), metric).value == joined


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_one_worker_is_its_own_join(metric: str) -> None:
    assert join_trial(workers(metric, 2.0), metric).value == 2.0


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_what_no_worker_has_is_none_and_never_zero(metric: str) -> None:
    assert join_trial(workers(metric, None, None), metric).value is None
    assert join_trial([measurement(metrics={})], metric).value is None


def test_workers_without_a_value_are_left_out_of_the_join() -> None:
    assert join_trial(workers("user", None, 2.0, 3.0), "user").value == 5.0
    assert join_trial([*workers("tree_cpu", 4.0), measurement(worker=1, metrics={})], "tree_cpu").value == 4.0


def commands(metric: str, *workers: tuple[float | None, ...], unit: str = "s") -> list[Measurement]:
    """Each worker's commands, one after the other; what a command lacks is left out."""
    return [
        measurement(worker=worker, metrics={} if value is None else {metric: [value, unit]})
        for worker, values in enumerate(workers)
        for value in values
    ]


@pytest.mark.parametrize(
    ("metric", "joined"),
    [
        ("elapsed", 9.0),  # of 1 + 2 + 3 and 4 + 5, not 4 + 5 of the longest at each place, and not their sum
        ("user", 15.0),
        ("system", 15.0),
        ("minor_faults", 15.0),
        ("peak_memory", 5.0),
        ("tree_cpu", 6.0),
        ("one_of_the_programs_own", None),
    ],
)
def test_commands_of_a_worker_are_joined_before_the_workers(metric: str, joined: float | None) -> None:
    assert join_trial(commands(metric, (1.0, 2.0, 3.0), (4.0, 5.0)), metric).value == joined


def test_the_longest_worker_is_the_one_whose_commands_took_longest_together() -> None:
    rows = commands("elapsed", (3.0, 3.0), (5.0,))
    assert join_trial(rows, "elapsed").value == 6.0
    assert join_trial([rows[0], rows[2], rows[1]], "elapsed").value == 6.0


@pytest.mark.parametrize(("metric", "joined"), [("elapsed", 5.0), ("peak_memory", 3.0), ("tree_cpu", 5.0)])
def test_several_commands_of_one_worker_are_a_trial(metric: str, joined: float) -> None:
    assert trials_of(commands(metric, (2.0, 3.0)))[0].value(metric) == joined


def test_commands_without_a_value_are_left_out_of_the_join() -> None:
    assert join_trial(commands("rate", (None, 2.0), (None, None)), "rate").value == 2.0
    assert join_trial(commands("user", (None, 2.0, 3.0), (4.0,)), "user").value == 9.0


values = st.lists(st.floats(0, 1e6), min_size=1, max_size=4)


@given(st.lists(values, min_size=1, max_size=4))
def test_elapsed_is_the_longest_sum_and_cpu_time_the_sum_of_all(workers: list[list[float]]) -> None:
    longest, total = max(map(sum, workers)), sum(map(sum, workers))
    assert join_trial(commands("elapsed", *map(tuple, workers)), "elapsed").value == pytest.approx(longest)
    assert join_trial(commands("user", *map(tuple, workers)), "user").value == pytest.approx(total)


def test_a_trial_has_the_metrics_of_all_its_commands() -> None:
    rows = [
        measurement(metrics={"a": [1, "s"]}),
        measurement(worker=1, metrics={"b": [1, "s"], "a": [2, "s"]}),
    ]
    assert trials_of(rows)[0].metrics() == ("a", "b")


def test_a_programs_own_metric_is_a_cost_in_its_own_unit() -> None:
    kind = metric_kind("latency", "ms")
    assert (kind.unit, kind.kind, kind.join, kind.commands) == ("ms", "cost", "max", "none")


def test_trials_gather_their_workers_in_order() -> None:
    rows = [measurement(trial=trial, worker=worker) for trial in (0, 1, 2) for worker in (0, 1)]
    trials = trials_of(rows)
    assert [[(m.trial, m.worker) for m in t.measurements] for t in trials] == [
        [(0, 0), (0, 1)],
        [(1, 0), (1, 1)],
        [(2, 0), (2, 1)],
    ]


def at(sitting: int, block: int, elapsed_s: float | None, **changes: Any) -> Measurement:
    return measurement(
        trial=100 * sitting + block, block=block, sitting=sitting, elapsed_s=elapsed_s, **changes
    )


def test_pairs_are_formed_within_block_and_sitting_only() -> None:
    a = [at(1, 1, 1.0), at(1, 2, 2.0), at(2, 3, 3.0), at(2, 5, 5.0)]
    b = [at(1, 1, 10.0), at(2, 2, 20.0), at(2, 3, 30.0), at(2, 4, 40.0)]
    assert paired_samples([trials_of(a), trials_of(b)], "elapsed") == ([1.0, 3.0], [10.0, 30.0])


def test_a_block_that_lacks_a_value_or_was_set_aside_joins_no_pair() -> None:
    a = [at(1, 0, 9.0, kept=False), at(1, 1, 1.0), at(1, 2, None), at(1, 3, 3.0)]
    b = [at(1, 0, 9.0), at(1, 1, 10.0), at(1, 2, 20.0), at(1, 3, 30.0, kept=False)]
    assert paired_samples([trials_of(a), trials_of(b)], "elapsed") == ([1.0], [10.0])


blocks = st.sets(st.tuples(st.integers(1, 3), st.integers(1, 8)))


@given(blocks, blocks)
def test_pairs_are_the_shared_blocks_of_each_sitting_in_order(
    in_a: set[tuple[int, int]], in_b: set[tuple[int, int]]
) -> None:
    def rows(places: set[tuple[int, int]]) -> list[Measurement]:
        return [at(sitting, block, 100.0 * sitting + block) for sitting, block in sorted(places)]

    a, b = paired_samples([trials_of(rows(in_a)), trials_of(rows(in_b))], "elapsed")
    assert a == b == [100.0 * sitting + block for sitting, block in sorted(in_a & in_b)]


@pytest.mark.parametrize(
    ("changes", "says", "failed", "unfinished"),
    [
        ({}, "exit status 0", False, False),
        ({"exit_status": 3}, "exit status 3", True, False),
        ({"exit_status": None, "signal": 11}, "killed by signal 11 (SIGSEGV)", True, False),
        ({"exit_status": None, "signal": 64}, "killed by signal 64 (SIGRTMAX)", True, False),
        ({"exit_status": None, "signal": 99}, "killed by signal 99 (99)", True, False),
        ({"exit_status": None, "signal": 15, "timed_out": True}, "ended after its timeout", True, True),
        ({"exit_status": None, "signal": 15, "cancelled": True}, "ended with the experiment", True, True),
        ({"exit_status": None, "error": "no such file"}, "not started: no such file", True, True),
    ],
)
def test_how_a_command_ended_is_said_in_words(
    changes: dict[str, Any], says: str, failed: bool, unfinished: bool
) -> None:
    row = measurement(**changes)
    assert (row.ending(), row.failed, row.unfinished) == (says, failed, unfinished)
