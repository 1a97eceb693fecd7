"""Transforms of a relation: what they do, to plain data frames."""

from __future__ import annotations

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.results.model import join_trial
from etude.stats.expression import ExpressionError
from etude.stats.transforms import rows as transforms
from etude.stats.transforms.rows import NoColumnError
from support.builders import measurement

# Two epochs of two threads that run two commands each. The longest worker is not the one with the longest command.
FRAME = polars.DataFrame(
    {
        "trial": [1, 1, 1, 1, 2, 2, 2, 2],
        "worker": [0, 0, 1, 1, 0, 0, 1, 1],
        "command": ["tar", "make"] * 4,
        "status": [0, 0, 0, 0, 0, 2, 0, 0],
        "elapsed": [1.0, 5.0, 4.0, 3.0, 1.0, 4.0, 2.0, 2.0],
        "user": [0.5, 2.0, 1.0, 1.0, 0.5, 2.0, None, 1.0],
        "system": [0.25, 0.5, 0.25, 0.5, 0.25, 0.5, 0.25, 0.5],
        "peak_memory": [10.0, 30.0, 20.0, 20.0, 10.0, 30.0, 20.0, None],
    }
)


def test_rows_are_chosen_by_any_name_of_a_column() -> None:
    assert transforms.select(FRAME, '$command eq "make" && $thread == 2')["elapsed"].to_list() == [3.0, 2.0]
    assert transforms.select(FRAME, "$epoch == $last", {"last": 2.0}).height == 4
    assert transforms.select(FRAME, "$sys > 0.3 && $user > 0").height == 4
    with pytest.raises(ExpressionError, match=r"\$nosuch"):
        transforms.select(FRAME, "$nosuch")


def test_columns_are_chosen_and_renamed() -> None:
    assert transforms.project(FRAME, ["sys", "epoch", "sys"]).columns == ["system", "trial"]
    assert transforms.rename(FRAME, {"Elapsed": "seconds"}).columns[4] == "seconds"
    swapped = transforms.rename(FRAME, {"elapsed": "user", "user": "elapsed"})
    assert swapped["user"].to_list() == FRAME["elapsed"].to_list()
    with pytest.raises(ValueError, match="'user'"):
        transforms.rename(FRAME, {"elapsed": "user"})
    with pytest.raises(NoColumnError, match=r"'elapse'.* elapsed; .*\btrial"):
        transforms.project(FRAME, ["elapse"])


def test_a_column_is_computed_or_replaced() -> None:
    made = transforms.compute(FRAME, "cpu", "100 * ($user + $sys) / $elapsed")
    assert made["cpu"].to_list()[:2] == [75.0, 50.0]
    assert made["cpu"][6] is None  # its user is missing
    assert transforms.compute(FRAME, "elapsed", "$elapsed * 1000")["elapsed"][0] == 1000.0
    assert transforms.compute(FRAME, "slow", "$elapsed > 3")["slow"].to_list()[:3] == [0.0, 1.0, 1.0]
    assert transforms.compute(FRAME, "who", '"$command/$thread"')["who"][3] == "make/2"
    assert transforms.compute(FRAME, "big", "10 ** (400 * $elapsed)")["big"].null_count() == 8


def test_a_column_whose_name_is_no_variables_can_be_used() -> None:
    frame = polars.DataFrame({"time (ms)": [1.0, 3.0], "CPU%": [50.0, 60.0], "1st": [1.0, 2.0]})
    assert transforms.select(frame, "$time_ms > 2 && $cpu > 50 && $_1st == 2").height == 1


def test_groups_come_in_the_order_of_their_first_row() -> None:
    groups = transforms.group(FRAME, "command")
    assert [(value, part.height) for value, part in groups] == [("tar", 4), ("make", 4)]


def test_aggregates_leave_out_what_is_missing() -> None:
    found = transforms.aggregate(FRAME, {"elapsed": "max", "user": "sum", "command": "count"}, ["epoch"])
    assert found.rows() == [(1, 5.0, 4.5, 4), (2, 4.0, 3.5, 4)]
    everything = transforms.aggregate(FRAME, {"elapsed": "deviation", "user": "median"})
    assert everything.rows() == [(pytest.approx(1.488048), 1.0)]
    nothing = transforms.aggregate(
        polars.DataFrame({"x": [None]}, schema={"x": polars.Float64}), {"x": "sum"}
    )
    assert nothing["x"].to_list() == [None]
    with pytest.raises(ValueError, match=r"'avg'; .*\bsum, mean"):
        transforms.aggregate(FRAME, {"elapsed": "avg"})
    with pytest.raises(ValueError, match=r"^sum .*\bcommand\b"):
        transforms.aggregate(FRAME, {"command": "sum"})


def test_threads_are_joined_command_by_command() -> None:
    found = transforms.join_threads(FRAME)
    assert found.columns == FRAME.columns
    assert found.select("trial", "worker", "command", "elapsed", "user").rows() == [
        (1, 0, "tar", 4.0, 1.5),
        (1, 0, "make", 5.0, 3.0),
        (2, 0, "tar", 2.0, 0.5),
        (2, 0, "make", 4.0, 3.0),
    ]
    assert found["status"].to_list() == [0, 0, 0, 2]


def test_commands_are_summed_before_the_longest_worker_is_looked_for() -> None:
    found = transforms.unite_commands(FRAME)
    assert found.select("elapsed", "user", "system", "peak_memory", "command", "status").rows() == [
        (7.0, 4.5, 1.5, 30.0, "tar; make", 0),
        (5.0, 3.5, 1.5, 30.0, "tar; make", 2),
    ]
    # Threads first, as Auto-pilot's text may also be read, would say that trial 1 took 9 s.
    assert transforms.unite_commands(transforms.join_threads(FRAME))["elapsed"].to_list() == [9.0, 6.0]


def test_a_trial_of_one_row_stays_as_it_is_and_epochs_do_as_trials() -> None:
    one = FRAME.filter(polars.col("worker") == 0, polars.col("command") == "tar")
    assert transforms.unite_commands(one).equals(one)
    theirs = FRAME.rename({"trial": "epoch", "worker": "thread"})
    assert transforms.unite_commands(theirs)["elapsed"].to_list() == [7.0, 5.0]
    with pytest.raises(NoColumnError, match="'trial'"):
        transforms.unite_commands(FRAME.drop("trial"))


def test_trials_of_two_tests_are_not_joined() -> None:
    two = polars.concat([FRAME.with_columns(test=polars.lit(name)) for name in "ab"])
    assert transforms.unite_commands(two).height == 4


times = st.floats(0.0, 1e3).map(lambda x: round(x, 3)) | st.none()


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), times, times), min_size=1, max_size=12))
def test_a_trial_is_joined_as_results_are(rows: list[tuple[int, int, float | None, float | None]]) -> None:
    frame = polars.DataFrame(
        rows,
        schema={
            "trial": polars.Int64,
            "worker": polars.Int64,
            "elapsed": polars.Float64,
            "user": polars.Float64,
        },
        orient="row",
    )
    found = transforms.unite_commands(frame)
    for trial, elapsed, user in found.select("trial", "elapsed", "user").iter_rows():
        lines = [
            measurement(trial=t, worker=w, metrics={"elapsed": [e, "s"], "user": [u, "s"]})
            for t, w, e, u in rows
            if t == trial
        ]
        assert elapsed == pytest.approx(join_trial(lines, "elapsed").value)
        assert user == pytest.approx(join_trial(lines, "user").value)


def test_wait_and_the_share_of_the_cpu_are_those_of_each_row() -> None:
    made = transforms.wait_and_cpu(polars.DataFrame({"elapsed": [10.0, 5.0, 0.0], "user": 1.0, "sys": 1.5}))
    assert made["wait"].to_list() == [7.5, 2.5, -2.5]
    assert made["cpu"].to_list() == [25.0, 50.0, None]  # the mean is 37.5; the ratio of means would be 33.3
    assert transforms.wait_and_cpu(made.with_columns(io=1.0).drop("wait"))["io"].to_list() == [1.0] * 3
    assert transforms.wait_and_cpu(FRAME.drop("user")).columns == FRAME.drop("user").columns


def test_rows_are_warned_of_with_their_own_values() -> None:
    lines = transforms.warn_rows(FRAME, "$status != 0", 'Thread $thread: "$command", $status.')
    assert lines == ['Thread 1: "make", 2.']
    assert transforms.warn_rows(FRAME, "0", "x") == []
    assert transforms.warn_rows(FRAME, "$epoch == 2 && $sys < 0.3", "user $user")[1] == "user -"
    many = polars.DataFrame({"x": range(100)})
    *shown, more = transforms.warn_rows(many, "$x > 4", "$x")
    assert shown == [str(x) for x in range(5, 25)]
    assert "75" in more


def test_columns_and_values_are_warned_of_with_their_columns_figures() -> None:
    assert transforms.warn_columns(FRAME, "$sdev > 50", "$raw: $count values") == [
        "elapsed: 8 values",
        "user: 7 values",
    ]
    lines = transforms.warn_values(FRAME, "$value > $mean + 1.5 * $stddev", "$name, $value, epoch $epoch")
    assert lines == ["Elapsed, 5, epoch 1"]


def test_a_relation_is_text_in_three_ways() -> None:
    frame = polars.DataFrame({"s": ["a,b", None], "x": [1.0, 0.1], "k": [True, False], "n": [1, None]})
    assert transforms.csv(frame) == 's,x,k,n\n"a,b",1,true,1\n,0.1,false,'
    assert transforms.dump(frame) == ["s      x     k n", "a,b    1  true 1", "-    0.1 false -"]
    assert transforms.describe(frame).rows() == [
        ("s", "text", 1, 1, 1, None, None, None),
        ("x", "number", 2, 0, 2, 0.1, 0.55, 1.0),
        ("k", "flag", 2, 0, 2, None, None, None),
        ("n", "number", 1, 1, 1, 1.0, 1.0, 1.0),
    ]
    assert transforms.describe(frame, ["n"]).height == 1
    assert transforms.echo("$file has $n", {"file": "a.res", "n": 3.0}) == "a.res has 3"


@pytest.mark.more
def test_a_million_rows_are_no_matter() -> None:
    count = 10**6
    frame = polars.DataFrame(
        {
            "trial": polars.Series(range(count)) // 4,
            "worker": polars.Series(range(count)) % 2,
            "command": ["tar", "make"] * (count // 2),
            "elapsed": polars.Series(range(count)).cast(polars.Float64) / 7,
        }
    )
    chosen = transforms.select(frame, '$command eq "make" && $elapsed > 10 && $epoch % 2 == 0')
    assert chosen.height == 250_000 - 18
    assert transforms.unite_commands(frame).height == count // 4
