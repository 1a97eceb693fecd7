"""What the monitor wrote is read as it was written, and what is none of it is refused in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.results.monitor import Monitor, load, read
from support.monitored import START_NS, columns, head, process, second, write

NUMBERS = st.none() | st.floats(-1e15, 1e15) | st.integers(-(2**40), 2**40)
NAMES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1), min_size=1, unique=True
)


def text_of(*lines: Mapping[str, Any]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def monitor_of(*lines: Mapping[str, Any]) -> Monitor:
    found = read(Path("monitor-1.jsonl"), text_of(head(), *lines))
    assert found is not None
    return found


@st.composite
def stretches(draw: st.DrawFn) -> list[tuple[list[str], list[tuple[int, list[float | int | None]]]]]:
    """Columns lines, each with its readings: how long after that before, and the values."""
    return [
        (
            names,
            draw(
                st.lists(
                    st.tuples(
                        st.integers(1, 10**12), st.lists(NUMBERS, min_size=len(names), max_size=len(names))
                    )
                )
            ),
        )
        for names in draw(st.lists(NAMES, min_size=1, max_size=4))
    ]


@given(stretches())
def test_all_readings_come_back_over_several_columns_lines(found: Any) -> None:
    lines: list[dict[str, Any]] = []
    at, expected = 0, []
    for names, readings in found:
        lines.append(columns([(name, "1", "level") for name in names]))
        for gap, values in readings:
            at += gap
            lines.append({"ns": at, "v": values})
            expected.append((at, dict(zip(names, values, strict=True))))
    monitor = monitor_of(*lines)
    assert (monitor.edges_ns - START_NS).tolist() == [0, *(at for at, _ in expected)]
    for name, column in monitor.columns.items():
        given = [values.get(name) for _, values in expected]
        np.testing.assert_array_equal(
            column.values, np.array([np.nan if v is None else v for v in given], dtype=float)
        )


def test_what_stands_in_a_file_is_found_again(tmp_path: Path) -> None:
    top = [process(7, "make", 0.5, children=0.25, read=None, cgroup="/x")]
    lines = [
        head(),
        columns(temperature="no sensor"),
        second(1, top, cpu_user=1.5) | {"unseen": 0.125, "processes": 80},
        {"ns": 1_500_000_000, "level": 3, "kernel": "sda: I/O error"},
        {"end": True, "ns": 2, "samples": 1, "cost": {"cpu_s": 0.1, "share_of_a_core": 0.001}},
    ]
    write(tmp_path / "monitor-1.jsonl", lines)
    found = load(tmp_path, 1)
    assert found is not None
    assert (found.samples, found.every_s, found.cpus, found.boot_id, found.torn) == (1, 1.0, 2, "boot", False)
    assert found.absent == {"temperature": "no sensor"}
    assert found.rate("cpu.user").tolist() == [1.5]
    assert found.unseen_s.tolist() == [0.125]
    assert found.cost == {"cpu_s": 0.1, "share_of_a_core": 0.001}
    (message,) = found.messages
    assert (message.ns, message.level, message.text) == (START_NS + 1_500_000_000, 3, "sda: I/O error")
    ((entry,),) = found.top
    assert (entry.pid, entry.name, entry.cpu_s, entry.read_bytes, entry.cgroup) == (
        7,
        "make",
        0.75,
        None,
        "/x",
    )


def test_where_nothing_was_monitored_there_is_none(tmp_path: Path) -> None:
    assert load(tmp_path, 1) is None
    (tmp_path / "monitor-1.jsonl").write_bytes(json.dumps(head()).encode()[:30])
    assert load(tmp_path, 1) is None


@given(st.data())
def test_a_torn_last_line_is_dropped(data: st.DataObject) -> None:
    lines = [head(), columns(), second(1, [process(1, "a", 0.1)]), second(2)]
    whole = text_of(*lines)
    cut = data.draw(st.integers(0, len(whole)))
    found = read(Path("m"), whole[:cut])
    if found is None:
        assert cut < len(text_of(lines[0]))
    else:
        assert found.samples == max(0, whole[:cut].count(b"\n") - 2)
        assert found.torn == (whole[:cut][-1:] != b"\n")


@given(st.binary(), st.integers(0, 3), st.booleans())
def test_whatever_a_line_holds_it_is_read_or_refused_in_one_line(junk: bytes, place: int, more: bool) -> None:
    lines = [*text_of(head(), columns(), second(1)).splitlines(keepends=True)]
    lines.insert(place, junk + b"\n" * more)
    check_read_or_refused(b"".join(lines))


def check_read_or_refused(text: bytes) -> None:
    said = "m"
    with suppress(InputError):
        try:
            read(Path("m"), text)
        except InputError as error:
            said = str(error)
            raise
    assert "\n" not in said
    assert said.startswith("m")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
LINES = [
    head(),
    columns(),
    second(1, [process(1, "a", 0.1)]),
    {"ns": 1, "level": 3, "kernel": "x"},
    {"end": True},
]


@given(st.integers(0, len(LINES) - 1), st.data(), VALUES)
def test_whatever_a_member_holds_it_is_read_or_refused_in_one_line(
    place: int, data: st.DataObject, value: Any
) -> None:
    name = data.draw(st.sampled_from(sorted(LINES[place])))
    lines = [line | {name: value} if at == place else line for at, line in enumerate(LINES)]
    check_read_or_refused(text_of(*lines))


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ([{}], "monitor-1.jsonl:1: is no line"),
        ([head(format="x")], 'expected "format": "etude-monitor"'),
        ([head(version=2)], "up to 1"),
        ([head(), {"v": [1], "ns": 1}], r":2: .*\bv .*\b0 numbers"),
        ([head(), columns(), {"v": [1], "ns": 1}], r":3: .*\bv\b"),
        ([head(), columns(), second(2), second(1)], r":4: .*\blater"),
        ([head(), columns([("a", "1", "other")])], "interval or level"),
        ([head(), columns([("a", "1", "level"), ("a", "1", "level")])], "different names"),
        ([head(), columns([("a", "1", "level")]), columns([("a", "s", "level")])], "unit or kind"),
        ([head(), columns(), second(1, [{"pid": 1}])], "lacks 'name'"),
        ([head(), {"what": 1}], "expected columns, v, kernel or end"),
    ],
    ids=[
        "nothing",
        "format",
        "version",
        "no columns",
        "too short",
        "backwards",
        "kind",
        "twice",
        "unit",
        "top",
        "shape",
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, lines: list[dict[str, Any]], where: str) -> None:
    write(tmp_path / "monitor-1.jsonl", lines)
    with pytest.raises(InputError) as raised:
        load(tmp_path, 1)
    assert re.search(where, str(raised.value))
    assert "\n" not in str(raised.value)


def ns(seconds: float) -> Any:
    return np.array([START_NS + round(seconds * 1e9)])


def test_a_stretch_counts_a_reading_by_the_part_that_it_covers() -> None:
    found = monitor_of(columns(), second(1, cpu_user=0.0), second(2, cpu_user=1.0), second(3, cpu_user=2.0))
    rate = found.rate("cpu.user")
    for low, high, mean in ((0, 3, 1.0), (1, 2, 1.0), (1.5, 2.5, 1.5), (2.25, 2.5, 2.0), (2, 3.5, 2.0)):
        assert found.mean(rate, ns(low), ns(high)) == pytest.approx([mean])


def test_where_less_than_half_was_read_nothing_is_known() -> None:
    found = monitor_of(columns(), second(1, cpu_user=1.0), second(2, cpu_user=None), second(3, cpu_user=1.0))
    rate = found.rate("cpu.user")
    assert np.isnan(found.mean(rate, ns(1), ns(2)))
    assert np.isnan(found.mean(rate, ns(2.9), ns(9)))
    assert np.isnan(found.mean(rate, ns(-5), ns(-1)))
    assert found.mean(rate, ns(0), ns(2)) == pytest.approx([1.0])


@given(
    st.lists(st.tuples(st.integers(1, 10**10), st.floats(0, 100)), min_size=1, max_size=20),
    st.lists(st.integers(0, 10**10), min_size=2, max_size=10),
)
def test_the_parts_of_a_stretch_amount_to_the_whole(
    readings: list[tuple[int, float]], cuts: list[int]
) -> None:
    lines, at = [columns([("a", "s", "interval")])], 0
    for gap, value in readings:
        at += gap
        lines.append({"ns": at, "v": [value]})
    found = monitor_of(*lines)
    edges = np.unique(np.clip(np.array([0, *cuts, at]), 0, at)) + START_NS
    parts = found.mean(found.rate("a"), edges[:-1], edges[1:]) * np.diff(edges) / 1e9
    assert parts.sum() == pytest.approx(sum(value for _, value in readings), rel=1e-6, abs=1e-6)


def test_processes_of_a_stretch_come_with_their_share() -> None:
    found = monitor_of(
        columns(),
        second(1, [process(1, "a", 1.0)]),
        second(2, [process(2, "b", 1.0)]),
        second(3, [process(3, "c", 1.0)]),
    )
    shares = [
        (process.name, share)
        for process, share in found.processes(START_NS + 500_000_000, START_NS + 2_250_000_000)
    ]
    assert shares == [("a", 0.5), ("b", 1.0), ("c", 0.25)]
