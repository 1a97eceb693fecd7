"""How workers, and the commands of one, become one value of a trial: against sums and maxima written by hand."""

from __future__ import annotations

import pytest

from etude.results.model import Measurement, from_line, join_trial, to_line
from etude.results.res import metric_of
from etude.results.trial_join import joins_of, kind_of
from support.builders import measurement

RATES = (1001.0, 1002.0, 1003.0, 1004.0)


def workers(name: str, unit: str, *values: float, asked: str = "") -> list[Measurement]:
    """One value a worker."""
    metric = [[value, unit, *([asked] if asked else [])] for value in values]
    return [measurement(worker=n, metrics={name: each}) for n, each in enumerate(metric)]


@pytest.mark.parametrize(
    ("name", "unit", "asked", "value", "how"),
    [
        ("rate", "1/s", "", 4010.0, "sum"),
        ("bandwidth", "B/s", "", 4010.0, "sum"),
        ("rate", "ops/sec", "", 4010.0, "sum"),
        ("rate", "Hz", "", 4010.0, "sum"),
        ("rate", "rps", "", 4010.0, "sum"),
        ("rate", "requests per second", "", 4010.0, "sum"),
        ("max_rate", "ops/sec", "", None, "none"),
        ("files", "1", "", 4010.0, "sum"),
        ("held", "B", "", 4010.0, "sum"),
        ("energy", "J", "", 4010.0, "sum"),
        ("took", "s", "", 1004.0, "max"),
        ("latency_p99", "s", "", None, "none"),
        ("p99.9", "s", "", None, "none"),
        ("median", "1/s", "", None, "none"),
        ("hit_ratio", "1", "", None, "none"),
        ("busy", "%", "", None, "none"),
        ("heat", "C", "", None, "none"),
        ("write_completion_minimum", "s", "", 1001.0, "min"),
        ("lat_min", "1", "", 1001.0, "min"),
        ("max latency", "1", "", 1004.0, "max"),
        ("max_rss", "B", "", 4010.0, "sum"),
        ("max_iops", "1/s", "", None, "none"),
        ("ops_per_min", "1/s", "", 4010.0, "sum"),
        ("minutes", "1", "", 4010.0, "sum"),
        ("avg_latency", "1", "", None, "none"),
        ("avg_latency", "s", "", 1004.0, "max"),
        ("avg_rate", "1/s", "", 4010.0, "sum"),
        ("latency_stddev", "s", "", None, "none"),
        ("latency_deviation", "1", "", None, "none"),
        ("free", "B", "", 1004.0, "max"),
        ("rate", "1/s", "max", 1004.0, "max"),
        ("rate", "1/s", "min", 1001.0, "min"),
        ("latency_p99", "s", "mean", 1002.5, "mean"),
        ("elapsed", "s", "", 1004.0, "max"),
        ("user", "s", "", 4010.0, "sum"),
        ("peak_memory", "B", "", 1004.0, "max"),
    ],
)
def test_workers_are_joined_by_unit_and_name_or_as_asked(
    name: str, unit: str, asked: str, value: float | None, how: str
) -> None:
    joined = join_trial(workers(name, unit, *RATES, asked=asked), name)
    assert joined == (value, 4, how)


@pytest.mark.parametrize(
    ("name", "unit", "value"),
    [
        ("rate", "1/s", None),
        ("took", "s", None),
        ("files", "1", 4.0),
        ("elapsed", "s", 4.0),
        ("peak_memory", "B", 3.0),
        ("cycles", "1", 4.0),
        ("disk_read_bytes", "B", 4.0),
        ("memory_free", "B", 3.0),
        ("lat_min", "s", 1.0),
        ("lat_max", "s", 3.0),
        ("lat_avg", "s", None),
    ],
)
def test_commands_that_ran_in_turn_add_only_where_that_means_something(
    name: str, unit: str, value: float | None
) -> None:
    rows = [measurement(metrics={name: [each, unit]}) for each in (1.0, 3.0)]
    assert join_trial(rows, name).value == value


def test_one_value_needs_no_joining() -> None:
    assert join_trial(workers("p99", "s", 0.5), "p99") == (0.5, 1, "")
    assert joins_of("p99", "s", "max") == ("max", "max")


def test_what_a_metric_asks_for_stands_in_its_rows() -> None:
    (row,) = workers("rate", "1/s", 5.0, asked="mean")
    assert to_line(row)["metrics"]["rate"] == [5.0, "1/s", "mean"]
    assert from_line(to_line(row)).metrics["rate"] == [5.0, "1/s", "mean"]
    assert metric_of("5 1/s mean") == [5, "1/s", "mean"]
    assert metric_of("5 1/s other") is None


@pytest.mark.parametrize(
    ("unit", "kind"),
    [
        ("ops/sec", "rate"),
        ("Hz", "rate"),
        ("IOPS", "rate"),
        ("qps", "rate"),
        ("bytes per second", "rate"),
        ("Mbit/s", "rate"),
        ("percent", "count"),
        ("count", "count"),
        ("seconds", "cost"),
        ("ratio", "ratio"),
    ],
)
def test_the_kind_of_a_metric_is_that_of_its_unit_by_whatever_name(unit: str, kind: str) -> None:
    assert kind_of(unit) == kind
